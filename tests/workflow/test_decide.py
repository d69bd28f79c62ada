"""Deciding open claims: which looks come next, and how they are run."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.shared import PAPERS

from fedsampling.base.errors import InputError
from fedsampling.experiments.papers import load_paper
from fedsampling.runs.places import RESULTS
from fedsampling.workflow import decide as deciding
from fedsampling.workflow.confirm import FreshSeeds
from fedsampling.workflow.decide import NO_LOOK, Step, _so_far, _table, _with_all_claims, decide
from fedsampling.workflow.project import Project

SEQUENTIAL = "harshvardhan2025latency"  # has claims with several looks
SNAKEFILE = """import json
configfile: "config.yaml"
Path("seen.json").write_text(json.dumps(config))
rule nothing:
"""
STEP = Step(
    paper="first",
    claim="c1",
    open_parts=("order", "size"),
    experiments=("confirm_a",),
    scale="paper",
    seeds=3,
    look=1,
    looks=4,
    hours_of={"confirm_a": 2.0},
)


@pytest.fixture
def opened(tmp_path):
    """Open a project of the repository's papers, with results elsewhere."""

    def project(**settings):
        file = tmp_path / "my.json"
        file.write_text(json.dumps(settings))
        return Project.open(file, tmp_path / "results", PAPERS)

    return project


def test_claims_that_share_runs_count_them_once():
    other = replace(STEP, claim="c2", hours_of={"confirm_a": 2.0, "confirm_b": 1.0})
    first, second, total = _table([STEP, other], [])
    assert first.endswith("2.0 core-hours; open: order and size; 2.0 in all")
    assert second.endswith("3.0 core-hours; open: order and size; 3.0 in all")
    assert "the next looks take 3.0 core-hours" in total
    assert [*_table([], ["c3: confirmed"])] == ["c3: confirmed", NO_LOOK]


def test_a_step_after_the_first_look_says_what_fresh_seeds_show(seen):
    first, _ = _table([replace(STEP, so_far=_so_far(seen))], [])
    assert first.splitlines()[1] == "    3 fresh seeds: 1.2 [0.9, 1.6]; decided: order: holds"
    assert _so_far(replace(seen, look=0)) == _so_far(None) == ""


def test_a_claim_that_its_runs_could_not_judge_keeps_all_parts_open(opened, seen, monkeypatch):
    monkeypatch.setattr(deciding, "hours_of_look", lambda *_: {})
    paper = load_paper(SEQUENTIAL, PAPERS)
    fresh = FreshSeeds(replace(seen, parts={}), looks_left=(5,))
    step = deciding._next_look(paper, "c7", fresh, opened())
    assert step.open_parts == tuple(paper.claims["c7"].parts)


def test_runs_that_could_not_count_are_not_started(opened, seen, monkeypatch):
    """Of a rule that is not registered, or after the last look."""
    fresh = {"c1": FreshSeeds(reason="Its rule is not registered."), "c2": FreshSeeds(seen)}
    monkeypatch.setattr(deciding, "confirmations", lambda *_: fresh)
    project = replace(opened(papers=[SEQUENTIAL]), results=RESULTS)
    first, second, last = decide(project, [SEQUENTIAL], 9.0, dry_run=False, cores="1")
    assert first == f"{SEQUENTIAL}/c1: Its rule is not registered."
    assert second.startswith(f"{SEQUENTIAL}/c2: open after its last look\n    3 fresh seeds: ")
    assert last == NO_LOOK


def test_a_look_that_failed_is_named_and_ends_in_an_error(opened, monkeypatch):
    monkeypatch.setattr(deciding, "_steps", lambda *_: ([STEP], []))
    monkeypatch.setattr(deciding, "_run", lambda *_: False)
    project = replace(opened(), results=RESULTS)
    with pytest.raises(InputError, match="first/c1: runs of its look failed; run the same"):
        [*decide(project, ["rizk2022importance"], 9.0, dry_run=False, cores="1")]


def test_a_selection_of_experiments_hides_no_claim(opened):
    selected = opened(experiments=["rizk2022importance/regression"])
    lines = [*decide(selected, ["rizk2022importance"], None, dry_run=True, cores="1")]
    assert [line.partition(":")[0].rpartition("/")[2] for line in sorted(lines[:-1])] == [
        f"c{number}" for number in (1, 2, 3, 4, 5)
    ]


def test_a_look_runs_its_seeds_with_the_users_settings_alone(opened, monkeypatch, tmp_path):
    """Snakemake would add the overrides in config.yaml to those of the look."""
    monkeypatch.chdir(tmp_path)
    Path("Snakefile").write_text(SNAKEFILE)
    overrides = {"rizk2022importance": {"confirm_longer": {"rounds": 7}}, "other": {}}
    Path("config.yaml").write_text(yaml.safe_dump({"overrides": overrides}))
    elsewhere = tmp_path / "elsewhere" / "rizk2022importance"  # its first fresh seed is 1000
    shutil.copytree(PAPERS / "rizk2022importance", elsewhere)
    step = replace(STEP, paper="rizk2022importance", experiments=("confirm_longer",))
    assert deciding._run(step, "2", opened(mirror=str(tmp_path), papers=[str(elsewhere)]))
    config = json.loads(Path("seen.json").read_text())
    assert (config["mirror"], config["run"], config["scale"]) == (str(tmp_path), "decide", "paper")
    seeds = {"seeds": [1000, 1001, 1002]}
    assert config["overrides"] == {"rizk2022importance": {"confirm_longer": seeds}}
    assert Project.open(RESULTS / "decide.yaml", RESULTS, PAPERS).config.run == "decide"


@pytest.mark.parametrize(("names", "others"), [([], True), (["c1"], True), (["mine/c1"], False)])
def test_papers_elsewhere_are_decided_too(opened, tmp_path, names, others):
    (tmp_path / "mine").mkdir()
    papers = _with_all_claims(opened(papers=[f"{tmp_path}/mine"]), names).config.papers
    assert f"{tmp_path}/mine" in papers
    assert (SEQUENTIAL in papers) is others


@pytest.mark.parametrize(
    ("cores", "ran", "last"),
    [
        ("1", [], "1 claim left; the time is too short for a next look; the shortest takes"),
        ("2", ["first/c1"], NO_LOOK),
    ],
)
def test_a_look_runs_once_if_all_cores_finish_it_in_time(opened, monkeypatch, cores, ran, last):
    names = []
    monkeypatch.setattr(deciding, "_steps", lambda *_: ([STEP], []))
    monkeypatch.setattr(deciding, "_run", lambda step, *_: not names.append(step.name))
    project = replace(opened(), results=RESULTS)
    *_, line = decide(project, ["rizk2022importance"], 1.5, dry_run=False, cores=cores)
    assert names == ran
    assert line.startswith(last)


@pytest.mark.parametrize("cores", ["0", "-1", "two"])
def test_the_number_of_cores_is_checked_before_anything_runs(opened, cores):
    with pytest.raises(InputError, match=f"cores: '{cores}' is invalid; must be a number above 0"):
        [*decide(opened(), [], 1.0, dry_run=False, cores=cores)]


def test_embedded_data_decide_no_claim(opened):
    with pytest.raises(InputError, match="data: embedded; only runs on official data decide"):
        [*decide(opened(data="embedded", scale="quick"), [], None, dry_run=True, cores="1")]


@pytest.mark.parametrize("option", ["results", "papers"])
def test_runs_of_snakemake_have_no_other_folders(opened, tmp_path, option):
    project = replace(opened(), results=RESULTS)
    with pytest.raises(InputError, match=f"--{option} .*: its runs are Snakemake's, with {option}"):
        [*decide(replace(project, **{option: tmp_path}), [], 1.0, dry_run=False, cores="1")]
