"""Tables, Corollary 1 and quadratic losses of fraboni2022general, from small experiments."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from papers.fraboni2022general.runs import comparisons

from fedsampling.experiments.papers import load_paper
from papers.fraboni2022general import claims, figures_quadratic, figures_theory

PAPER = load_paper("fraboni2022general", Path(__file__).parents[3] / "papers")
OVERRIDES = {
    "weights": {"draws": 10_000, "seeds": 2},
    "quadratic_step": {"points": 41, "draws": 100},
    "quadratic_training": {"rounds": 30, "draws": 5},
}


@pytest.fixture(scope="module")
def summaries(simulated):
    return simulated(PAPER, OVERRIDES)


def changed(summaries, name, change, **chosen):
    """The summaries with some values of one changed."""
    rows = summaries[name].rows.copy()
    is_changed = rows.index.isin(summaries[name].select(**chosen).index)
    rows.loc[is_changed, "value"] = change(rows.loc[is_changed, "value"])
    return {**summaries, name: replace(summaries[name], rows=rows)}


def verdict(name, summaries):
    return getattr(claims, name)(summaries, PAPER.claims[name], PAPER).verdict


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


@pytest.mark.parametrize(
    ("estimate", "error", "text"),
    [(0.180021, 0.000131, "0.18002(13)"), (5.0, 0.0, "5"), (-0.0, 0.0, "0"), (4.2, 12.3, "4(12)")],
)
def test_estimates_are_written_with_two_digits_of_error(estimate, error, text):
    assert figures_theory._concise(estimate, error) == text


def test_table2_has_every_symbol_once():
    symbols = figures_theory.table2({}, PAPER).data.symbol
    assert len(symbols) == 23
    assert symbols.is_unique


def test_seeds_are_pooled_with_a_smaller_error(summaries):
    pooled, rows = comparisons(summaries["weights"]), summaries["weights"].rows
    first = comparisons(replace(summaries["weights"], rows=rows[rows.seed == 0]))
    random = first.error > 1e-9
    assert (pooled.error / first.error)[random].median() == pytest.approx(np.sqrt(0.5), rel=0.02)


def test_c6_notices_a_wrong_sign_and_demands_exactness_where_nothing_varies(summaries):
    assert verdict("c6", summaries) == "reproduced"
    opposite = {"metric": "closed_alpha", "sampler": "md"}
    assert verdict("c6", changed(summaries, "weights", lambda v: -v, **opposite)) == "contradicted"
    fixed = {"metric": "closed_variance_of_sum", "sampler": "full"}
    slight = changed(summaries, "weights", lambda v: v + 1e-9, **fixed)
    assert verdict("c6", slight) == "contradicted"


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
    artefact = figures_quadratic.quadratic_one_step(summaries, PAPER)
    assert artefact.data.groupby(["case", "scheme"]).size().to_dict() == {
        (case, scheme): 41 for case in ("iid", "non-iid") for scheme in ("full", "md", "uniform")
    }
    assert [axes.get_ylim() for axes in artefact.figure.axes] == [(1.5, 4), (1, 4)] * 2
    iid = artefact.data[artefact.data["case"] == "iid"].pivot(
        index="p_1", columns="scheme", values="expected"
    )
    np.testing.assert_allclose(iid["md"], iid["full"], rtol=1e-12)
    # With one minimum for all, weights that sum to one are all that counts: p_1 = 1/n.
    assert iid.index[(iid["uniform"] - iid["full"]).argmin()] == pytest.approx(0.1)
    assert "below the limit" in artefact.notes[0]
    chosen = {"metric": "mean", "sampler": "md", "case": "non-iid"}
    wrong = changed(summaries, "quadratic_step", lambda v: 1.3 * v, **chosen)
    assert "above the limit" in figures_quadratic.quadratic_one_step(wrong, PAPER).notes[0]


def test_variance_bands_end_at_the_papers_axis(summaries):
    artefact = figures_quadratic.quadratic_variance(summaries, PAPER)
    assert {axes.get_ylim() for axes in artefact.figure.axes} == {(0, 8)}
    assert (artefact.data["min"] <= artefact.data["mean"] + 1e-12).all()


def test_convergence_says_that_uniform_sampling_diverges(summaries):
    artefact = figures_quadratic.quadratic_convergence(summaries, PAPER)
    assert set(artefact.data["t"]) == set(range(31))
    assert "0.640 for full participation" in artefact.notes[0]
    # Var[Σ ω] = 95/(5 · 99) (100 (0.81 + 0.01/99) − 1), hence 0.64 + 0.04 · 15.35.
    assert "1.254 for Uniform sampling" in artefact.notes[0]


def test_condition_ends_where_the_squares_meet_the_boundary(summaries):
    artefact = figures_quadratic.quadratic_condition(summaries, PAPER)
    below = artefact.data[artefact.data["sum of squares"] <= artefact.data["boundary"]]
    assert below["p_1"].max() == pytest.approx(0.325)  # the last of 41 points before 0.345
    assert "p_1 = 0.345" in artefact.notes[0]
