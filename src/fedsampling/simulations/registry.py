"""The kinds of simulation by name: what ``kind:`` of an experiment can say.

Every module here has ``simulate(settings, data, seeds, where, progress) -> Simulated``.
"""

SIMULATIONS: dict[str, str] = {
    "federated": "fedsampling.simulations.federated",
    "gradient": "fedsampling.simulations.gradient",
    "inclusion": "fedsampling.simulations.inclusion",
    "weights": "fedsampling.simulations.weights",
}
