"""A small training run of the pipeline, and its tables."""

import yaml
from tests.helpers.small_runs import NOWHERE

from fedsampling.base.nested import merge
from fedsampling.base.records import check
from fedsampling.experiments.simulations.simulation import Simulation

SETTINGS = yaml.safe_load("""
kind: network
dataset: {name: mnist, partition: {name: by_digit, order: shuffled, clients_per_label: 2}}
inputs: unit
model: {name: mlp, hidden: 4}
work: {steps: 2, batch: 5, step: 0.1}
delays: {name: synthetic}
sampler: {name: md, m: 4}
rounds: 6
evaluation: {every: 6, training_loss: false}
""")


def network(changes=()):
    return check(Simulation, merge(SETTINGS, dict(changes)), "")


def tables(settings, seeds=(0, 1)):
    return settings.simulate("embedded", list(seeds), NOWHERE).tables
