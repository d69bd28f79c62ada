"""The library: what `import fedsampling` promises, its examples, and its mistakes."""

import doctest
import inspect
import re
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
from tests.processes import run_as_if_alone, run_python
from tests.shared import ROOT, line_of, lines_of

import fedsampling as fs
from fedsampling.api.arguments import OTHER_KEYWORDS
from fedsampling.experiments.simulations.simulation import RunContext, Simulation
from fedsampling.learning.training.history import METRICS

WORK = {"model": "mlp", "steps": 2, "batch": 5, "step": 0.1, "rounds": 4}
PARTITION = {"name": "all_by_dirichlet", "alpha": 0.5, "clients": 20}
MD = fs.scheme("md", m=4)
LARGE = {"name": "mlp", "hidden": 10**11}


@pytest.fixture(scope="module")
def data():
    return fs.load("mnist", PARTITION, data="embedded")


def test_all_public_names_exist_and_are_imported_on_first_use():
    assert all(getattr(fs, name) is not None for name in fs.__all__)
    assert set(fs.__all__) <= set(dir(fs))
    code = "import sys, fedsampling; print(sorted({'torch', 'pandas', 'numpy'} & set(sys.modules)))"
    assert run_python("-c", code).strip() == "[]"
    assert all(f"`{name}`" in (fs.__doc__ or "") for name in fs.__all__)


def test_settings_are_keywords_dicts_or_records(data):
    record = fs.partitions.AllByDirichlet(alpha=0.5, clients=20)
    from_record = fs.load("mnist", partition=record, data="embedded")
    np.testing.assert_array_equal(from_record.start, data.start)
    assert fs.load("mnist", "by_digit", data="embedded").n_clients == 100
    first = fs.train(data, fs.scheme("md", m=4), **WORK)
    second = fs.train(data, {"name": "md", "m": 4}, **{**WORK, "model": {"name": "mlp"}})
    pd.testing.assert_frame_equal(first, second)


def test_training_is_that_of_the_papers_runs(data):
    history = train(data, seeds=2, evaluate_every=2, server_step=0.5)
    assert list(history.columns) == ["seed", "at", "metric", "value"]
    settings = {
        "kind": "network",
        "dataset": {"name": "mnist", "partition": PARTITION},
        "inputs": "unit",
        "model": {"name": "mlp"},
        "work": {"steps": 2, "batch": 5, "step": 0.1},
        "server_step": 0.5,
        "sampler": {"name": "md", "m": 4},
        "rounds": 4,
        "evaluation": {"every": 2},
    }
    run = Simulation.model_validate(settings)
    for seed, table in enumerate(run.simulate("embedded", [0, 1], RunContext(Path(), None)).tables):
        of_seed = history[history["seed"] == seed].drop(columns="seed").reset_index(drop=True)
        pd.testing.assert_frame_equal(of_seed, table.astype({"metric": str}))


def train(data, **changes):
    return fs.train(data, MD, **(WORK | changes))


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda _: fs.load("mnst"), "dataset.name: 'mnst' is unknown; did you mean 'mnist'?"),
        (lambda _: fs.load("dna", data="embedded"), "partition: missing; choose one of `feds"),
        (lambda _: fs.load("mnist", "by_digit", data="real"), "data: 'real' is unknown; known: "),
        (lambda _: fs.load("mnist", fs.partitions.ByDigit), "partition: the class ByDigit is inva"),
        (lambda _: fs.check_sampler("md"), "scheme: 'md' is not a sampler; use one with its sett"),
        *(
            (lambda _, n=n: fs.check_sampler(MD, runs=n), f"runs: {n!r} is i")
            for n in (99, 2.5, "x")
        ),
        (lambda _: fs.summary(1, "mnist"), "paper: 1 is invalid; must be its name"),
        (lambda _: fs.summary("fraboni2021clustered", "mnit"), "experiment: 'mnit' is unknown; di"),
        (lambda _: train("mnist"), "data: 'mnist' is invalid; use fedsampling.load"),
        (lambda d: train(d, steps=None), "steps, epochs: neither is given"),
        (lambda d: train(d, model=LARGE), "memory: not enough for this run;"),
        (lambda d: train(d, schedule="stairs"), "schedule: every: required if name is 'stairs', o"),
        (lambda d: train(d, metrics=["f1"]), "metrics: an object of list is invalid; must map na"),
        (lambda d: train(d, metrics={"mine": lambda m, x, y: m(x)}), "metrics.mine: ValueError: o"),
        (lambda d: train(d, metrics={"reports": lambda *_: 0.0}), "metrics: the history already h"),
        (lambda d: train(d, every=2), "every: unknown key; did you mean 'evaluate_every'?"),
        (lambda d: train(d, checkpoint=3), "checkpoint: 3 is invalid; must be a folder"),
        (lambda d: train(d, on_round="stop"), "on_round: 'stop' is invalid; must be a function"),
    ],
)
def test_mistakes_get_one_line(call, line, data):
    assert line_of(call, data).startswith(line)


def test_keywords_of_other_libraries_are_translated(data):
    batch = "batch: missing; add it (samples of a batch, B)"
    for step, *lines in (
        ({"lr": 0.1}, "lr: unknown key; did you mean 'step'?"),
        ({}, batch, "step: missing; add it (local learning rate η_l)"),
    ):
        assert lines_of(fs.train, data, MD, model="mlp", steps=1, rounds=2, **step) == lines
    keywords = {*inspect.signature(fs.train).parameters, "server_step", "prox", "server"}
    assert {*OTHER_KEYWORDS.values()} <= keywords


def test_errors_in_a_users_sampler_get_one_line(data):
    class Wrong(fs.Scheme, name="wrong"):
        """Selects a list, which is no Slots."""

        def select(self, state, view, rng):
            return [1, 2]

    try:
        for call in (lambda: fs.train(data, Wrong(), **WORK), lambda: fs.check_sampler(Wrong())):
            with pytest.raises(fs.InputError, match="round 0: select returned a list of"):
                call()
    finally:
        Wrong.named = ""  # no longer found


def test_shipped_evidence_is_a_table(monkeypatch, tmp_path):
    rows = fs.summary("fraboni2021clustered", "mnist")
    assert list(rows.columns) == ["case", "sampler", "seed", "at", "metric", "value"]
    assert rows.attrs["scale"] == "paper"
    monkeypatch.chdir(tmp_path)  # a notebook may lie anywhere
    pd.testing.assert_frame_equal(fs.summary("fraboni2021clustered", "mnist"), rows)


def test_tutorial_runs(tmp_path):
    """With fewer rounds and seeds."""
    notebook = nbformat.read(ROOT / "docs" / "tutorial.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    output_types = [output.output_type for cell in cells for output in cell.outputs]
    assert len(output_types) >= 6
    assert "error" not in output_types
    code = "\n".join(cell.source for cell in cells)
    for full, small in (('"rounds": 20', '"rounds": 3'), ("seeds=5", "seeds=2")):
        assert full in code
        code = code.replace(full, small)
    printed = run_as_if_alone(f"{code}\nprint('columns', *table)", tmp_path)
    rows = re.findall(r"^(\S+) & .*\d\] & ", printed, flags=re.MULTILINE)
    assert {*rows} == {"md", r"clustered\_size", r"power\_of\_choice", r"by\_loss"}
    stored = re.findall(r"<th>([a-z_]+)</th>", cells[5].outputs[0].data["text/html"])
    assert stored == printed.rpartition("columns ")[2].split()


def test_list_names_every_metric_of_a_training_run(data):
    assert set(train(data)["metric"]) <= METRICS.keys()


def test_a_seeds_history_does_not_depend_on_the_others_if_rounds_are_empty(data):
    poisson, work = fs.scheme("poisson", m=1), WORK | {"rounds": 6}
    together = fs.train(data, poisson, seeds=4, **work)
    assert (together[together["metric"] == "clients"]["value"] == 0).any()
    for seed in range(4):
        alone = fs.train(data, poisson, seeds=[seed], **work)
        of_seed = together[together["seed"] == seed].reset_index(drop=True)
        pd.testing.assert_frame_equal(alone, of_seed)


def test_a_callback_sees_the_history_and_may_stop(data):
    seen = []

    def stop(history):
        seen.append(int(history["at"].max()))
        return np.array(seen)[-1] == 2  # as comparisons of tables give it

    stopped = train(data, on_round=stop, seeds=2)
    assert seen == [0, 1, 2]
    full = train(data, seeds=2)
    early = full[full["at"] <= 2].reset_index(drop=True)
    pd.testing.assert_frame_equal(stopped, early)
    seen.clear()
    train(data, on_round=lambda history: seen.append(int(history["at"].max())))
    assert seen == sorted(full["at"].unique())[-len(seen) :]
    assert seen[-1] == full["at"].max()


def test_optimisers_and_schedules_are_chosen_by_keyword(data):
    plain = train(data)
    for off in (
        {"momentum": 0, "clip": None, "schedule": None},
        {"server": {"name": "fedavgm", "momentum": 0}},
    ):
        pd.testing.assert_frame_equal(plain, train(data, **off), rtol=1e-4)
    for keywords in (
        {"momentum": 0.9},
        {"clip": 0.01},
        {"schedule": "cosine"},
        {"server": "fedadam", "server_step": 0.01},
    ):
        changed = train(data, **keywords)
        assert not np.allclose(changed["value"], plain["value"], equal_nan=True), keywords


def test_progress_is_shown_where_asked(data, capsys):
    train(data)
    assert capsys.readouterr().err == ""  # not a terminal
    train(data, progress=True)
    printed = capsys.readouterr().err
    assert "md: 4 of 4 (100 %), 0 s left" in printed
    assert printed.endswith("\r")


def test_training_uses_one_thread_unless_told_otherwise(data, monkeypatch):
    before = torch.get_num_threads()
    seen = []
    watch = {"on_round": lambda history: seen.append(torch.get_num_threads())}
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    train(data, rounds=1, **watch)
    train(data, threads=2, rounds=1, **watch)
    monkeypatch.setenv("OMP_NUM_THREADS", str(before))
    train(data, rounds=1, **watch)
    assert seen == [1, 1, 2, 2, before, before]
    assert torch.get_num_threads() == before


FUNCTIONS = [name for name in fs.__all__ if inspect.isfunction(getattr(fs, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_example_of_a_function_runs(name, tmp_path, monkeypatch):
    if name == "from_huggingface":
        pytest.importorskip("datasets", reason="needs Hugging Face's datasets")
    monkeypatch.chdir(tmp_path)
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(fs, name), name)
    assert example.examples
    output = []
    doctest.DocTestRunner().run(example, out=output.append)
    assert not output, "".join(output)
