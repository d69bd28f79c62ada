"""Artefacts of rizk2022importance, from tiny runs of its own experiments."""

import numpy as np
import pytest

from fedsampling.experiments.papers import draw_function, load_paper
from fedsampling.report.drawing.style import LABEL

from ..shared import PAPERS

PAPER = load_paper("rizk2022importance", PAPERS)


@pytest.fixture(scope="module")
def artefacts(pipeline):
    names = ("figure1", "figure2", "inclusion", "sensitivity")
    return {name: draw_function(PAPER, name)(pipeline.summaries, PAPER) for name in names}


def test_figure1_is_the_mean_over_seeds_and_one_line_for_each_scheme(pipeline, artefacts):
    data = artefacts["figure1"].data
    for sampler in ("fedavg", "isfedavg-tracked"):
        chosen = pipeline.summaries["regression"].select(sampler, "msd", since=40, until=40)
        row = data[(data["sampler"] == sampler) & (data["at"] == 40)]
        row = row[row["panel"] == "the fall"]
        assert row["mean"].item() == pytest.approx(chosen["value"].mean())
        assert row["n"].item() == 4
    for axes, (_, panel) in zip(
        artefacts["figure1"].figure.axes, data.groupby("panel"), strict=True
    ):
        lines = [line for line in axes.lines if line.get_label() != LABEL]  # not the paper's
        assert len(lines) == panel["sampler"].nunique()
        assert all(np.isfinite(line.get_ydata()).all() for line in lines)
    assert data["sampler"].nunique() == 6


def test_sensitivity_gap_is_that_of_the_mean_msd_in_decibels(pipeline, artefacts):
    level = {
        sampler: pipeline.summaries[name].per_seed(sampler, "msd", "noise-1e4", since=0.8 * 20)
        for name, sampler in (("uncorrected", "fedavg"), ("sensitivity", "isfedavg-optimal"))
    }
    gap = 10 * np.log10(level["fedavg"].mean() / level["isfedavg-optimal"].mean())
    data = artefacts["sensitivity"].data.set_index(["comparison", "case"])
    assert data.loc[("FedAvg over true", "noise-1e4"), "gap_db"] == pytest.approx(gap)


def test_sensitivity_is_drawn_against_noise_and_as_maps(artefacts):
    noise, problems, *maps = artefacts["sensitivity"].figure.axes
    x = noise.containers[0].lines[0].get_xdata()
    np.testing.assert_allclose(x, [1, 1e2, 1e4, 1e6, 1e8])
    assert [text.get_text() for text in problems.get_xticklabels()] == ["default"]
    data = artefacts["sensitivity"].data
    gaps = data[data["experiment"] == "few"].groupby("comparison")["gap_db"].mean()
    for axes, name in zip(maps, ("FedAvg over true", "tracked over true"), strict=True):
        (cell,) = axes.images[0].get_array().ravel()
        assert cell == pytest.approx(gaps[name])


def test_figure2_is_in_per_cent_and_has_a_row_for_the_balanced_data(pipeline, artefacts):
    data = artefacts["figure2"].data
    keys = ["case", "sampler", "metric", "at"]
    for case in ("base", "balanced"):
        chosen = pipeline.summaries["classification"].select("fedavg", "error", case, 20, 20)
        mean = data.set_index(keys).loc[(case, "fedavg", "error", 20), "mean"]
        assert mean == pytest.approx(100 * chosen["value"].mean())
    assert len(artefacts["figure2"].figure.axes) == 6


def test_inclusion_z_is_the_deviation_in_standard_errors(artefacts):
    data = artefacts["inclusion"].data
    fixed = data[(data["case"] == "agents") & (data["sampler"] == "fixed")]
    assert np.nanmax(np.abs(fixed["z"])) < 6  # 300 units at 2,000 draws
    successive = data[(data["case"] == "intro") & (data["sampler"] == "successive")]
    expected = (successive["equation3"] - successive["target"]) / successive["se"]
    assert np.abs(successive["z"] - expected).max() < 6
    titles = [axes.get_title(loc="left") for axes in artefacts["inclusion"].figure.axes]
    assert titles[1] == "agents: $K$ = 300, $L$ = 6"
