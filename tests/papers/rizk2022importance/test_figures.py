"""Numbers of rizk2022importance's figures, from tiny runs of its own experiments."""

from dataclasses import replace

import numpy as np
import pytest
from papers.rizk2022importance.theory import Recursion

from fedsampling.experiments.papers import draw_function, load_paper
from fedsampling.report.drawing.style import LABEL
from papers.rizk2022importance import figures, figures_supporting

from ..shared import PAPERS, changed

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


def test_maps_mark_cells_with_draws_that_have_no_steady_state(pipeline, monkeypatch):
    growing = Recursion(np.diag([1.1, 0.5, 0.5, 1.0]), np.ones(4))

    def drawn():
        artefact = figures_supporting.sensitivity(pipeline.summaries, PAPER)
        maps = [axes for axes in artefact.figure.axes if axes.get_xlabel() == "noisy agents"]
        texts = [text.get_text() for axes in maps for text in axes.texts]
        return texts, " ".join(artefact.notes)

    texts, notes = drawn()
    assert len(texts) == 2
    assert "*" not in "".join(texts) + notes
    monkeypatch.setattr(figures_supporting, "exact", lambda run: growing)
    texts, notes = drawn()
    assert all("*\n" in text for text in texts)
    assert "grows without bound: 4 agents 10⁶ times noisier; draw 0." in notes


@pytest.mark.parametrize(
    ("share", "words"), [(0.0417, "has this error: less than both"), (0.2, "has this error.")]
)
def test_figure2_computes_the_share_of_positive_test_samples(pipeline, share, words):
    errors = {"metric": "error", "case": "base", "since": 20, "until": 20}
    all_negative = changed(pipeline.summaries["classification"], lambda v: 0 * v + share, **errors)
    errors["metric"] = "balanced_error"
    for level, notes in ((0.5, 1), (0.49, 0)):
        summary = changed(all_negative, lambda v, level=level: 0 * v + level, **errors)
        summary = replace(summary, rows=summary.rows[summary.rows["at"] <= 20])
        artefact = figures.figure2({"classification": summary}, PAPER)
        found = [note for note in artefact.notes if "samples are positive" in note]
        assert len(found) == notes
        assert all(f"{100 * share:.2f} % of the test" in note and words in note for note in found)


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
