"""The cached plan: read while its inputs are unchanged, otherwise resolved again."""

import hashlib
import json

import pytest

from fedsampling.base import input_states
from fedsampling.base.errors import InputError
from fedsampling.base.files import write_json, write_record
from fedsampling.experiments import config
from fedsampling.runs.places import INDEX
from fedsampling.workflow import project as projects
from fedsampling.workflow.project import PLAN, Project

RIZK, FRABONI = "rizk2022importance", "fraboni2022general"
JOB = f"{RIZK}/regression/base/fedavg/block-0"
QUICK = {"scale": "quick", "data": "embedded"}


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


def test_a_corrupt_plan_is_resolved_again(opened, resolutions, tmp_path):
    expected = opened().plan
    path = tmp_path / "results" / PLAN
    content = path.read_bytes()
    another_seed = content.replace(b"true,[[0,", b"true,[[99,", 1)
    assert another_seed != content
    for number, damaged in enumerate((b"{}", b"\xff\xfe", content[:-1], another_seed), 2):
        path.write_bytes(damaged)
        assert opened().plan == expected
        assert len(resolutions) == number


def resealed(lines, line, change):
    """Return a plan's lines with one changed, and with their digest."""
    changed = [*lines[1:]]
    changed[line] = json.dumps(change(json.loads(changed[line])))
    text = "".join(f"{each}\n" for each in changed)
    return f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}"


CONTENT, JOBS = 0, 1  # lines of a plan


@pytest.mark.parametrize(
    ("line", "change"),
    [
        (CONTENT, lambda content: content | {"papers": {"p": {}}}),
        (CONTENT, lambda content: {key: content[key] for key in content if key != "uses"}),
        (CONTENT, lambda content: content | {"inputs": None}),
        (JOBS, lambda jobs: [{}]),
        (JOBS, lambda jobs: [{**jobs[0], "of": [RIZK, "few", "../../victim", "md"]}]),
        (JOBS, lambda jobs: [{**jobs[0], "blocks": [["0/../x", True, [[0, "0"]]]]}]),
        (JOBS, lambda jobs: [{**jobs[0], "blocks": [[0, True, [[0, "../victim"]]]]}]),
    ],
)
def test_a_plan_of_another_version_or_with_paths_as_names_is_resolved_again(
    opened, resolutions, tmp_path, line, change
):
    expected = opened().plan
    path = tmp_path / "results" / PLAN
    path.write_text(resealed(path.read_text().splitlines(), line, change))
    assert opened().plan == expected
    assert len(resolutions) == 2


def test_jobs_of_such_a_plan_that_are_read_late_are_one_line(opened, tmp_path):
    _ = opened(scale="best", data="official").plan
    path = tmp_path / "results" / PLAN
    path.write_text(resealed(path.read_text().splitlines(), JOBS, lambda jobs: [{}]))
    with pytest.raises(InputError, match=r"plan\.jsonl: invalid; delete it and run the same"):
        len(opened(scale="best", data="official").plan.jobs)


def test_a_changed_input_resolves_the_plan_again(opened, resolutions, tmp_path, monkeypatch):
    code, paper, published = (
        tmp_path / name for name in ("package", f"papers/{RIZK}", f"published/{RIZK}")
    )
    code.mkdir()
    published.mkdir(parents=True)
    monkeypatch.setattr(input_states, "PACKAGE", code)
    for change in (
        lambda: None,
        lambda: (paper / "paper.yaml").open("a").write("\n"),
        lambda: (paper / "claims.py").open("a").write("\nX = 1\n"),
        lambda: (paper / "below").mkdir() or (paper / "below" / "values.dat").write_text("1"),
        lambda: (code / "module.py").write_text("X = 1"),
        lambda: write_record(published.parent / INDEX, {}),
        lambda: (published / "regression.parquet").write_bytes(b"runs"),
    ):
        change()
        resolutions.clear()
        for _ in range(2):
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


def test_a_folder_of_tune_or_compare_opens_with_its_own_file(tmp_path):
    project = Project(config.parse({"run": "my"}), tmp_path).in_subfolder("tune")
    write_json(project.config_file, project.config.model_dump(mode="json"))
    assert Project.open(project.config_file, tmp_path).config == project.config
    moved = tmp_path / "other" / "config.json"
    write_json(moved, project.config.model_dump(mode="json"))
    with pytest.raises(InputError, match="run: 'my/tune' is invalid"):
        Project.open(moved, tmp_path)
