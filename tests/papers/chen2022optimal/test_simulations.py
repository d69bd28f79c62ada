"""DSGD on quadratics: its problem, its constants, and what is measured beside Theorem 2."""

import numpy as np
import pytest
from papers.chen2022optimal.simulations import problem
from tests.helpers.small_runs import settings, tables, wide


def measured(**changes):
    return wide(tables("dsgd", **changes)[0])


def aocs(j_max):
    return {"name": "approximate", "j_max": j_max}


def test_problem_has_the_optimum_and_the_constants_that_it_says():
    result = problem(settings("dsgd"))
    assert result.w.sum() == pytest.approx(1)
    gradients = result.gradients(np.array([result.optimum, result.start]))
    np.testing.assert_allclose(result.w @ gradients[0], 0, atol=1e-12)
    eigenvalues = np.linalg.eigvalsh(result.hessians)
    assert eigenvalues.max() == pytest.approx(result.smoothness)
    pooled = np.linalg.eigvalsh(np.tensordot(result.w, result.hessians, 1))
    assert pooled.min() == pytest.approx(result.convexity)
    assert np.linalg.norm(result.start - result.optimum) == pytest.approx(3)
    third = result.hessians[3] @ (result.start - result.minima[3])
    np.testing.assert_allclose(gradients[1][3], third, atol=1e-12)
    offset = result.optimum - result.minima[3]
    assert result.mismatch[3] == pytest.approx(offset @ result.hessians[3] @ offset / 2)


def test_first_round_has_the_expected_distance():
    """Without gradient noise one round is r − η∇f on average, with variance (5) about it."""
    changes = {"relative": 0, "noise": 0, "draws": 20_000, "rounds": 2}
    changes["sampler"] = {"name": "uniform"}
    table = measured(**changes)
    quadratic = problem(settings("dsgd", **changes))
    gradients = quadratic.gradients(quadratic.start[None])[0]
    eta = table.loc[0, "step"]
    mean = quadratic.start - quadratic.optimum - eta * quadratic.w @ gradients
    norms = quadratic.w * np.linalg.norm(gradients, axis=1)
    expected = mean @ mean + eta**2 * 3 * (norms**2).sum()  # (1 − q)/q with q = 2/8
    # Five standard errors: a false alarm has probability 6e-7.
    assert abs(table.loc[1, "distance"] - expected) < 5 * table.loc[1, "distance_se"]


def test_factors_of_full_uniform_and_optimal_participation():
    names = ("full", "uniform", "optimal")
    full, uniform, optimal = (measured(sampler={"name": name}).loc[0:] for name in names)
    assert len(full) == len(uniform) == len(optimal) > 0
    assert (full[["alpha", "alpha_high"]] == 0).all(axis=None)
    assert (full["gamma"] == 1).all()
    assert (full["batch"] == 8).all()
    np.testing.assert_allclose(uniform[["alpha_low", "alpha_high"]], 1, rtol=1e-12)
    np.testing.assert_allclose(uniform["gamma"], 2 / 8)
    assert (optimal["alpha_low"] >= 0).all()
    assert (optimal["alpha_high"] < 1).all()
    np.testing.assert_allclose(optimal["batch"], 2)
    np.testing.assert_allclose(optimal["gamma"], 2 / (optimal["alpha"] * 6 + 2))


def test_recursion_as_printed_fails_near_the_optimum_and_corrected_holds():
    near_optimum = {"start": 0.2, "direction": "steepest", "gamma": "own", "rounds": 1}
    near_optimum |= {"clients": 32, "m": 3, "dimension": 5, "spread": 1.5, "eigenvalues": [1, 1]}
    near_optimum["draws"] = 6000
    first = measured(**near_optimum, relative=0, noise=0).loc[0]
    assert first["excess/printed"] > 4 * first["excess_se/printed"]
    assert first["excess/corrected"] < 0


def test_estimates_are_unbiased():
    # 36 comparisons each: beyond 4.5 with probability 2.5e-4.
    for sampler in ({"name": "uniform"}, {"name": "optimal"}, aocs(0)):
        assert measured(sampler=sampler)["bias"].max() < 4.5
    assert measured(sampler={"name": "full"}).loc[0:, "bias"].max() == 0


def test_aocs_is_ocs_with_enough_exchanges_along_training():
    none, one_exchange, exact = measured(sampler=aocs(0)), measured(sampler=aocs(1)), measured()
    assert none.loc[0:, "gap"].max() > 1e-3
    assert none.loc[0:, "batch_low"].min() < 2 - 1e-3
    assert one_exchange.loc[0:, "gap"].max() < 1e-12
    distances = (table.loc[0:, "distance"] for table in (one_exchange, exact))
    np.testing.assert_allclose(*distances, rtol=1e-9)
