"""What jobs ask a cluster for."""

import os
from dataclasses import replace

import pytest
from tests.shared import PAPERS

from fedsampling.experiments.config import Cluster
from fedsampling.experiments.simulations.simulation import Simulation
from fedsampling.experiments.specs import Job, RunSpec
from fedsampling.runs.measurements import Measured, load_measurements, measurement_key
from fedsampling.runs.resources import (
    DEFAULTS,
    PAPER_KIND_DEFAULT,
    Need,
    excesses,
    jobs_per_gpu,
    need,
    partition_limits,
    request,
)

GPU_JOB = Need(60, 8000, gpu=True)
SITE = {"gpu": "gpu", "gpu_model": "a100", "cpu_partition": "c", "gpu_partition": "g"}


def job(kind="federated", rounds=1000):
    settings = {"kind": kind, "sampler": {"name": "md"}, "rounds": rounds}
    return Job("paper", "experiment", "base", "md", 0, (RunSpec(settings, "embedded", 0),))


def cluster(**settings):
    return Cluster.model_validate(settings)


def test_every_shared_kind_has_a_default_with_a_device_if_it_can_use_one():
    kinds = Simulation.members().values()
    gpus = {kind.named: kind.gpu for kind in kinds if kind.code.startswith("fedsampling.")}
    assert {name: DEFAULTS[name].gpu for name in gpus} == gpus


@pytest.mark.parametrize(
    ("key", "kind", "gpu"),
    [("chen2022optimal", "dsgd", False), ("fraboni2021clustered", "allocation", True)],
)
def test_a_run_kind_of_a_paper_requests_a_device_if_it_can_use_one(key, kind, gpu):
    of_kind = replace(job(kind), folder=PAPERS / key)
    result = need(replace(of_kind, uses_gpu=of_kind.kind.gpu), {}, cluster())
    assert (result.minutes, result.gpu) == (PAPER_KIND_DEFAULT.minutes, gpu)


def test_each_attempt_requests_more_up_to_the_configured_limits():
    limits = cluster(max_runtime=150, max_mem_mb=20000)
    attempts = [request(GPU_JOB, limits, attempt) for attempt in (1, 2, 3)]
    assert [attempt["runtime"] for attempt in attempts] == [61, 122, 150]
    assert [attempt["mem_mb"] for attempt in attempts] == [8000, 16000, 20000]


@pytest.mark.parametrize(
    ("gpu", "measured_on", "minutes"),
    [("gpu", "cuda", 2), ("gpu", "cpu", 240), ("none", "cpu", 2), ("none", "cuda", 240)],
)
def test_measured_times_replace_the_default_of_their_kind_of_device(gpu, measured_on, minutes):
    measurements = {measurement_key(job("network")): Measured(0.06, measured_on)}
    of_job = need(job("network"), measurements, cluster(gpu=gpu, margin=2))
    assert of_job.minutes == pytest.approx(minutes)


def test_an_estimate_serves_all_seeds_of_the_same_settings_only():
    measurements = {measurement_key(job("network")): Measured(0.06, "cpu")}

    def minutes(data="embedded", **settings):
        run = RunSpec(job("network").runs[0].settings | settings, data, 1)
        return need(replace(job("network"), runs=(run,)), measurements, cluster()).minutes

    assert minutes(problem_seed=1) == minutes() < DEFAULTS["network"].minutes
    for changes in ({"rounds": 4}, {"data": "official"}):
        assert minutes(**changes) == DEFAULTS["network"].minutes


def test_memory_of_all_seeds_of_a_block_is_requested():
    measurements, seeds = {measurement_key(job("network")): Measured(1, "cpu", 700)}, 20
    block = replace(job("network"), runs=seeds * job("network").runs)
    assert need(block, measurements, cluster()).mem_mb == DEFAULTS["network"].mem_mb + 14000


@pytest.mark.parametrize(
    ("of_job", "settings", "expected"),
    [
        (GPU_JOB, {}, (None, None, None, None)),
        (GPU_JOB, {"gpu": "gres"}, (None, None, "gpu:1", None)),
        (GPU_JOB, {"gpu": "gres", "gpu_model": "a100"}, (None, None, "gpu:a100:1", None)),
        (GPU_JOB, SITE, (1, "a100", None, "g")),
        (GPU_JOB, {"gpu": "shard", "jobs_per_gpu": 4}, (None, None, "shard:1", None)),
        (Need(1, 100), SITE, (None, None, None, "c")),
        (GPU_JOB, {"gpu": "none", "cpu_partition": "c"}, (None, None, None, "c")),
    ],
)
def test_a_gpu_is_requested_in_the_form_that_the_site_accepts(of_job, settings, expected):
    result = request(of_job, cluster(**settings))
    names = ("gpu", "gpu_model", "gres", "slurm_partition")
    assert tuple(result[name] for name in names) == expected


@pytest.mark.parametrize(
    ("setting", "measured", "jobs"), [(1, 4, 1), (8, 1, 8), ("auto", 4, 4), ("auto", None, 1)]
)
def test_jobs_share_a_gpu_as_configured_or_as_predicted(setting, measured, jobs):
    cost = {measurement_key(job()): Measured(1, gpu_jobs=measured)} if measured else {}
    assert jobs_per_gpu(job(), cost, cluster(jobs_per_gpu=setting)) == jobs


@pytest.mark.parametrize(
    ("content", "measurements"),
    [
        ('{"a/b/c": {"step": 0.1, "device": "cpu"}}', {"a/b/c": Measured(0.1)}),
        *((text, {}) for text in ("", "[]", '{"a": {"step": "x"}}')),
        ('{"a": {"step": NaN}}', {}),
    ],
)
def test_saved_measurements_are_read_and_corrupt_ones_ignored(tmp_path, content, measurements):
    (tmp_path / "calibration.json").write_text(content)
    assert load_measurements(tmp_path) == measurements


def test_requests_beyond_the_partitions_that_sinfo_prints_are_reported(tmp_path, monkeypatch):
    path = tmp_path / "sinfo"
    path.write_text("#!/bin/sh\nprintf 'cpu*|1:00:00\\nlong|7-00:00:00\\nfree|infinite\\n'\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    result = partition_limits()
    assert result[""] == result["cpu"] == ("cpu", 60)
    assert result["long"] == ("long", 7 * 24 * 60)
    assert result["free"] == ("free", float("inf"))
    needs = [need(job(), {}, cluster())]
    assert excesses(needs, cluster(max_runtime=60)) == []
    (line,) = excesses(needs, cluster(max_runtime=90))
    assert line.startswith("cluster.max_runtime: jobs may request 90 minutes, but partition cpu")
    settings = cluster(gpu="gpu", gpu_partition="long,gpus", max_runtime=60)
    (line,) = excesses([GPU_JOB], settings)
    assert line.startswith("cluster: unknown partition 'gpus'; known: cpu, ")
    assert excesses([], cluster(cpu_partition="cpu,long")) == []  # any of a list starts the job
