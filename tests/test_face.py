"""The names that others rely on: what `import fedsampling` and a few modules promise."""

import inspect
import re
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from tests.processes import run_as_if_alone, run_python

import fedsampling as fs
from fedsampling.experiments.simulations.simulation import Simulation, Where
from fedsampling.library_arguments import OTHER_KEYWORDS
from fedsampling.workflow.listing import METRICS

ROOT = Path(__file__).parents[1]
WORK = {"model": "mlp", "steps": 2, "batch": 5, "step": 0.1, "rounds": 2}


@pytest.fixture(scope="module")
def data():
    partition = fs.partitions.AllByDirichlet(alpha=0.5, clients=20)
    return fs.load("mnist", partition=partition, data="embedded")


def test_pure_functions_keep_their_names_and_meanings():
    from fedsampling.evidence.statistics import compare, difference
    from fedsampling.samplers.clustered import allocate_by_similarity, allocate_by_size
    from fedsampling.samplers.importance import hartley_rao
    from fedsampling.samplers.latency import best_distribution, best_subset
    from fedsampling.samplers.optimal import approximate_probabilities, probabilities
    from fedsampling.theory.heterogeneity import pairwise
    from fedsampling.theory.weights import statistics

    rng = np.random.default_rng(0)
    sizes = np.array([10, 20, 30, 40, 50, 60])
    updates = rng.normal(size=(6, 3))
    for r in (
        allocate_by_size(sizes, 3),
        *(allocate_by_similarity(sizes, updates, 3, how, rng) for how in ("arccos", "l2", "l1")),
    ):
        np.testing.assert_allclose(r.sum(1), 1)  # each of m distributions
        np.testing.assert_allclose(r.sum(0), 3 * sizes / sizes.sum())  # unbiased
    norms = np.array([1.0, 2.0, 3.0, 100.0])
    exact = probabilities(norms, 2)
    np.testing.assert_allclose(exact, [1 / 6, 2 / 6, 3 / 6, 1])
    np.testing.assert_allclose(approximate_probabilities(norms, 2, 10), exact)
    assert len(hartley_rao(np.array([0.5, 0.5, 0.25, 0.75]), rng)) == 2
    features = rng.normal(size=(4, 9, 2))
    heterogeneity = pairwise(features)
    gram = np.einsum("mnd,mne->mde", features, features) / 9
    inverse = np.linalg.inv(gram.mean(0))
    np.testing.assert_allclose(
        heterogeneity[0, 1], np.linalg.norm((gram[0] - gram[1]) @ inverse, 2)
    )
    delays = np.array([1.0, 2.0, 3.0, 4.0])
    heterogeneity /= 4 * heterogeneity.max()  # Assumption 3
    distances = np.where(np.eye(4), 0, 0.9)  # so that more than one client is worth waiting for
    for solver in ("exact", "minnorm"):
        indices, alpha = best_subset(distances, delays, solver)
        assert indices.tolist() == [0, 1, 2]
        np.testing.assert_allclose(alpha, [1 / 2, 1 / 4, 1 / 4])
    for solver in ("analytic", "vertex"):
        np.testing.assert_allclose(best_distribution(heterogeneity, delays, 2, solver).sum(), 1)
    p = np.array([0.1, 0.2, 0.3, 0.4])
    for scheme, expected in {
        "full": (0 * p, 0, 0),
        "md": (p * (1 - p) / 2, 1 / 2, 0),
        "uniform": (p**2, 1 / 3, 1 / 15),
        "poisson": (p / 2 - p**2, 0, 1 / 5),
        "binomial": (p**2, 0, 3 / 10),
    }.items():
        for result, closed_form in zip(statistics(scheme, p, 2), expected, strict=True):
            np.testing.assert_allclose(result, closed_form, atol=1e-15)
    estimate = compare([1.0, 2.0, 3.5], [0.0, 1.0, 2.0], difference)
    assert estimate.low < estimate.value < estimate.high
    assert estimate.n == 3


def test_all_public_names_exist_and_are_imported_on_first_use():
    assert all(getattr(fs, name) is not None for name in fs.__all__)
    assert set(fs.__all__) <= set(dir(fs))
    code = "import sys, fedsampling; print(sorted({'torch', 'pandas', 'numpy'} & set(sys.modules)))"
    assert run_python("-c", code).strip() == "[]"
    assert all(f"`{name}`" in (fs.__doc__ or "") for name in fs.__all__)


def test_settings_are_keywords_dicts_or_records(data):
    as_dict = {"name": "all_by_dirichlet", "alpha": 0.5, "clients": 20}
    from_dict = fs.load("mnist", as_dict, data="embedded")
    np.testing.assert_array_equal(from_dict.start, data.start)
    assert fs.load("mnist", "by_digit", data="embedded").n_clients == 100
    first = fs.train(data, fs.scheme("md", m=4), **WORK)
    second = fs.train(data, {"name": "md", "m": 4}, **{**WORK, "model": {"name": "mlp"}})
    pd.testing.assert_frame_equal(first, second)


def test_training_is_that_of_the_papers_runs(data):
    history = fs.train(
        data, fs.scheme("md", m=4), seeds=2, evaluate_every=2, server_step=0.5, **WORK
    )
    assert list(history.columns) == ["seed", "at", "metric", "value"]
    settings = {
        "kind": "network",
        "dataset": {
            "name": "mnist",
            "partition": {"name": "all_by_dirichlet", "alpha": 0.5, "clients": 20},
        },
        "inputs": "unit",
        "model": {"name": "mlp"},
        "work": {"steps": 2, "batch": 5, "step": 0.1},
        "server_step": 0.5,
        "sampler": {"name": "md", "m": 4},
        "rounds": 2,
        "evaluation": {"every": 2},
    }
    run = Simulation.model_validate(settings)
    for seed, table in enumerate(run.simulate("embedded", [0, 1], Where(Path(), None)).tables):
        of_seed = history[history["seed"] == seed].drop(columns="seed").reset_index(drop=True)
        pd.testing.assert_frame_equal(of_seed, table.astype({"metric": str}))


MD = fs.scheme("md", m=2)
LARGE = {"name": "mlp", "hidden": 10**11}


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda _: fs.load("mnst"), "dataset.name: 'mnst' is unknown; did you mean 'mnist'?"),
        (lambda _: fs.load("dna", data="embedded"), "partition: missing; dna needs one of all_by"),
        (lambda _: fs.load("mnist", "by_digit", data="real"), "data: 'real' is unknown; known: "),
        (lambda d: fs.train(d, MD, **{**WORK, "steps": None}), "steps, epochs: neither is given"),
        (lambda _: fs.train("mnist", MD, **WORK), "data: 'mnist' is invalid; use fedsampling.load"),
        (lambda d: fs.train(d, MD, **{**WORK, "model": LARGE}), "memory: not enough for this run;"),
        (lambda _: fs.check_sampler("md"), "scheme: 'md' is not a sampler; use one with its sett"),
        (lambda _: fs.load("mnist", fs.partitions.ByDigit), "partition: the class ByDigit is inva"),
        (lambda _: fs.summary(1, "mnist"), "paper: 1 is invalid; must be its name"),
        (lambda _: fs.summary("fraboni2021clustered", "mnit"), "experiment: 'mnit' is unknown; di"),
    ],
)
def test_mistakes_get_one_line(call, line, data):
    with pytest.raises(fs.InputError) as error:
        call(data)
    assert [text[: len(line)] for text in error.value.lines] == [line]


@pytest.mark.parametrize("key", ["settings", "samplers"])
def test_an_unknown_key_of_train_suggests_only_valid_ones(key, data):
    with pytest.raises(fs.InputError) as error:
        fs.train(data, "md", **WORK, **{key: 1})
    (line,) = error.value.lines
    assert "'sampler'" not in line
    assert not {"sampler", "settings"} & set(line.partition("known: ")[2].split(", "))


def test_keywords_of_other_libraries_are_translated(data):
    without_step = {key: value for key, value in WORK.items() if key != "step"}
    for settings, lines in (
        (WORK | {"lr": 0.1}, ("lr: unknown key; did you mean 'step'?",)),
        (without_step | {"lr": 0.1}, ("lr: unknown key; did you mean 'step'?",)),
        (
            {"model": "mlp", "steps": 1, "rounds": 2},
            (
                "batch: missing; add it (samples of a batch, B)",
                "step: missing; add it (local learning rate η_l)",
            ),
        ),
    ):
        with pytest.raises(fs.InputError) as error:
            fs.train(data, "full", **settings)
        assert error.value.lines == lines
    keywords = {*inspect.signature(fs.train).parameters, "server_step", "prox", "server"}
    assert {*OTHER_KEYWORDS.values()} <= keywords


def test_errors_in_a_users_sampler_get_one_line(data):
    class Wrong(fs.Scheme, name="wrong"):
        """Selects a list, which is no Slots."""

        def select(self, view, rng):
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
    printed = run_as_if_alone(code, tmp_path)
    rows = re.findall(r"^(\S+) & .*\d\] & ", printed, flags=re.MULTILINE)
    assert {*rows} == {"md", r"clustered\_size", r"power\_of\_choice", r"by\_loss"}


def test_list_names_every_metric_of_a_training_run(data):
    assert set(fs.train(data, fs.scheme("uniform", m=2), **WORK)["metric"]) <= METRICS.keys()
