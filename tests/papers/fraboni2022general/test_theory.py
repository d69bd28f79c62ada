"""Fraboni et al. 2022: tables and Corollary 1, drawn from the published runs."""

import numpy as np
import pytest

from fedsampling.experiments.papers import load_paper
from papers.fraboni2022general import claims, figures_theory

from ..shared import PAPERS, changed, judge, published

PAPER = load_paper("fraboni2022general", PAPERS)


@pytest.fixture(scope="module")
def summaries():
    return {"weights": published(PAPER.key, "weights")}


def verdict(claim, summaries):
    return judge(PAPER, claim, summaries).verdict


def test_table1_has_every_scheme_on_every_population(summaries):
    table = figures_theory.table1(summaries, PAPER).table
    assert len(table) == 28
    md = table[(table.population == "n=10, m=5, equal") & (table.scheme == "MD")].iloc[0]
    assert md["Σ Var[ω_i]"] == pytest.approx(0.18)
    assert md["α"] == pytest.approx(0.2)
    assert md["E[N]"] == pytest.approx(10 - 10 * 0.9**5)
    estimate, error = md["E[N], simulated"].rstrip(")").split("(")
    scale = 10.0 ** -len(estimate.split(".")[1])
    assert abs(float(estimate) - md["E[N]"]) < 5 * int(error) * scale


def test_c6_notices_wrong_signs_and_demands_exactness_where_nothing_varies(summaries):
    assert verdict("c6", summaries) == "reproduced"
    for change, chosen in (
        (lambda v: -v, {"metric": "closed_alpha", "sampler": "md"}),
        (lambda v: v + 1e-9, {"metric": "closed_variance_of_sum", "sampler": "full"}),
    ):
        wrong = changed(summaries["weights"], change, **chosen)
        assert verdict("c6", {"weights": wrong}) == "contradicted"


def test_c7_finds_no_counterexample_and_would_find_one(monkeypatch):
    assert verdict("c7", {}) == "reproduced"
    true = claims.margins
    monkeypatch.setattr(
        claims, "margins", lambda p, m: true(p, m)._replace(condition=1 / (len(p) - m + 2) - p @ p)
    )
    assert verdict("c7", {}) == "contradicted"


def test_corollary1_draws_both_sides():
    artefact = figures_theory.corollary1({}, PAPER)
    data = artefact.data
    series = data[data.panel == "a"].pivot(index="x", columns="series", values="y")
    uniform_better = series["Σ, Uniform"] <= series["Σ, MD"]
    # n = 10, m = 5: p² + (1 − p)²/9 = 1/6 at (1 + √6)/10.
    np.testing.assert_array_equal(uniform_better, series.index <= (1 + np.sqrt(6)) / 10)
    assert "under 0.345" in artefact.alt
