"""Fraboni et al. 2022: tables and Corollary 1, drawn from the published runs."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from papers.fraboni2022general.corollary1 import (
    gamma_boundary,
    margins,
    populations,
    sigma_boundary,
)

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


def test_c6_notices_a_wrong_sign_and_demands_exactness_where_nothing_varies(summaries):
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


# Corollary 1, in rational arithmetic and near its boundary.


@given(st.lists(st.integers(0, 30), min_size=2, max_size=15).filter(any), st.data())
@settings(max_examples=300)
def test_equivalence_holds_in_rational_arithmetic(counts, data):
    n, m = len(counts), data.draw(st.integers(1, len(counts)))
    s = sum(Fraction(c, sum(counts)) ** 2 for c in counts)
    sigma_u = (Fraction(n, m) - 1) * s
    sigma_md = (1 - s) / m
    gamma_u, gamma_md = Fraction(n, n - 1) * sigma_u, Fraction(1, m)
    uniform_is_better = sigma_u <= sigma_md and gamma_u <= gamma_md
    assert uniform_is_better == (s <= Fraction(1, n - m + 1))
    result = margins(np.array(counts) / sum(counts), m)
    assert result == pytest.approx(
        (float(sigma_md - sigma_u), float(gamma_md - gamma_u), float(Fraction(1, n - m + 1) - s)),
        abs=1e-12,
    )


@pytest.mark.parametrize(("n", "m"), [(2, 1), (5, 1), (10, 5), (10, 9), (30, 7)])
def test_each_sum_changes_sides_at_its_own_boundary(n, m):
    end = np.eye(n)[0]
    for boundary, name in ((sigma_boundary(n, m), "sigma"), (gamma_boundary(n, m), "gamma")):
        way = np.sqrt((boundary - 1 / n) / (1 - 1 / n))
        for step, sign in ((-1e-6, 1), (1e-6, -1)):
            if way + step > 0:
                p = (1 - way - step) / n + (way + step) * end
                assert np.sign(getattr(margins(p, m), name)) == sign


def test_populations_are_importances_on_both_sides_of_the_boundary():
    dealt = list(populations(10, 5, 200, np.random.default_rng(0)))
    spread = np.array([(p**2).sum() for p in dealt])
    assert all(p.min() >= 0 and p.sum() == pytest.approx(1) for p in dealt)
    close = spread[1::2] / sigma_boundary(10, 5) - 1
    assert (np.abs(close) < 0.11).all()
    assert 0.3 < (close > 0).mean() < 0.7
