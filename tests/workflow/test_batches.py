"""Which jobs share a process, and what such a process asks for."""

import json
from pathlib import Path
from typing import Any

import pytest

from fedsampling.cluster.requests import Requests
from fedsampling.runs import places
from fedsampling.workflow.plan import TOGETHER, Plan, plan

PAPERS = Path(__file__).parents[2] / "papers"
PAPER = "rizk2022importance"


@pytest.fixture(autouse=True)
def nothing_is_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(places, "PUBLISHED", tmp_path)


def asked(paper: str = PAPER, **given: Any) -> Plan:
    return plan({"papers": [paper], "scale": "quick", "data": "embedded", **given}, PAPERS)


def requests(made: Plan) -> Requests:
    return Requests(made.jobs, made.batches, made.config.cluster, Path("nowhere"))


def test_every_job_of_quick_scale_has_a_batch_of_its_paper():
    made = asked()
    assert [job for together in made.batches.values() for job in together] == list(made.jobs)
    assert {len(together) for together in made.batches.values()} == {
        TOGETHER,
        len(made.jobs) % TOGETHER,
    }
    assert list(made.batches)[:2] == [f"{PAPER}_quick_0", f"{PAPER}_quick_1"]


def test_what_an_override_may_have_made_long_has_a_process_of_its_own():
    made = asked(overrides={PAPER: {"regression": {"seeds": 20}}})
    together = {made.jobs[job].experiment for part in made.batches.values() for job in part}
    assert "regression" not in together
    assert "sensitivity" in together


@pytest.mark.parametrize("given", [{"scale": "paper"}, {"scale": "reduced"}, {"together": False}])
def test_no_others_share_a_process(given: dict[str, Any]):
    assert asked(**given).batches == {}


def test_what_is_shipped_is_in_none_and_not_computed(tmp_path: Path):
    made = asked()
    first, second, third = list(made.jobs.values())[:3]
    runs = (*first.runs, *second.runs, *third.runs[:-1])
    listed = {"paper/experiment": [run.hash for run in runs]}
    (tmp_path / places.INDEX).write_text(json.dumps(listed))
    assert made.computed(PAPER) == list(made.jobs)[2:]
    assert next(iter(made.batches.values()))[0] == third.name
    assert asked(shipped=False).computed(PAPER) == list(made.jobs)


def test_a_batch_asks_for_what_its_most_demanding_job_needs():
    made = asked("harshvardhan2025latency", cluster={"gpu": "gpu"})
    for name, names in made.batches.items():
        of = requests(made).of
        ask = {what: of(what, name)(None, 1) for what in ("gpu", "runtime", "mem_mb")}
        network = any(made.jobs[job].runs[0].settings["kind"] == "network" for job in names)
        assert ask["gpu"] == (1 if network else None)
        assert ask["runtime"] >= (241 if network else 6)
