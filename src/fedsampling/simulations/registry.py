"""The kinds of simulation by name: what ``kind:`` of an experiment can say.

Every module here has ``simulate(settings, data, seeds, where, progress) -> Simulated``.
"""

SIMULATIONS: dict[str, str] = {
    "delays": "fedsampling.simulations.delays",
    "federated": "fedsampling.simulations.federated",
    "gradient": "fedsampling.simulations.gradient",
    "inclusion": "fedsampling.simulations.inclusion",
    "partition": "fedsampling.simulations.partition",
    "weights": "fedsampling.simulations.weights",
}
