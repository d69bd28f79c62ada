"""A small run of every kind, which the tests of simulations change as they need."""

from pathlib import Path

import yaml

from fedsampling.experiments.resolving import load_kinds
from fedsampling.experiments.simulations.simulation import RunContext, Simulation

SMALL = yaml.safe_load("""
allocation:
  dataset:  # the stand-in has a tenth of these samples: 360 in all
    name: mnist
    partition: {name: dirichlet, alpha: 0.1, groups: [[4, 100], [6, 300], [2, 700]]}
  inputs: unit
  model: {name: mlp}
  work: {steps: 3, batch: 5, step: 0.1}
  sampler: {name: clustered_similarity, m: 4}
  rounds: 3
  every: 2
delays: {dataset: {name: nycmesh}, rounds: 3, sampler: {name: none}}
dsgd:
  {clients: 8, m: 2, dimension: 3, spread: 1.0, eigenvalues: [0.5, 2], minima: [1, 0.5],
   relative: 0.2, noise: 0.1, start: 3, step: 0.9, rounds: 12, draws: 300, sampler: {name: optimal}}
federated:
  dataset: &regression
    {name: regression, agents: 8, samples: 12, dimension: 2, eigenvalues: [1, 2], noise: [0.01, 1]}
  model: &linear {name: linear, rho: 0.001}
  work: {step: 0.02, epochs: [1, 3], batch: [1, 5]}
  sampler: &uniform {name: uniform, m: 3}
  rounds: 6
  every: 2
gradient:
  dataset: *regression
  model: *linear
  epochs: [1, 3]
  batch: [1, 5]
  sampler: *uniform
  point: start
  draws: 100
inclusion:
  {units: 4, size: 2, draws: 20000, sampler: {name: fixed}}
partition:
  dataset: {name: ijcnn1, agents: 10, smallest: 79, largest: 6880, alpha: 0.5}
  sampler: {name: none}
selection:
  {clients: 6, samples: 8, dimension: 10, iterations: [0, 3], draws: 2, sampler: {name: minnorm}}
weights: {clients: 5, m: 2, importance: equal, draws: 50, sampler: {name: md}}
""")
SMALL["inclusion"]["probabilities"] = [1 / 3, 1 / 6, 1 / 3, 1 / 6]
NOWHERE = RunContext(Path("nowhere"), None)


def load_all_kinds():
    for path in (Path(__file__).parents[2] / "papers").glob("*/paper.yaml"):
        load_kinds(path.parent)


def settings(kind, **changes):
    load_all_kinds()
    return Simulation.model_validate({"kind": kind, **SMALL[kind], **changes})


def tables(kind, seeds=(0,), **changes):
    return list(settings(kind, **changes).simulate("embedded", seeds, NOWHERE).tables)


def column(table, metric):
    """Values of a metric by ``at``; there must be some, so that tests compare something."""
    rows = table[table["metric"] == metric]
    assert len(rows), f"the table has no {metric}"
    return rows.set_index("at")["value"]


def wide(table):
    return table.pivot(index="at", columns="metric", values="value")


def array(table, metric):
    return column(table, metric).to_numpy()
