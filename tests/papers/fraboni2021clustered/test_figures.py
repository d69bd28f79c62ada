"""Figures of fraboni2021clustered, from made-up runs of its own experiments at quick scale."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from papers.fraboni2021clustered.claims import by_alpha
from papers.fraboni2021clustered.simulations import allocate, inclusion, summary, variance

from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import draw_function, load_paper
from fedsampling.experiments.resolving import resolve_experiments, run_settings
from fedsampling.experiments.simulations.simulation import tidy
from papers.fraboni2021clustered import figures_training

KEY = "fraboni2021clustered"
PAPER = load_paper(KEY, Path(__file__).parents[3] / "papers")
RESOLVED = resolve_experiments(PAPER, Config(papers=[KEY], scale="quick"))
EXPERIMENTS = {name: resolved.experiment for name, resolved in RESOLVED.items()}
MNIST = {"clients": 9.5, "labels": 7.0, "loss_std": 0.3, "accuracy_std": 0.2}
SIZES = np.repeat([600, 500, 100], [2, 3, 5])
LABELS = np.arange(10) % 3


def network_runs(experiment, case, rank, sampler):
    """Losses that fall with the round, each sampler's below the one before."""
    rng = np.random.default_rng(rank)
    at = np.arange(0, 9, 2)
    for _ in range(3):
        loss = 2 * np.exp(-0.1 * at) * (1 - 0.02 * rank) + 0.01 * rng.normal()
        columns = {name: (at[1:], np.full(4, x)) for name, x in MNIST.items()}
        columns |= {"loss": (at, loss), "accuracy": (at, 1 - loss / 3)}
        yield columns | {"diverged_at": (np.array([-1]), np.array([-1.0]))}


def allocation_runs(experiment, case, rank, sampler):
    """The distributions that a scheme makes of ten clients, which resemble those of their label."""
    scheme = run_settings(experiment, case, sampler).sampler.model_copy(update={"m": 4})
    if scheme.memory:
        scheme._pairs = (LABELS[:, None] == LABELS)[None].astype(float)
        scheme._G = np.zeros((1, len(SIZES), 1))
    units, group = allocate(SIZES, scheme, 0, 0)
    r, client = units / SIZES.sum(), np.arange(len(SIZES))
    at_end = summary(units, SIZES, LABELS) | {"groups": 5.0, "seen": 10.0}
    of_clients = {"samples": SIZES, "label": LABELS, "group": group, "draws": (r > 0).sum(0)}
    of_clients |= {"variance": variance(r), "inclusion": inclusion(r)}
    of_clients |= {f"share/k={k}": row for k, row in enumerate(r)}
    columns = {name: (np.array([6]), np.array([x])) for name, x in at_end.items()}
    yield columns | {name: (client, x * 1.0) for name, x in of_clients.items()}


def partition_runs(experiment, case, rank, sampler):
    """Twenty clients of fifty samples; the smaller α, the more of one label."""
    rng = np.random.default_rng(0)
    alpha = experiment.cases[case]["dataset"]["partition"]["alpha"]
    for _ in range(2):
        counts = rng.multinomial(50, rng.dirichlet(np.full(10, alpha), 20))
        yield {f"count/label={c}": (np.arange(20), counts[:, c] * 1.0) for c in range(10)}


RUNS = {"network": network_runs, "allocation": allocation_runs, "partition": partition_runs}


def summary_of(experiment):
    parts = [
        tidy(columns).assign(case=case, sampler=sampler, seed=seed)
        for case in experiment.cases
        for rank, sampler in enumerate(experiment.samplers)
        for seed, columns in enumerate(RUNS[experiment.kind](experiment, case, rank, sampler))
    ]
    return Summary(pd.concat(parts, ignore_index=True), experiment.model_dump(mode="json"), {})


@pytest.fixture(scope="module")
def summaries():
    return {name: summary_of(experiment) for name, experiment in EXPERIMENTS.items()}


@pytest.fixture(scope="module")
def artefacts(summaries):
    """Each drawn from no more than the experiments that it names."""
    return {
        name: draw_function(PAPER, name)({key: summaries[key] for key in spec.experiments}, PAPER)
        for name, spec in PAPER.artefacts.items()
    }


@pytest.mark.parametrize("name", PAPER.artefacts)
def test_every_figure_has_data_and_words(artefacts, name):
    drawn = PAPER.artefacts[name].kind == "figure"
    assert (artefacts[name].figure is not None) == bool(artefacts[name].alt) == drawn
    assert len(artefacts[name].data)
    assert not any("nan" in note for note in artefacts[name].notes)


def test_figure2_smooths_the_loss_and_not_the_accuracy(artefacts, summaries):
    data, case = artefacts["figure2"].data, by_alpha(summaries["alpha"])[10]
    chosen = data[(data["sampler"] == "md") & (data["case"] == case) & (data["at"] == 8)]
    # The window is a quarter of the run, and so the last measurement alone.
    mean_loss = summaries["alpha"].per_seed("md", "loss", case, since=8).mean()
    last = summaries["alpha"].per_seed("md", "accuracy", case, since=8).mean()
    means = chosen.set_index("shown")["mean"]
    assert means.to_dict() == pytest.approx({"loss, rolling mean": mean_loss, "accuracy": last})


def test_figures_3_and_4_lay_out_whole_distributions(artefacts):
    for name in ("figure3", "figure4"):
        sums = artefacts[name].data.groupby(["set", "distribution"])["r"].sum()
        np.testing.assert_allclose(sums, 1)
        *_, lower = artefacts[name].figure.axes
        widths = pd.Series([bar.get_width() for bar in lower.patches])
        rows = [round(bar.get_y() + 0.4) for bar in lower.patches]
        np.testing.assert_allclose(widths.groupby(rows).sum(), 1)


def test_figure5_shows_one_draw_and_says_how_alpha_concentrates(artefacts, summaries):
    drawn = artefacts["figure5"]
    assert summaries["partition"].rows["seed"].nunique() > 1  # of which the CSV and notes have one
    assert (drawn.data.groupby(["alpha", "client"])["count"].sum() == 50).all()
    skewed = drawn.data[drawn.data["alpha"] == 0.001]
    largest = skewed.groupby("client")["count"].max().mean() / 50
    assert f"{largest:.2f} at α = 0.001" in drawn.notes[0]
    totals = skewed.groupby("label")["count"].sum()
    assert f"{totals.max() / max(totals.min(), 1):.2f} at α = 0.001" in drawn.notes[1]


def test_grids_mark_a_diverged_run_and_name_the_best(summaries):
    grid = summaries["learning_rate"]
    lost = grid.rows["case"] == "alpha-0.01-step-0.1"
    value = grid.rows["value"].mask(lost & (grid.rows["at"] > 2), np.nan)
    value = value.mask(lost & (grid.rows["at"] < 0), 3.0)
    diverged = Summary(grid.rows.assign(value=value), grid.settings, {})
    drawn = figures_training.grids({**summaries, "learning_rate": diverged}, PAPER)
    assert drawn.data["loss"].isna().sum() == 1
    crosses = [line for line in drawn.figure.axes[0].lines if line.get_marker() == "X"]
    assert [len(line.get_xdata()) for line in crosses] == [1]
    assert "0.05 for α = 0.01 (paper 0.05)" in drawn.notes[0]
    assert "3 of 3 runs diverged" in drawn.notes[1]
