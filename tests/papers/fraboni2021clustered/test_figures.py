"""Figures of fraboni2021clustered, from its published runs."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from papers.fraboni2021clustered.claims import by_alpha

from fedsampling.experiments.papers import draw_function, load_paper
from papers.fraboni2021clustered import figures_training

from ..shared import PAPERS, behind, published

KEY = "fraboni2021clustered"
PAPER = load_paper(KEY, PAPERS)


@cache
def drawn(name):
    return draw_function(PAPER, name)(behind(KEY, PAPER.artefacts[name]), PAPER)


def test_figure2_smooths_the_loss_and_not_the_accuracy():
    data, runs = drawn("figure2").data, published(KEY, "alpha")
    last = data["at"].max()
    case = by_alpha(runs)[10]
    chosen = data[(data["sampler"] == "md") & (data["case"] == case) & (data["at"] == last)]
    window = min(50, last / 4)
    mean_loss = runs.per_seed("md", "loss", case, since=last - window + 1).mean()
    accuracy = runs.per_seed("md", "accuracy", case, since=last).mean()
    means = chosen.set_index("shown")["mean"].to_dict()
    assert means == pytest.approx({"loss, rolling mean": mean_loss, "accuracy": accuracy})


@pytest.mark.parametrize("name", ["figure3", "figure4"])
def test_figures_3_and_4_lay_out_whole_distributions(name):
    sums = drawn(name).data.groupby(["set", "distribution"])["r"].sum()
    np.testing.assert_allclose(sums, 1)
    *_, lower = drawn(name).figure.axes
    widths = pd.Series([bar.get_width() for bar in lower.patches])
    rows = [round(bar.get_y() + 0.4) for bar in lower.patches]
    np.testing.assert_allclose(widths.groupby(rows).sum(), 1)


def test_figure5_shows_one_draw():
    data = drawn("figure5").data
    assert published(KEY, "partition").rows["seed"].nunique() > 1
    assert len(data.groupby(["alpha", "client"])) == 100 * data["alpha"].nunique()


def test_grids_mark_a_diverged_run_and_name_the_best():
    runs = behind(KEY, PAPER.artefacts["grids"])
    rows = runs["learning_rate"].rows
    lost = rows["case"] == "alpha-0.01-step-0.1"
    value = rows["value"].mask(lost & (rows["at"] > 2), np.nan).mask(lost & (rows["at"] < 0), 3.0)
    runs["learning_rate"] = replace(runs["learning_rate"], rows=rows.assign(value=value))
    artefact = figures_training.grids(runs, PAPER)
    assert artefact.data["loss"].isna().sum() == 1
    crosses = [line for line in artefact.figure.axes[0].lines if line.get_marker() == "X"]
    assert [len(line.get_xdata()) for line in crosses] == [1]
    assert "for α = 0.01 (paper 0.05)" in artefact.notes[0]
    assert "3 of 3 runs diverged" in artefact.notes[1]
