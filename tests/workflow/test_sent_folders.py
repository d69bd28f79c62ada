"""Results that somebody sends execute and delete nothing."""

import re
import shutil

import pytest
import yaml
from click.testing import CliRunner
from tests.shared import ROOT
from tests.workflow.mutations import stepping, world

from fedsampling.base import files
from fedsampling.base.files import write_record
from fedsampling.cli import main
from fedsampling.workflow import locks

SOURCES = ROOT / "src" / "fedsampling"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a project with results, whose sampler notes that it was loaded."""
    root = tmp_path_factory.mktemp("sent") / "project"
    root.mkdir()
    world.write(root)
    _, error = stepping.update(root)
    assert not error, error
    sampler = root / "mine" / "sampler.py"
    text = f"from pathlib import Path\n\nPath({str(root / 'EXECUTED')!r}).touch()\n"
    sampler.write_text(text + sampler.read_text())
    return root


@pytest.fixture
def sent(finished, tmp_path, monkeypatch):
    """Return a copy of the project in another person's working folder."""
    root = tmp_path / "project"
    shutil.copytree(finished, root)
    monkeypatch.chdir(root)
    monkeypatch.setattr(locks, "_held", {})
    monkeypatch.setattr(files, "_guarded", [])
    yield root
    (finished / "EXECUTED").unlink(missing_ok=True)


@pytest.mark.parametrize(
    "words", [("verdicts",), ("status",), ("list", "jobs"), ("list", "samplers"), ("report",)]
)
def test_commands_that_only_read_load_no_code_that_results_name(sent, finished, words):
    result = CliRunner().invoke(main, [*words, "--config", "results/config.json"])
    assert result.exit_code == 0, result.output
    assert not (finished / "EXECUTED").exists()


def test_without_a_plan_they_end_in_one_line(sent, finished):
    (sent / "results" / "plan.jsonl").unlink()
    result = CliRunner().invoke(main, ["verdicts", "--config", "results/config.json"])
    assert result.exit_code == 2
    assert "plan.jsonl: missing or corrupt; run this in the project's own folder" in result.stderr
    assert not (finished / "EXECUTED").exists()


def drawn(root):
    """Draw the paper, as a job does."""
    return stepping.alone(stepping.run, "draw small")


NAMES = ("../../victim", "artefacts/../../../victim")


@pytest.mark.parametrize(
    "name", ["{victim}", *(pytest.param(name, marks=pytest.mark.long) for name in NAMES)]
)
def test_a_record_of_results_deletes_nothing_outside_them(sent, tmp_path, name):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    path = sent / "results" / "made" / "papers" / "small.json"
    content = files.read_record(path)
    for entry in content["results"].values():
        entry |= {"of": "other", "files": {name.format(victim=victim): "0"}}
    write_record(path, content)
    figures = sent / "papers" / "small" / "figures.py"
    figures.write_text(figures.read_text() + "\nraise ValueError\n")
    with pytest.raises(stepping.StepError):
        drawn(sent)
    assert victim.read_text() == "mine"


FOLDERS = ("claims", "summaries", "explorer", "made", "cards", "runs", "artefacts/small")


@pytest.mark.parametrize(
    "folder", ["artefacts", *(pytest.param(name, marks=pytest.mark.long) for name in FOLDERS)]
)
def test_a_link_in_the_results_leads_nothing_out_of_them(sent, tmp_path, folder):
    outside = tmp_path / "outside"
    (sent / "results" / folder).rename(outside)
    (sent / "results" / folder).symlink_to(outside)
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    paper = sent / "papers" / "small" / "paper.yaml"
    content = yaml.safe_load(paper.read_text())
    content["title"] = "Another title"
    content["experiments"]["own_kind"]["scale"] = 3.5
    content["experiments"]["own_data"]["dataset"]["test_share"] = 0.5
    paper.write_text(yaml.safe_dump(content))
    _, error = stepping.update(sent)
    assert "a symbolic link leads out of the folder" in error
    assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before


FILES = ("jobs.lock", "plan.jsonl", "config.json", "recheck.json")


@pytest.mark.parametrize(
    "name", ["call.lock", *(pytest.param(name, marks=pytest.mark.long) for name in FILES)]
)
def test_a_link_in_place_of_a_file_is_replaced_or_refused(sent, tmp_path, name):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (sent / "results" / name).unlink(missing_ok=True)
    (sent / "results" / name).symlink_to(victim)
    stepping.update(sent)
    assert victim.read_text() == "mine"


def test_results_and_stores_may_be_links_themselves(sent, tmp_path):
    for name in ("results/store", "results"):
        (sent / name).rename(tmp_path / name.replace("/", "-"))
        (sent / name).symlink_to(tmp_path / name.replace("/", "-"))
    (sent / "papers" / "small" / "kind.json").write_text("9.5")
    assert stepping.update(sent)[1] == ""


def test_every_writer_passes_the_check():
    """Files are written, renamed and removed by functions of one module only."""
    calls = r"\.unlink\(|os\.(remove|rename|replace|unlink)\(|rmtree\(|copyfile\(|shutil\.move\("
    offending = [
        f"{path.relative_to(SOURCES)}: {line.strip()}"
        for path in sorted(SOURCES.rglob("*.py"))
        if path != SOURCES / "base" / "files.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(calls, line)
    ]
    assert offending == []
