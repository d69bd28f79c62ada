"""Users' models: in the configuration, in the hashes of their runs, and in jobs."""

import os

import pandas as pd
import pytest
from tests.shared import PAPERS, line_of

import fedsampling as fs
from fedsampling.base.errors import InputError
from fedsampling.base.records import check
from fedsampling.experiments.config import parse
from fedsampling.learning.models.settings import Model
from fedsampling.runs.places import run_stores
from fedsampling.runs.store import find
from fedsampling.workflow.check import check_all
from fedsampling.workflow.project import Project
from fedsampling.workflow.run import execute_all

MODEL = """from torch import nn


class Two(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(784, 4), nn.ReLU(), nn.Linear(4, 10))
"""
PARAMETERS = 784 * 4 + 4 + 4 * 10 + 10
SAMPLERS = {"*": None, "md": {"name": "md", "m": 4}}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my_model.py"
    path.write_text(MODEL)
    return path


def project(file, name="Two", samplers=SAMPLERS, **model):
    model |= {"file": str(file), "name": name}
    changes = {"model": model, "samplers": samplers, "seeds": 1}
    config = {"scale": "quick", "data": "embedded", "experiments": ["crossmatrix/digit"]}
    config["overrides"] = {"crossmatrix": {"digit": changes}}
    return Project(parse(config), file.parent / "results", PAPERS)


def hashes(project):
    return [run.hash for job in project.plan.jobs.values() for run in job.runs]


def test_jobs_of_the_pipeline_train_the_users_model(file):
    with_model = project(file)
    assert check_all(with_model)
    jobs = list(with_model.plan.jobs.values())
    assert execute_all(jobs, with_model, lambda manifest: None) == 0
    target, _ = run_stores(with_model.results, with_model.config)
    run = find([target], jobs[0].runs[0].hash, jobs[0].code)
    bits = run.table["value"][run.table["metric"] == "model_bits"]
    assert {*bits} == {4 * 32 * PARAMETERS}  # four clients send it in each round


def test_changed_content_gives_other_runs(file):
    before = hashes(project(file))
    file.write_text(MODEL.replace("784, 4", "784, 5").replace("nn.Linear(4", "nn.Linear(5"))
    os.utime(file, ns=(0, 0))
    assert hashes(project(file)) != before


LOSS = """
def doubled(outputs, targets):
    return 2 * nn.functional.cross_entropy(outputs, targets, reduction="none")
"""


def test_the_users_loss_is_minimised(file):
    file.write_text(MODEL + LOSS)
    data = fs.load("mnist", "by_digit", data="embedded")
    histories = [
        fs.train(data, "full", model=model, step=step, steps=2, batch=5, rounds=2)
        for named, step in (({"loss": "doubled"}, 0.1), ({}, 0.2))
        for model in [{"file": str(file), "name": "Two", **named}]
    ]
    pd.testing.assert_frame_equal(*(table[table["metric"] == "accuracy"] for table in histories))
    assert hashes(project(file, loss="doubled")) != hashes(project(file))


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        (MODEL, "Too", "name: 'Too' is not defined in {file}"),
        ("class Two(:", "Two", "{file}: line 1: SyntaxError: invalid syntax; fix the file"),
        ("-" * 200_000 + "1\n", "Two", "{file}: MemoryError"),
        ("def two():\n    1 / 0\n", "two", "{file}:2, in two: ZeroDivisionError: division"),
    ],
)
def test_errors_in_the_users_file_are_one_line_in_the_check(file, text, name, line):
    file.write_text(text)
    assert line.format(file=file) in line_of(lambda: check_all(project(file, name)))


def test_a_hostile_file_is_one_line_of_plain_text():
    hostile = {"file": f"{'x' * 5000}\nfedsampling: it passes\x1b[2J.py", "name": "Two"}
    message = line_of(check, Model, hostile, "")
    assert r"\nfedsampling: it passes\x1b[2J.py' is not a Python file" in message
    assert message.isprintable()


def test_a_sampler_that_needs_the_last_layers_inputs_is_rejected(file):
    needy = {"*": None, "het": {"name": "delayhet_sampling", "m": 4, "share": 0.99}}
    with pytest.raises(InputError, match="needs the inputs of the last layer"):
        check_all(project(file, samplers=needy))
