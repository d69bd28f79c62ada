"""Batches: the jobs of a process, its requests, its GPU, and when it stops."""

import pytest
from tests.shared import PAPERS

from fedsampling.base.files import write_record
from fedsampling.runs import places
from fedsampling.runs import resources as limits
from fedsampling.runs.measurements import Measured, measurement_key, save_measurements
from fedsampling.runs.rule_resources import RuleResources
from fedsampling.workflow.plan import QUICK_JOBS_PER_PROCESS, plan

PAPER = "rizk2022importance"


@pytest.fixture(autouse=True)
def nothing_is_shipped(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "PUBLISHED", tmp_path)
    monkeypatch.setattr("fedsampling.workflow.plan.PUBLISHED", tmp_path)


def quick_plan(paper=PAPER, **settings):
    return plan({"papers": [paper], "scale": "quick", "data": "embedded", **settings}, PAPERS)


def planned_in_fours():
    fours = {"regression": {"jobs_per_process": 4, "seeds": 5, "seed_block": 1}}
    return quick_plan(data="official", scale="paper", overrides={PAPER: fours})


def test_every_job_at_quick_scale_is_in_a_batch_of_its_paper():
    planned = quick_plan()
    assert [job for batch in planned.batches.values() for job in batch] == list(planned.jobs)
    assert {len(batch) for batch in planned.batches.values()} == {
        QUICK_JOBS_PER_PROCESS,
        len(planned.jobs) % QUICK_JOBS_PER_PROCESS,
    }
    assert list(planned.batches)[:2] == [f"{PAPER}_quick_0", f"{PAPER}_quick_1"]


def test_a_job_with_overrides_has_its_own_process():
    planned = quick_plan(overrides={PAPER: {"regression": {"seeds": 20}}})
    batched = [planned.jobs[job] for batch in planned.batches.values() for job in batch]
    experiments = {job.experiment for job in batched}
    assert "regression" not in experiments
    assert "sensitivity" in experiments


def test_at_other_scales_only_experiments_that_say_so_share_a_process():
    planned = planned_in_fours()
    jobs = [job.name for job in planned.jobs_of(f"{PAPER}/regression")]
    assert planned.batches == {
        f"{PAPER}_regression_{number}": jobs[4 * number : 4 * number + 4]
        for number in range((len(jobs) + 2) // 4)  # a last job alone is in no batch
    }
    assert quick_plan(data="official", scale="paper").batches == {}


def test_published_jobs_are_in_no_batch_and_not_computed(tmp_path):
    planned = quick_plan()
    first, second, third = list(planned.jobs.values())[:3]
    runs = (*first.runs, *second.runs, *third.runs[:-1])
    listed = {"paper/experiment": [run.hash for run in runs]}
    write_record(tmp_path / places.INDEX, listed)
    remaining = quick_plan()
    assert remaining.jobs_to_run(PAPER) == list(planned.jobs)[2:]
    assert next(iter(remaining.batches.values()))[0] == third.name
    assert quick_plan(shipped=False).jobs_to_run(PAPER) == list(planned.jobs)


def test_a_batch_requests_the_largest_needs_of_its_jobs(tmp_path):
    planned = quick_plan("harshvardhan2025latency", cluster={"gpu": "gpu"})
    resources = RuleResources(planned.jobs, planned.batches, planned.config.cluster, tmp_path)
    for name, names in planned.batches.items():
        request = {resource: of(None, 1) for resource, of in resources.of(name).items()}
        network = any(planned.jobs[job].runs[0].settings["kind"] == "network" for job in names)
        assert request["gpu"] == (1 if network else None)
        assert request["runtime"] >= (241 if network else 6)


def test_the_estimates_of_a_batch_add_up(tmp_path, monkeypatch):
    planned = planned_in_fours()
    name, names = next(iter(planned.batches.items()))
    jobs = [planned.jobs[job] for job in names]
    save_measurements({measurement_key(job): Measured(600 / job.steps) for job in jobs}, tmp_path)
    resources = RuleResources(planned.jobs, planned.batches, planned.config.cluster, tmp_path)
    minutes = 1 + 10 * planned.config.cluster.margin * len(jobs)
    assert resources.of(name)["runtime"](None, 1) == minutes
    monkeypatch.setattr(limits, "partition_limits", lambda: {"": ("cpu", minutes)})
    (line,) = resources.excesses([names[0]])
    assert line.startswith(f"cluster.max_runtime: jobs may request {3 * minutes:.0f} minutes")
