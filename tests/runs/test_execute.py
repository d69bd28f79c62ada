"""Execution of a job: finished runs are reused, the others are computed and recorded."""

import json
import os
import re
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest
from tests.helpers.network_runs import SETTINGS
from tests.shared import PAPERS

from fedsampling.base.stopping import Stopped
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import load_paper
from fedsampling.experiments.specs import Job, RunSpec, jobs
from fedsampling.learning.training.checkpoint import Checkpoint
from fedsampling.runs import execute as runs
from fedsampling.runs import store
from fedsampling.runs.rows import digest

PAPER = "rizk2022importance"


def job(seeds, reuse=None):
    overrides = {PAPER: {"inclusion": {"draws": 50, "seeds": seeds, "seed_block": 9}}}
    reused = [str(reuse)] if reuse else []
    config = Config(scale="quick", papers=[PAPER], overrides=overrides, reuse=reused)
    result = jobs(load_paper(PAPER, PAPERS), config)
    return next(listed for listed in result if listed.name.endswith("intro/fixed/block-0")), config


def execute(results, seeds, reuse=None, **changes):
    planned, config = job(seeds, reuse)
    (manifest,) = runs.execute([replace(planned, **changes)], config, results, lambda *_: None)
    return json.loads(manifest.read_text(encoding="utf-8"))


def stored(results):
    return {path: path.stat().st_ino for path in (results / "store").rglob("*.parquet")}


def test_metadata_record_the_origin_of_a_run(tmp_path):
    manifest = execute(tmp_path, [4, 2])
    assert [run["seed"] for run in manifest["runs"]] == [4, 2]
    planned, _ = job([4, 2])
    for run, spec in zip(manifest["runs"], planned.runs, strict=True):
        loaded = store.find([tmp_path / "store"], run["hash"], None)
        assert loaded.metadata["digest"] == run["digest"] == digest(loaded.table)
        assert (loaded.metadata["hash"], loaded.metadata["spec"]) == (spec.hash, spec.identity)
        assert re.fullmatch("[0-9a-f]{16}", loaded.metadata["code"])
        assert loaded.metadata["kernels"]["MKL_CBWR"] == os.environ["MKL_CBWR"]
        assert re.fullmatch(r"cpu: .+, (1 thread|(?!1 )\w+ threads)", loaded.metadata["device"])
        assert loaded.metadata["started"] <= loaded.metadata["finished"]


def test_a_resumed_run_records_its_first_start_and_all_its_time(tmp_path, monkeypatch):
    """A run that began before a registration confirms nothing, also if it was resumed after it."""
    planned, config = job([0])
    planned = replace(planned, runs=(RunSpec(SETTINGS, "embedded", 0),))
    earlier = {"started": datetime(2024, 1, 1, tzinfo=UTC), "_seconds_before": 3600.0}
    monkeypatch.setattr(runs, "Checkpoint", partial(Checkpoint, **earlier))
    with pytest.raises(Stopped):
        runs.execute([planned], config, tmp_path, lambda *_: None, stop=lambda: True)
    monkeypatch.undo()
    runs.execute([planned], config, tmp_path, lambda *_: None)
    (path,) = stored(tmp_path)
    metadata = store.load(path).metadata
    assert metadata["started"] == "2024-01-01T00:00:00Z"
    assert metadata["seconds"] >= 3600


def test_finished_runs_are_not_recomputed(tmp_path):
    execute(tmp_path, [0, 1])
    before = stored(tmp_path)
    execute(tmp_path, [0, 1, 2])
    after = stored(tmp_path)
    assert len(after) == 3
    assert before.items() <= after.items()


def test_cases_with_equal_settings_share_their_runs(tmp_path, monkeypatch):
    """A process that took the lease of a run twice would wait for itself."""
    leases = []

    @contextmanager
    def noted(paths, on_wait):
        leases.extend(paths)
        yield

    monkeypatch.setattr(runs, "hold_leases", noted)
    planned, config = job([1, 2])
    other_case = replace(planned, case="mine")
    paths = runs.execute([planned, other_case], config, tmp_path, lambda *_: None)
    assert len(leases) == len(set(leases)) == 2
    first, second = (json.loads(path.read_text())["runs"] for path in paths)
    assert first == second
    assert paths[0] != paths[1]


def test_results_of_other_code_are_recomputed_and_kept(tmp_path):
    first = execute(tmp_path, [0])
    assert execute(tmp_path, [0], code="f" * 16) == first  # the result is the same
    codes = {store.load(path).metadata["code"] for path in stored(tmp_path)}
    assert codes == {job([0])[0].code, "f" * 16}


def test_runs_of_a_shared_store_are_reused_whatever_their_code(tmp_path, monkeypatch):
    first = execute(tmp_path / "theirs", [0])
    before = stored(tmp_path / "theirs")
    monkeypatch.setattr(Job, "code", "f" * 16)
    assert execute(tmp_path / "ours", [0], reuse=tmp_path / "theirs" / "store") == first
    assert not (tmp_path / "ours" / "store").exists()
    assert stored(tmp_path / "theirs") == before
