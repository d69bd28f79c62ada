"""Figures of fraboni2021clustered, from its published runs."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from papers.fraboni2021clustered.lines import CLUSTERED, late

from fedsampling.base.text import show_interval
from fedsampling.evidence.statistics import holm, ratio
from fedsampling.experiments.papers import draw_function, load_paper
from papers.fraboni2021clustered import figures_clients

from ..shared import PAPERS, behind, changed, published

KEY = "fraboni2021clustered"
PAPER = load_paper(KEY, PAPERS)


@pytest.mark.parametrize("name", ["figure3", "figure4"])
def test_figures_3_and_4_lay_out_whole_distributions(name):
    artefact = draw_function(PAPER, name)(behind(KEY, PAPER.artefacts[name]), PAPER)
    sums = artefact.data.groupby(["set", "distribution"])["r"].sum()
    np.testing.assert_allclose(sums, 1)
    *_, lower = artefact.figure.axes
    widths = pd.Series([bar.get_width() for bar in lower.patches])
    rows = [round(bar.get_y() + 0.4) for bar in lower.patches]
    np.testing.assert_allclose(widths.groupby(rows).sum(), 1)


def test_figure5_sorts_clients_by_their_main_class_the_purest_first():
    counts = np.array([[1, 1, 2], [9, 1, 0], [0, 3, 1], [2, 0, 0]])
    assert figures_clients.shares_by_class(counts).tolist() == [
        [100, 0, 0],
        [90, 10, 0],
        [0, 75, 25],
        [25, 25, 50],
    ]


def test_figure5_draws_each_clients_shares_up_to_100_per_cent():
    artefact = draw_function(PAPER, "figure5")(behind(KEY, PAPER.artefacts["figure5"]), PAPER)
    data = artefact.data
    for axes, (_, table) in zip(artefact.figure.axes, data.groupby("alpha"), strict=False):
        classes = axes.collections
        assert len(classes) == table["label"].nunique()
        upper = classes[-1].get_paths()[0].get_extents()
        assert (upper.x0, upper.x1) == (-0.5, table["client"].nunique() - 0.5)
        assert upper.y1 == pytest.approx(100)


def test_grids_name_the_values_that_the_best_does_not_differ_from():
    runs = behind(KEY, PAPER.artefacts["grids"])
    words = draw_function(PAPER, "grids")(runs, PAPER).caption_end
    seeds = len(runs["prox_grid"].settings["seeds"])
    assert f"does not differ significantly from 0.001, 0.01 and 0.1 ({seeds} seeds)." in words
    case = next(iter(runs["prox_grid"].settings["cases"]))
    grid = runs["prox_grid"]
    runs["prox_grid"] = changed(grid, lambda loss: 0 * loss + 0.1, metric="loss", case=case)
    better = draw_function(PAPER, "grids")(runs, PAPER).caption_end
    assert "differ" not in better.rpartition("The best μ")[2]


def test_the_list_of_sentences_has_the_spreads_over_clients_of_fresh_seeds():
    runs = published(KEY, "confirm_mnist")
    keys = list(product(("loss", "accuracy"), CLUSTERED))
    pairs = {
        (metric, name): tuple(late(runs, sampler, f"{metric}_std") for sampler in (name, "md"))
        for metric, name in keys
    }
    times = {key: show_interval(e.value, e.low, e.high) for key, e in holm(pairs, ratio).items()}
    text = (PAPERS.parent / "docs" / "sentences.md").read_text(encoding="utf-8")
    (row,) = (line for line in text.splitlines() if line.startswith("| Lower variance of loss"))
    found = [row.index(times[key]) for key in keys]
    assert found == sorted(found)
    assert f"with {runs.rows['seed'].nunique()} fresh seeds" in row
