"""The cost of a run, against counts by hand and against the time that the run takes."""

from pathlib import Path

import pytest

from fedsampling.base.errors import InputError
from fedsampling.experiments.simulations.network import NetworkSimulation
from fedsampling.experiments.simulations.simulation import RunContext
from fedsampling.learning.training.launches import H100
from fedsampling.workflow.job_costs import (
    available_data,
    batch_cost,
    launches,
    predicted_on_a_gpu,
    work_of,
)
from fedsampling.workflow.plan import plan

PAPERS, WHERE = Path(__file__).parents[2] / "papers", RunContext(Path("unused"), None)
# The stand-in of MNIST has 6000 training samples over 100 clients, and 1000 tests.
FULL = {"name": "full"}


def settings(sampler, **changes):
    defaults = {
        "kind": "network",
        "dataset": {"name": "mnist", "partition": {"name": "by_digit"}},
        "inputs": "unit",
        "model": {"name": "mlp"},
        "work": {"batch": 50, "step": 0.01, **changes.pop("work", {"steps": 1})},
        "sampler": sampler,
        "rounds": 20,
        "evaluation": {"every": 10},
        "delays": {"name": "synthetic"},
    }
    return NetworkSimulation.model_validate(defaults | changes)


@pytest.mark.parametrize(
    ("changes", "steps", "samples"),
    [
        ({}, 1, 700),
        ({"work": {"epochs": 2}}, 4, 700),  # clients have 60 samples, a batch 50
        ({"evaluation": {"every": 10, "training_loss": False}}, 1, 100),
        ({"holdout": 0.5}, 1, 600),  # its test set is of the training samples
    ],
)
def test_operations_are_those_of_steps_and_evaluations(changes, steps, samples):
    work = work_of(settings(FULL, **changes), "embedded", WHERE)
    weights = 784 * 50 + 50 * 10
    forward = 2 * weights
    step = 2 * forward + 2 * 50 * 10  # the first layer's input needs no gradient
    assert batch_cost(work.batch)[2:] == (50 * forward, 50 * step)
    assert work.operations == pytest.approx(100 * steps * 50 * step + samples * forward)


def test_time_on_a_gpu_is_predicted_from_one_slots_counts():
    work = work_of(settings({"name": "md", "m": 10}), "embedded", WHERE)
    one = launches(work.batch)
    seconds, jobs = predicted_on_a_gpu(work, seeds=2)
    step = one.operations * H100.launch  # 20 slots take as long to start as one
    assert step > 20 * max(one.flop / H100.flops, one.bytes / H100.bytes)
    assert seconds == pytest.approx(step * 2 * work.operations / (20 * one.flop))
    assert jobs == 8
    large = one.times(1e4)
    assert large.seconds() == pytest.approx(1e4 * one.bytes / H100.bytes)
    assert large.jobs_at_once() == 1


def test_memory_counts_models_and_one_step_of_each_slot():
    work = work_of(settings({"name": "md", "m": 10}), "embedded", WHERE)
    d, step_bytes, *_ = batch_cost(work.batch)
    assert d == 39_760
    assert work.bytes == 4 * d * (2 + 3 * 10) + 10 * (4 * 50 * 784 + step_bytes)
    assert 4 * d < step_bytes < 3 * 4 * d  # a gradient, and activations
    pairs = work_of(settings({"name": "divfl", "m": 10}), "embedded", WHERE)
    assert pairs.bytes - work.bytes == 4 * 8 * 100**2 + 12 * 100 * d
    with pytest.raises(InputError, match=r"divfl compares all pairs of 100 .* at most 50 cl"):
        work_of(settings({"name": "divfl", "m": 10}), "embedded", WHERE, max_bytes=4 * 8 * 50**2)


@pytest.mark.parametrize(
    ("held", "data"), [(("ijcnn1.tr", "ijcnn1.val", "ijcnn1.t"), "official"), ((), "embedded")]
)
def test_files_in_the_mirror_are_available(tmp_path, held, data):
    jobs = plan({"papers": ["rizk2022importance"], "scale": "quick"}, PAPERS).jobs
    job = jobs["rizk2022importance/classification/base/fedavg/block-0"]
    (tmp_path / "ijcnn1").mkdir()
    for name in held:
        (tmp_path / "ijcnn1" / name).touch()
    assert available_data(job, tmp_path / "cache", str(tmp_path)) == data
