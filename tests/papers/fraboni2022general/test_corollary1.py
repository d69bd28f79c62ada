"""Fraboni et al. 2022: Corollary 1 in rational arithmetic, and near its boundary."""

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


def test_uniform_can_have_the_better_bound_with_unequal_clients():
    """The counterexample of findings.md to "only when clients have identical data ratio"."""
    p = np.arange(1, 11) / 55
    assert (p**2).sum() == pytest.approx(7 / 55)
    assert min(margins(p, 5)) > 0


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
