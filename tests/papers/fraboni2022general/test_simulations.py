"""Runs on quadratic losses: the authors' problem, agreement with the closed form, streams."""

import numpy as np
import pytest
from papers.fraboni2022general.simulations import importances, problem
from small_runs import settings, tables, wide


def measured(**changes):
    return wide(tables("quadratic", **changes)[0])


def test_problem_is_that_of_the_authors_code():
    result = problem(settings("quadratic"))
    assert result.minima[0, 0] == pytest.approx(-0.16595599, abs=1e-8)
    assert result.start[0] == pytest.approx(0.90035224, abs=1e-8)
    shared = problem(settings("quadratic", minima="shared"))
    np.testing.assert_array_equal(shared.minima, np.tile(result.minima[0], (10, 1)))
    np.testing.assert_array_equal(shared.start, result.start)
    np.testing.assert_allclose(importances(0.4, 4), [0.4, 0.2, 0.2, 0.2])


@pytest.mark.parametrize("minima", ["own", "shared"])
@pytest.mark.parametrize("scheme", ["full", "md", "uniform"])
def test_means_agree_with_the_closed_form(scheme, minima):
    table = measured(sampler={"name": scheme}, minima=minima)
    # Five standard errors for thirty means: a false alarm has probability 2e-5.
    assert ((table["mean"] - table["expected"]).abs() <= 5 * table["se"] + 1e-12).all()
    np.testing.assert_allclose(table["p_1"], [0, 0.25, 0.5, 0.75, 1])


@pytest.mark.parametrize("scheme", ["md", "uniform"])
def test_whole_runs_agree_with_the_closed_form(scheme):
    changes = {"p_1": 0.3, "local_steps": 1, "rounds": 12, "every": 5}
    table = measured(**changes, sampler={"name": scheme})
    assert list(table.index) == [0, 5, 10, 12]
    assert ((table["mean"] - table["expected"]).abs() <= 5 * table["se"] + 1e-12).all()


def test_one_minimum_for_all_makes_md_sampling_full_participation():
    full, md = (measured(minima="shared", sampler={"name": name}) for name in ("full", "md"))
    np.testing.assert_allclose(md["max"], full["min"], rtol=1e-12)
