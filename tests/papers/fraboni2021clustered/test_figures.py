"""Figures of fraboni2021clustered, from its published runs."""

import numpy as np
import pandas as pd
import pytest

from fedsampling.experiments.papers import draw_function, load_paper

from ..shared import PAPERS, behind, changed

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


def test_figure5_sorts_clients_by_their_most_frequent_class():
    artefact = draw_function(PAPER, "figure5")(behind(KEY, PAPER.artefacts["figure5"]), PAPER)
    columns = artefact.data["alpha"].nunique()
    for axes in artefact.figure.axes[:columns]:
        shares = np.array([[bar.get_height() for bar in bars] for bars in axes.containers])
        assert (np.diff(shares.argmax(axis=0)) >= 0).all()


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
