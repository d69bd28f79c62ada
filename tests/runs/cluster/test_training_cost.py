"""What a run is said to cost, against counts by hand and against what it takes."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from fedsampling.experiments.simulations.network import Network
from fedsampling.experiments.simulations.simulation import Where
from fedsampling.runs.cluster.training_cost import Timings, training_cost

WHERE = Where(Path("unused"), None)
# The stand-in of MNIST has 6000 training samples over 100 clients, and 1000 tests.
FULL = {"name": "full"}


def settings(sampler, work, **changes):
    defaults = {
        "kind": "network",
        "dataset": {"name": "mnist", "partition": {"name": "by_digit"}},
        "inputs": "unit",
        "model": {"name": "mlp"},
        "work": {"batch": 50, "step": 0.01, **work},
        "sampler": sampler,
        "rounds": 20,
        "evaluation": {"every": 10},
        "delays": {"name": "synthetic"},
    }
    return Network.model_validate(defaults | changes)


def counted(sampler, **changes):
    work = changes.pop("work", {"steps": 1})
    return training_cost(settings(sampler, work, **changes), "embedded", WHERE, measure=False)


@pytest.mark.parametrize(
    ("sampler", "slots"),
    [
        ({"name": "md", "m": 10}, 10),
        (FULL, 100),
        ({"name": "available", "available": 8, "m": 2, "report": "full"}, 8),
        ({"name": "power_of_choice", "m": 4, "d": 20}, 4),
        ({"name": "flanp", "first": 5}, 5),  # the first stage lasts long
        ({"name": "flanp", "first": 10, "stop": "rounds", "rounds": 5}, (10 + 20 + 40 + 80) / 4),
        ({"name": "delayhet_submodular"}, 40),
    ],
)
def test_the_number_of_slots_is_the_samplers(sampler, slots):
    assert counted(sampler).slots == slots


@pytest.mark.parametrize(("work", "steps"), [({"steps": 30}, 30), ({"epochs": 2}, 4)])
def test_steps_are_given_or_the_batches_of_the_epochs(work, steps):
    assert counted(FULL, work=work).steps == steps  # clients have 60 samples, a batch 50


@pytest.mark.parametrize(
    ("sampler", "changes", "samples"),
    [
        (FULL, {}, 3 * 7000),
        (FULL, {"evaluation": {"every": 20}}, 2 * 7000),
        (FULL, {"evaluation": {"every": 10, "training_loss": False}}, 3 * 1000),
        (FULL, {"holdout": 0.5}, 3 * 6000),  # its test set is of the training samples
        ({"name": "power_of_choice", "m": 4, "d": 20}, {}, 3 * 7000 + 20 * 1200),
    ],
)
def test_evaluated_samples_are_those_of_figures_and_samplers(sampler, changes, samples):
    assert counted(sampler, **changes).evaluated_samples == samples


def test_seconds_add_up_rounds_other_steps_and_evaluations():
    timings = Timings(step=1e-3, short_round=0.3, sample=1e-6)
    cost = replace(counted({"name": "md", "m": 10}), rounds=20, seeds=3, steps=5.0)
    result = replace(cost, timings=timings, slots=10.0, evaluated_samples=1e6)
    assert result.seconds == pytest.approx(20 * (0.3 / 3 + 10 * 4 * 1e-3) + 1.0)


def test_memory_of_a_seed_counts_its_models_and_one_step_of_each_slot():
    result = counted({"name": "md", "m": 10})
    models = 4 * 39_760 * (2 + 5 * 10)  # two of each slot's in a captured graph
    assert result.seed_bytes == models + 10 * (4 * 50 * 784 + result.step_bytes)
    assert 4 * 39_760 < result.step_bytes < 3 * 4 * 39_760  # a gradient, and activations
    assert result.seconds != result.seconds  # nothing was timed


def test_the_estimate_is_the_processor_time_of_the_run():
    """Within a factor of four, since other work on the machine changes the processor's speed."""
    run = settings({"name": "divfl", "m": 10}, {"steps": 20}, rounds=10)
    estimate = 2 * training_cost(run, "embedded", WHERE, seeds=2).seconds
    begin = time.process_time()
    run.simulate("embedded", [0, 1], WHERE)
    assert estimate / 4 < time.process_time() - begin < 4 * estimate
