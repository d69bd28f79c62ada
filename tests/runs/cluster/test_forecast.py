"""What a cluster would make of a plan."""

import os
from dataclasses import replace
from itertools import permutations

import pytest

from fedsampling.experiments.config import Cluster
from fedsampling.experiments.specs import Job, RunSpec
from fedsampling.runs.cluster.forecast import (
    REQUEUE_MINUTES,
    SUBMISSION_MINUTES,
    forecast,
    forecast_lines,
    partition_limits,
    spread,
    task,
)
from fedsampling.runs.cluster.resources import Measured, measurement_key


def job(kind="federated", sampler="md"):
    settings = {"kind": kind, "sampler": {"name": sampler}, "rounds": 600}
    return Job("paper", "experiment", "base", sampler, 0, (RunSpec(settings, "embedded", 0),))


def cluster(**settings):
    return Cluster.model_validate(settings)


@pytest.fixture
def partitions(tmp_path, monkeypatch):
    def write(text):
        path = tmp_path / "sinfo"
        path.write_text(f"#!/bin/sh\nprintf '{text}'\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    return write


def test_longest_first_is_at_most_a_third_above_the_best():
    lengths = [7.0, 7.0, 6.0, 6.0, 5.0, 4.0, 4.0, 4.0]

    def by_order(order):
        free = [0.0] * 3
        for length in order:
            free[free.index(min(free))] += length
        return max(free)

    best = min(by_order(order) for order in set(permutations(lengths)))
    assert best <= spread(lengths, 3) <= best * 4 / 3


def test_more_devices_take_less_time_until_the_longest_job_remains():
    measured = {
        measurement_key(job("network", f"s{n}")): Measured(0, 6.0 + n / 10, "cuda")
        for n in range(8)
    }
    jobs = [job("network", f"s{n}") for n in range(8)]
    result = forecast(jobs, measured, cluster(gpu="gpu"), [1, 2, 8, 100], 4)
    walls = list(result.walls.values())
    assert walls == sorted(walls, reverse=True)
    assert walls[-1] == walls[-2] == pytest.approx(result.chain)
    assert result.hours(device=True) == pytest.approx(sum(60 + n for n in range(8)) / 60)
    assert result.hours(device=False) == 0


def test_a_job_longer_than_the_limit_runs_in_pieces():
    measured = {measurement_key(job("network")): Measured(0, 24.0, "cuda")}  # four hours
    long_task = task(job("network"), measured, cluster(gpu="gpu", max_runtime=60, grace=120))
    assert long_task.pieces == 5
    assert long_task.occupied == pytest.approx(240 + 5 * SUBMISSION_MINUTES + 4 * REQUEUE_MINUTES)


def test_a_plan_without_unfinished_jobs_takes_no_time():
    result = forecast([], {}, cluster(), [4], 16)
    assert (result.tasks, result.chain, result.walls) == ((), 0.0, {4: 0.0})


def test_assumed_times_are_reported():
    measured = {measurement_key(job()): Measured(0, 1.0)}
    result = forecast([job(), job(sampler="full")], measured, cluster(), [1], 1)
    output = forecast_lines(result, 3, 1)
    assert "jobs to submit: 2 (3 are finished already)" in output
    assert "jobs with assumed, not measured, times: 1" in output
    assert "GPUs" not in output


def test_partitions_are_read_as_sinfo_prints_them(partitions):
    partitions(r"cpu*|1:00:00\nlong|7-00:00:00\nfree|infinite\n")
    result = partition_limits()
    assert result[""] == result["cpu"] == ("cpu", 60)
    assert result["long"] == ("long", 7 * 24 * 60)
    assert result["free"] == ("free", float("inf"))


def test_a_request_beyond_the_partitions_limit_is_reported(partitions):
    partitions(r"cpu*|1:00:00\n")
    result = forecast([job()], {}, cluster(max_runtime=90), [1], 1)
    (line,) = result.notes
    assert line == (
        "cluster.max_runtime: jobs may request 90 minutes, but partition cpu allows 60 and "
        "would never start them; must be at most 60"
    )
    assert forecast([job()], {}, cluster(max_runtime=60), [1], 1).notes == ()


def test_an_unknown_partition_is_reported(partitions):
    partitions(r"cpu*|1:00:00\n")
    settings = cluster(gpu="gpu", gpu_partition="gpus", max_runtime=60)
    (line,) = forecast([job("network")], {}, settings, [1], 1).notes
    assert line == "cluster: unknown partition 'gpus'; known: cpu"


@pytest.mark.parametrize(
    ("seed_mb", "blocks", "expected"),
    [
        (0.0, 40, ()),  # not known
        (12000.0, 40, ()),  # one of them is all that fits
        (800.0, 40, ("use 27",)),  # nine tenths of 24000 MB
        (800.0, 5, ("use 5",)),  # there are no more
        (800.0, 1, ()),
        (30000.0, 1, ("use 1",)),  # does not fit at all
    ],
)
def test_a_block_that_underuses_or_exceeds_its_gpu_is_reported(seed_mb, blocks, expected):
    measured = {measurement_key(job("network")): Measured(0, 1, "cuda", seed_mb)}
    jobs = [replace(job("network"), block=number) for number in range(blocks)]
    notes = forecast(jobs, measured, cluster(gpu="gpu", device_mb=24000), [1], 1).notes
    assert len(notes) == len(expected)
    for note, end in zip(notes, expected, strict=True):
        assert note.startswith("paper/experiment: seed_block: 1 seeds take ")
        assert note.endswith(end)
    assert forecast(jobs, measured, cluster(), [1], 1).notes == ()  # no GPU, nothing to fill
