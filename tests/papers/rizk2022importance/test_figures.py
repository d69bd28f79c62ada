"""Numbers of rizk2022importance's figures, from tiny runs of its own experiments."""

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


def test_sensitivity_gap_is_that_of_the_mean_msd_in_decibels(pipeline, artefacts):
    level = {
        sampler: pipeline.summaries[name].per_seed(sampler, "msd", "noise-1e4", since=0.8 * 20)
        for name, sampler in (("uncorrected", "fedavg"), ("sensitivity", "isfedavg-optimal"))
    }
    gap = 10 * np.log10(level["fedavg"].mean() / level["isfedavg-optimal"].mean())
    data = artefacts["sensitivity"].data.set_index(["comparison", "case"])
    assert data.loc[("FedAvg over true", "noise-1e4"), "gap_db"] == pytest.approx(gap)


def test_figure1_draws_the_gap_that_the_paper_prints_and_no_level(artefacts):
    *courses, gaps = artefacts["figure1"].figure.axes
    printed = [line for line in gaps.lines if line.get_label() == LABEL]
    assert [float(line.get_ydata()[0]) for line in printed] == [PAPER.reported("gap")]
    assert not any(line.get_label() == LABEL for panel in courses for line in panel.lines)
    lowest = 10 * np.log10(artefacts["figure1"].data["mean"].min())
    assert courses[0].get_ylim()[0] == pytest.approx(lowest - 2)
    assert courses[1].get_ylim() == courses[0].get_ylim()


def test_maps_have_a_colour_bar(artefacts):
    bars = [
        axes for axes in artefacts["sensitivity"].figure.axes if axes.get_ylabel() == "mean (dB)"
    ]
    assert len(bars) == 2


def test_figure2_is_in_per_cent(pipeline, artefacts):
    keys = ["case", "sampler", "metric", "at"]
    for case in ("base", "balanced"):
        chosen = pipeline.summaries["classification"].select("fedavg", "error", case, 20, 20)
        mean = artefacts["figure2"].data.set_index(keys).loc[(case, "fedavg", "error", 20), "mean"]
        assert mean == pytest.approx(100 * chosen["value"].mean())


def test_inclusion_z_is_the_deviation_in_standard_errors(artefacts):
    data = artefacts["inclusion"].data
    fixed = data[(data["case"] == "agents") & (data["sampler"] == "fixed")]
    assert np.nanmax(np.abs(fixed["z"])) < 6  # 300 units at 2,000 draws
    successive = data[(data["case"] == "intro") & (data["sampler"] == "successive")]
    expected = (successive["equation3"] - successive["target"]) / successive["se"]
    assert np.abs(successive["z"] - expected).max() < 6
    titles = [axes.get_title(loc="left") for axes in artefacts["inclusion"].figure.axes]
    assert titles[1] == "agents: $K$ = 300, $L$ = 6"
