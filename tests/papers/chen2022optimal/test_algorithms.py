"""OCS, AOCS and Theorem 2 on quadratics, from chen2022optimal's own experiments made small."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from papers.chen2022optimal.figures_algorithms import above_one, adverse

from fedsampling.experiments.papers import load_paper
from papers.chen2022optimal import claims, figures_algorithms

PAPER = load_paper("chen2022optimal", Path(__file__).parents[3] / "papers")
SMALL = {"rounds": 4, "draws": 40}
FEW = {"samplers": {f"approximate-{j_max}": None for j_max in range(5, 9)}}
OVERRIDES = {"dsgd": SMALL, "dsgd_exchanges": SMALL | FEW, "dsgd_near": {"rounds": 3, "draws": 400}}


@pytest.fixture(scope="module")
def summaries(simulated):
    return simulated(PAPER, OVERRIDES)


def verdict(name, summaries):
    return getattr(claims, name)(summaries, PAPER.claims[name], PAPER).verdict


def changed(summaries, metric, value):
    """Change one value of optimal sampling."""
    rows = summaries["dsgd"].rows.copy()
    rows.loc[summaries["dsgd"].select("optimal", metric).index[0], "value"] = value
    return summaries | {"dsgd": replace(summaries["dsgd"], rows=rows)}


def test_algorithms_shows_every_number_of_exchanges_and_both_factors(summaries):
    artefact = figures_algorithms.algorithms(summaries, PAPER)
    assert set(artefact.data["panel"]) == {"alpha", "gamma", "shortfall", "excess"}
    excess = artefact.data[artefact.data["panel"] == "excess"].pivot(
        index="x", columns="series", values="y"
    )
    assert list(excess.index) == [0, 1, 2, 3, 4]
    assert excess.loc[0, "m=3, adverse"] > 1
    assert (excess.loc[2:, ["m=3, adverse", "m=3, training"]].abs() < 1e-12).all(axis=None)
    assert excess.loc[4, "m=10, adverse"] > 1
    assert "2 for m = 3, more than 4 for m = 10" in artefact.notes[0]


def test_theorem2_says_in_how_many_rounds_the_bound_holds(summaries):
    artefact = figures_algorithms.theorem2(summaries, PAPER)
    assert len(artefact.figure.axes) == 4
    corrected = artefact.data[
        (artefact.data["panel"] == "near") & (artefact.data["series"] == "corrected")
    ]
    assert (corrected["y"] < 1).all()
    assert "in 36 of 36 rounds" in artefact.notes[0]
    rows = summaries["dsgd"].rows.copy()
    rows.loc[rows["metric"] == "excess/printed", "value"] = 1.0
    wrong = summaries | {"dsgd": replace(summaries["dsgd"], rows=rows)}
    assert "in 0 of 36 rounds" in figures_algorithms.theorem2(wrong, PAPER).notes[0]


def test_c4_and_c5_hold_and_notice_a_factor_out_of_its_range_and_a_bias(summaries):
    assert verdict("c4", summaries) == verdict("c5", summaries) == "reproduced"
    for metric, value in (("alpha_high", 1.001), ("alpha_low", -0.001), ("gamma_low", 0.09)):
        assert verdict("c4", changed(summaries, metric, value)) == "contradicted"
    assert verdict("c5", changed(summaries, "bias", 7.0)) == "contradicted"


def test_adverse_norms_need_m_minus_one_exchanges():
    assert adverse(32, 5, 3)[1] > 1
    assert np.abs(adverse(32, 5, 4)).max() < 1e-12


def test_aocs_without_exchanges_is_worse_than_uniform_only_near_full_participation():
    assert above_one(6, 2) <= 1 + 1e-12
    assert above_one(6, 5) > 1
