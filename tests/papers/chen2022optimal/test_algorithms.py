"""OCS, AOCS and Theorem 2 on quadratics, from the published runs."""

import re

import numpy as np
import pytest

from fedsampling.experiments.papers import load_paper
from papers.chen2022optimal import figures_algorithms, figures_theorem2

from ..shared import PAPERS, behind, changed, judge, published

PAPER = load_paper("chen2022optimal", PAPERS)


@pytest.fixture(scope="module")
def summaries():
    return behind(PAPER.key, PAPER.artefacts["algorithms"], ("dsgd", "dsgd_exchanges", "dsgd_near"))


def test_algorithms_shows_every_number_of_exchanges_and_both_factors(summaries):
    artefact = figures_algorithms.algorithms(summaries, PAPER)
    assert set(artefact.data["panel"]) == {"alpha", "gamma", "shortfall", "excess"}
    rows = artefact.data[artefact.data["panel"] == "excess"]
    excess = rows.pivot(index="x", columns="series", values="y")
    assert list(excess.index) == [*range(9)]
    assert excess.loc[0, "m=3"] > 1e-3
    assert (excess.loc[2:, "m=3"].abs() < 1e-12).all()


def test_theorem2_says_in_how_many_rounds_the_bound_holds(summaries):
    artefact = figures_theorem2.theorem2(summaries, PAPER)
    data = artefact.data
    corrected = data.loc[(data["panel"] == "near") & (data["series"] == "corrected"), "y"]
    assert 0 < corrected.max() < 1
    rounds = re.search(r"in ([\d,]+) of \1 rounds", artefact.notes[0])[1]
    assert artefact.notes[0].endswith("standard errors below.")
    wrong = changed(summaries["dsgd"], lambda excess: 0 * excess + 1, metric="excess/printed")
    notes = figures_theorem2.theorem2(summaries | {"dsgd": wrong}, PAPER).notes
    assert f"in 0 of {rounds} rounds" in notes[0]
    assert notes[0].endswith("standard errors above.")


@pytest.mark.parametrize(
    ("claim", "metric", "value"),
    [
        ("c4", "alpha_high", 1.001),
        ("c4", "alpha_low", -0.001),
        ("c4", "gamma_low", 0.09),
        ("c5", "bias", 7.0),
    ],
)
def test_c4_and_c5_notice_one_factor_out_of_its_range_and_a_bias(summaries, claim, metric, value):
    assert judge(PAPER, claim, summaries).verdict == "reproduced"

    def first(values):
        return values.where(values.index != values.index[0], value)

    wrong = changed(summaries["dsgd"], first, sampler="optimal", metric=metric)
    assert judge(PAPER, claim, summaries | {"dsgd": wrong}).verdict == "contradicted"


def test_the_improvement_factor_is_averaged_over_runs():
    """It is convex in α: that of the mean α would be too small."""
    runs = {"writers_training": published(PAPER.key, "writers_training")}
    data = figures_algorithms.exchanges(runs, PAPER).data
    drawn = data[(data["panel"] == "gamma") & (data["series"] == "Dataset 1, OCS")]
    measured = runs["writers_training"].select("optimal", "gamma", "dataset1")
    expected = measured.groupby("at")["value"].mean()
    np.testing.assert_allclose(drawn.set_index("x")["y"], expected[drawn["x"]])


def test_exchanges_explains_colours_dashes_and_marks_with_eight_entries():
    runs = {"writers_training": published(PAPER.key, "writers_training")}
    figure = figures_algorithms.exchanges(runs, PAPER).figure
    legends = [axes.get_legend() for axes in figure.axes]
    words = [text.get_text() for legend in legends if legend for text in legend.get_texts()]
    assert words[:3] == ["Dataset 1", "Dataset 2", "Dataset 3"]
    assert len(words) == len(set(words)) == 8
    assert not figure.legends
