"""The kinds of simulation by name: what ``kind:`` of an experiment can say.

Every module here has ``simulate(settings, data, seeds, where, progress) -> Simulated``.
"""

SIMULATIONS: dict[str, str] = {
    "allocation": "fedsampling.simulations.allocation",
    "delays": "fedsampling.simulations.delays",
    "dsgd": "fedsampling.simulations.dsgd",
    "federated": "fedsampling.simulations.federated",
    "gradient": "fedsampling.simulations.gradient",
    "inclusion": "fedsampling.simulations.inclusion",
    "network": "fedsampling.simulations.network",
    "partition": "fedsampling.simulations.partition",
    "quadratic": "fedsampling.simulations.quadratic",
    "selection": "fedsampling.simulations.selection",
    "weights": "fedsampling.simulations.weights",
}
