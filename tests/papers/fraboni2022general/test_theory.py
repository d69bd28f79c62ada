"""Tables, Corollary 1 and quadratic losses of fraboni2022general, from small experiments."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from papers.fraboni2022general.claims import (
    gamma_boundary,
    margins,
    populations,
    sigma_boundary,
)
from papers.fraboni2022general.runs import comparisons
from papers.fraboni2022general.simulations import (
    contraction,
    expected_distances,
    growth,
    importances,
)

from fedsampling.experiments.papers import load_paper
from fedsampling.theory.weights import statistics
from papers.fraboni2022general import claims, figures_theory

from ..shared import PAPERS, changed, judge, simulate

PAPER = load_paper("fraboni2022general", PAPERS)
OVERRIDES = {
    "weights": {"draws": 2000, "seeds": 2},
    "quadratic_step": {"points": 41, "draws": 100},
    "quadratic_training": {"rounds": 30, "draws": 5},
}


@pytest.fixture(scope="module")
def summaries():
    return simulate(PAPER, OVERRIDES)


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


def test_seeds_are_pooled_with_a_smaller_error(summaries):
    pooled, rows = comparisons(summaries["weights"]), summaries["weights"].rows
    first = comparisons(replace(summaries["weights"], rows=rows[rows.seed == 0]))
    random = first.error > 1e-9
    assert (pooled.error / first.error)[random].median() == pytest.approx(np.sqrt(0.5), rel=0.02)


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


def test_one_step_has_theory_and_experiment_of_three_schemes(summaries):
    artefact = figures_theory.quadratic_one_step(summaries, PAPER)
    curves = artefact.data.groupby(["case", "scheme"]).size()
    assert [*curves.index] == [*product(("iid", "non-iid"), ("full", "md", "uniform"))]
    assert (curves == 41).all()
    assert [axes.get_ylim() for axes in artefact.figure.axes] == [(1.5, 4), (1, 4)] * 2
    iid = artefact.data[artefact.data["case"] == "iid"].pivot(
        index="p_1", columns="scheme", values="expected"
    )
    np.testing.assert_allclose(iid["md"], iid["full"], rtol=1e-12)
    # With one minimum for all, weights that sum to one are all that counts: p_1 = 1/n.
    assert iid.index[(iid["uniform"] - iid["full"]).argmin()] == pytest.approx(0.1)
    assert "below the limit" in artefact.notes[0]
    chosen = {"metric": "mean", "sampler": "md", "case": "non-iid"}
    wrong = changed(summaries["quadratic_step"], lambda v: 1.3 * v, **chosen)
    notes = figures_theory.quadratic_one_step({"quadratic_step": wrong}, PAPER).notes
    assert "above the limit" in notes[0]


def test_variance_bands_end_at_the_papers_axis(summaries):
    artefact = figures_theory.quadratic_variance(summaries, PAPER)
    assert {axes.get_ylim() for axes in artefact.figure.axes} == {(0, 8)}
    assert (artefact.data["min"] <= artefact.data["mean"] + 1e-12).all()


def test_condition_ends_where_the_squares_meet_the_boundary(summaries):
    artefact = figures_theory.quadratic_condition(summaries, PAPER)
    below = artefact.data[artefact.data["sum of squares"] <= artefact.data["boundary"]]
    assert below["p_1"].max() == pytest.approx(0.325)  # the last of 41 points before 0.345
    assert "p_1 = 0.345" in artefact.notes[0]


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


# Closed form of the distance on quadratics, against enumeration and the authors' formulas.


RNG = np.random.default_rng(5)
MINIMA, START = RNG.uniform(-1, 1, (4, 3)), RNG.uniform(-1, 1, 3)
P = np.array([0.5, 0.2, 0.2, 0.1])


def rounds_of(scheme, p, m):
    """Every outcome of a round: its probability and its weights."""
    n = len(p)
    if scheme == "full":
        return [(1.0, p)]
    if scheme == "uniform":
        sets = list(combinations(range(n), m))
        return [(1 / len(sets), np.isin(range(n), s) * n / m * p) for s in sets]
    draws = product(range(n), repeat=m)
    return [(np.prod(p[list(d)]), np.bincount(d, minlength=n) / m) for d in draws]


def enumerated(scheme, m, step, rounds):
    """E‖θ^t − θ*‖² over every sequence of rounds."""
    optimum, states = P @ MINIMA, [(1.0, START)]
    values = [((START - optimum) ** 2).sum()]
    for _ in range(rounds):
        states = [
            (a * b, theta + step * omega @ (MINIMA - theta))
            for a, theta in states
            for b, omega in rounds_of(scheme, P, m)
        ]
        values.append(sum(a * ((theta - optimum) ** 2).sum() for a, theta in states))
    return values


def test_k_gradient_steps_are_one_contraction():
    theta, minimum = 3.0, 1.0
    for _ in range(7):
        theta -= 0.2 * (theta - minimum)
    assert theta == pytest.approx(3.0 + contraction(0.2, 7) * (minimum - 3.0))


@pytest.mark.parametrize("scheme", ["full", "md", "uniform"])
def test_expected_distance_is_that_of_all_outcomes(scheme):
    result = expected_distances(MINIMA, START, P, statistics(scheme, P, 2), 0.7, 2)
    np.testing.assert_allclose(result, enumerated(scheme, 2, 0.7, 2), rtol=1e-12)


@pytest.mark.parametrize("scheme", ["full", "md", "uniform", "poisson", "binomial"])
@pytest.mark.parametrize("p_1", [0.05, 0.2])
def test_one_round_is_what_the_authors_code_computes(scheme, p_1):
    """Their γ_i are ours, their α has the opposite sign, and they multiply by 1 + α."""
    n, m = 10, 5
    minima, start = RNG.uniform(-1, 1, (n, 20)), RNG.uniform(-1, 1, 20)
    p, step = importances(p_1, n), contraction(0.1, 10)
    alpha, gamma = {
        "full": (0.0, 0 * p),
        "md": (-1 / m, p / m),
        "uniform": (-(n - m) / m / (n - 1), p**2 * ((n / m - 1) + (n - m) / m / (n - 1))),
        "poisson": (0.0, p * (1 - m * p) / m),
        "binomial": (0.0, p**2 * (n - m) / m),
    }[scheme]
    row = statistics(scheme, p, m)
    assert row.alpha == pytest.approx(-alpha)
    np.testing.assert_allclose(row.variance + row.alpha * p**2, gamma, atol=1e-15)
    r = ((start - p @ minima) ** 2).sum()
    theirs = (1 - 2 * step + step**2 * (1 + alpha)) * r
    theirs += step**2 * gamma @ ((start - minima) ** 2).sum(axis=1)
    result = expected_distances(minima, start, p, row, step, 1)
    assert result[1] == pytest.approx(theirs, rel=1e-12)


def test_weights_that_sum_to_one_always_contract_and_others_may_not():
    p = importances(0.9, 100)
    assert growth(statistics("md", p, 5), 0.2) == pytest.approx(0.64)
    uniform = statistics("uniform", p, 5)
    assert growth(uniform, 0.2) > 1
    assert growth(uniform, 2 / (1 + uniform.variance_of_sum)) == pytest.approx(1)
