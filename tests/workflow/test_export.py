"""`fedsampling show` and `export`, and `fs.summary` of one's own results."""

import json
import sys
from types import ModuleType

import pandas as pd
import pytest
import torch
import yaml
from tests.shared import PAPERS

import fedsampling as fs
from fedsampling.base.errors import InputError
from fedsampling.experiments.config import parse
from fedsampling.runs import places
from fedsampling.runs.execute import execute
from fedsampling.workflow import export as exporting
from fedsampling.workflow.export import export
from fedsampling.workflow.project import Project
from fedsampling.workflow.show import show

PAPER = "rizk2022importance"
NAME = f"{PAPER}/inclusion"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return a project of which the first two jobs of an experiment have run."""
    root = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "PUBLISHED", root / "none")
        overrides = {PAPER: {"inclusion": {"draws": 50, "seeds": 2}}}
        settings = {"scale": "paper", "papers": [PAPER], "overrides": overrides}
        project = Project(parse(settings), root / "results", PAPERS)
        project.write()
        first = project.plan.jobs_of(f"{PAPER}/inclusion")[:2]
        execute(first, project.config, project.results, lambda *_: None)
        yield project


def first_job(project):
    return project.plan.jobs_of(f"{PAPER}/inclusion")[0]


def test_a_jobs_settings_and_runs_are_shown(project):
    job = first_job(project)
    record = yaml.safe_load("\n".join(show(job.name, project)))
    assert record["settings"]["draws"] == 50
    assert [run["hash"] for run in record["runs"]] == [run.hash for run in job.runs]
    assert all(run["finished"] for run in record["runs"])


def test_a_run_is_shown_by_the_first_digits_of_its_hash(project):
    job = first_job(project)
    run = job.runs[-1]
    record = yaml.safe_load("\n".join(show(run.hash[:8], project)))
    assert (record["run"], record["job"], record["seed"]) == (run.hash, job.name, run.seed)
    assert record["finished"]
    assert record["rows"] > 0
    assert record["settings"] == run.settings


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("000000", "000000: no run of this project has this hash"),
        ("inclusion", "inclusion: is neither a job nor a hash"),
        (f"{NAME}/base/nothing/block-0", "is unknown"),
    ],
)
def test_an_unknown_name_is_one_line(project, name, line):
    with pytest.raises(InputError, match=line):
        [*show(name, project)]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_table_has_every_value_and_the_settings(project, tmp_path, form):
    path = tmp_path / f"runs.{form}"
    lines = [*export([NAME], form, path, project)]
    table = pd.read_csv(path) if form == "csv" else pd.read_parquet(path)
    jobs = project.plan.jobs_of(f"{PAPER}/inclusion")
    finished = sum(len(job.runs) for job in jobs[:2])
    assert lines[0] == f"{path}: {finished} runs"
    assert lines[1].endswith("not finished, and left out; 'snakemake' computes them")
    start = ["paper", "experiment", "case", "sampler", "seed", "at", "metric", "value"]
    assert [*table.columns[:8]] == start
    assert table["hash"].nunique() == finished
    assert {*table["draws"]} == {50}
    assert {*table["experiment"]} == {"inclusion"}
    own = fs.summary(PAPER, "inclusion", results=project.results)
    assert len(own) == len(table)
    assert own["value"].sum() == pytest.approx(table["value"].sum())


def test_the_default_file_is_in_the_results(project):
    first, *_ = export([NAME], "csv", None, project)
    assert first.startswith(f"{project.results}/export/{PAPER}-inclusion.csv: ")


@pytest.mark.parametrize(("form", "package"), sorted(exporting.PACKAGES.items()))
def test_a_missing_package_is_one_line(project, form, package, monkeypatch):
    monkeypatch.setattr(exporting, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=f"needs the package {package}, which is not installed"):
        [*export([NAME], form, None, project)]


def test_weights_and_biases_gets_each_seed_offline(project, tmp_path, monkeypatch):
    runs = []

    class Run:
        def __init__(self, **options):
            runs.append(self)
            self.options, self.summary, self.logged = options, {}, []

        def log(self, values, step):
            self.logged.append((step, values))

        def finish(self):
            self.finished = True

    wandb = ModuleType("wandb")
    wandb.init = Run
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setattr(exporting, "find_spec", lambda name: True)
    [*export([NAME], "wandb-offline", tmp_path / "wandb", project)]
    assert all(run.options["mode"] == "offline" and run.finished for run in runs)
    assert {run.options["config"]["draws"] for run in runs} == {50}
    assert all([*dict(run.logged)] == sorted(dict(run.logged)) for run in runs)


def test_tensorboard_gets_each_value(project, tmp_path, monkeypatch):
    written = {}

    class SummaryWriter:
        def __init__(self, folder):
            self.scalars = written.setdefault(folder, [])

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def add_scalar(self, metric, value, at):
            self.scalars.append((metric, value, at))

        def add_text(self, tag, text):
            assert "draws: 50" in text

    module = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    monkeypatch.setattr(exporting, "find_spec", lambda name: True)
    [*export([NAME], "tensorboard", tmp_path / "board", project)]
    job = first_job(project)
    folder = tmp_path / "board" / NAME / job.case / job.sampler / f"seed-{job.runs[0].seed}"
    assert len(written[folder]) > 0
    total = sum(len(scalars) for scalars in written.values())
    assert total == len(fs.summary(PAPER, "inclusion", results=project.results))


def test_a_history_has_its_settings():
    data = fs.load("mnist", "by_digit", data="embedded")
    work = {"model": "mlp", "steps": 1, "batch": 5, "step": 0.1, "rounds": 1}
    history = fs.train(data, fs.scheme("md", m=5), seeds=[3, 4], **work)
    settings = history.attrs["settings"]
    assert settings["sampler"] == {"name": "md", "m": 5, "duplicates": "independently"}
    assert settings["work"]["step"] == 0.1
    assert settings["seeds"] == [3, 4]


def test_a_historys_settings_have_defaults_and_own_functions_by_name():
    def gap(outputs, targets):
        return torch.nn.functional.cross_entropy(outputs, targets, reduction="none")

    data = fs.load("mnist", "by_digit", data="embedded")
    work = {"model": "mlp", "steps": 1, "batch": 5, "step": 0.1, "rounds": 1, "server": "fedavgm"}
    metrics = {"one": lambda *_: 1.0}
    settings = fs.train(data, "full", loss=gap, metrics=metrics, **work).attrs["settings"]
    assert (settings["loss"], settings["metrics"]) == ("gap", ["one"])
    assert settings["work"]["momentum"] == 0.0
    assert settings["evaluation"]["by_client"] is False
    assert settings["server"]["momentum"] == 0.9
    assert settings["failures"] is None
    assert json.loads(json.dumps(settings)) == settings
