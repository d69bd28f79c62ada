"""The cached plan: read while its inputs are unchanged, otherwise resolved again."""

import json
import shutil
from pathlib import Path

import pytest

from fedsampling.base.files import write_record
from fedsampling.experiments.config import parse
from fedsampling.runs import places
from fedsampling.workflow import project as projects
from fedsampling.workflow.project import PLAN, Project

ROOT = Path(__file__).parents[2]
RIZK, QUICK = "rizk2022importance", {"scale": "quick", "data": "embedded"}


@pytest.fixture
def opened(tmp_path, monkeypatch, forget_own_files):
    """Return projects of one folder, with a copy of a paper; none of its runs is published."""
    monkeypatch.setattr(places, "PUBLISHED", tmp_path / "published")
    shutil.copytree(ROOT / "papers" / RIZK, tmp_path / "papers" / RIZK)

    def open_(**settings):
        config = parse({"papers": [RIZK], **QUICK, **settings})
        return Project(config, tmp_path / "results", tmp_path / "papers", writes=True)

    return open_


@pytest.fixture
def resolutions(monkeypatch):
    """Note each time that a plan is resolved."""
    noted = []
    resolve = projects.resolve

    def noting(config, papers, results):
        noted.append(config.scale)
        return resolve(config, papers, results)

    monkeypatch.setattr(projects, "resolve", noting)
    return noted


def test_a_cached_plan_equals_the_resolved_plan(opened, resolutions):
    overrides = {RIZK: {"few": None, "regression": {"seeds": 3, "seed_block": 2}}}
    paper = {"scale": "paper", "data": "official", "overrides": overrides}
    for settings in ({}, {"data": "official"}, paper):
        first, second = opened(**settings), opened(**settings)
        before = first.plan, first.digests
        resolutions.clear()
        assert (second.plan, second.digests) == before
        assert resolutions == []


def test_a_plan_does_not_depend_on_the_mirror(opened, resolutions, tmp_path):
    jobs = opened().plan.jobs
    assert opened(mirror=str(tmp_path)).plan.jobs == jobs
    assert len(resolutions) == 1


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1", b"\xff\xfe"])
def test_a_corrupt_plan_is_resolved_again(opened, resolutions, tmp_path, damage):
    expected = opened().plan
    path = tmp_path / "results" / PLAN
    path.write_bytes(damage)
    assert opened().plan == expected
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert opened().plan == expected
    assert len(resolutions) == 3


def test_a_changed_number_is_detected(opened, tmp_path):
    expected = opened().plan
    path = tmp_path / "results" / PLAN
    content = json.loads(path.read_text())
    entries = json.loads(content["jobs"])
    entries[0]["blocks"][0][2][0][0] = 99
    content["jobs"] = json.dumps(entries, separators=(",", ":"))
    path.write_text(json.dumps(content, separators=(",", ":")))
    assert opened().plan == expected


def test_a_changed_input_resolves_the_plan_again(opened, resolutions, tmp_path, monkeypatch):
    code = tmp_path / "package"
    code.mkdir()
    monkeypatch.setattr(projects, "PACKAGE", code)
    paper = tmp_path / "papers" / RIZK
    published = tmp_path / "published"
    (published / RIZK).mkdir(parents=True)
    for change in (
        lambda: None,
        lambda: (paper / "paper.yaml").write_text((paper / "paper.yaml").read_text() + "\n"),
        lambda: (paper / "claims.py").write_text((paper / "claims.py").read_text() + "\nX = 1\n"),
        lambda: (code / "module.py").write_text("X = 1"),
        lambda: write_record(published / places.INDEX, {}),
        lambda: (published / RIZK / "regression.parquet").write_bytes(b"runs"),
    ):
        change()
        resolutions.clear()
        _ = opened().plan
        assert len(resolutions) == 1
        _ = opened().plan
        assert len(resolutions) == 1
    _ = opened(device="cpu").plan
    assert len(resolutions) == 2


def test_scale_best_depends_on_which_runs_are_in_the_store(opened, resolutions, tmp_path):
    best = {"scale": "best", "data": "official"}
    store = tmp_path / "results" / "store"
    for _ in range(2):
        assert opened(**best).plan.jobs == {}
    assert resolutions == ["best"]
    (store / "ab").mkdir(parents=True)
    (store / "ab" / "abc.lock").touch()
    _ = opened(**best).plan
    assert resolutions == ["best"]
    (store / "ab" / "abc.parquet").touch()
    _ = opened(**best).plan
    assert resolutions == ["best", "best"]


def test_a_users_sampler_is_part_of_the_key(opened, resolutions, tmp_path, forget_own_files):
    file = tmp_path / "mine.py"
    text = (
        "from fedsampling import Scheme\n\n\n"
        'class Mine(Scheme, name="mine_of_a_project"):\n    """Everybody."""\n'
    )
    for number in (1, 2):
        file.write_text(f"{text}    number: int = {number}\n")
        forget_own_files()
        assert opened(schemes=[str(file)]).plan.users_samplers == {"mine_of_a_project": str(file)}
    assert len(resolutions) == 2


def test_an_unwritable_folder_only_costs_time(opened, tmp_path):
    (tmp_path / "results").touch()
    assert opened().plan.jobs
