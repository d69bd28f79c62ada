"""Hartley and Rao's sampling and ISFedAvg's probabilities, compared with exact results."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from papers.rizk2022importance.simulations_inclusion import successive_inclusion

from fedsampling.base.errors import InputError
from fedsampling.samplers.importance import (
    capped,
    data_variability,
    hartley_rao,
    in_proportion,
    progressive_totals,
    reassign,
    systematic_units,
)

UNIT = 2**-40  # of the progressive totals
ABOVE_ONE = np.nextafter(1, 0)


def fixed(d):
    """Return what stands for a generator whose next uniform variate is d."""
    return SimpleNamespace(random=lambda: d)


def pieces(totals):
    """Cut [0, 1) where the set of chosen units may change: (left end, length) of each piece."""
    ends = np.unique(np.append(totals % 2**40, [0, 2**40]))
    return ends[:-1] * UNIT, np.diff(ends) * UNIT


def exact_inclusion(pi):
    """Integrate the chosen set over d, which is constant on each piece."""
    totals = progressive_totals(pi)
    start, length = pieces(totals)
    marks = systematic_units(np.broadcast_to(totals, (len(start), len(pi))), start)
    assert (marks.sum(-1) == round(pi.sum())).all()
    return length @ marks


score = st.one_of(st.just(0.0), st.floats(1e-9, 1e-3), st.floats(0.1, 10), st.just(1e4))


@st.composite
def problems(draw):
    """Scores and a number of draws that they allow: with zeros, tiny ones and giants."""
    scores = np.array(draw(st.lists(score, min_size=1, max_size=30)))
    positive = int((scores > 0).sum())
    if not positive:
        scores[0] = positive = 1
    return scores, draw(st.integers(1, positive))


class TestHartleyRao:
    @given(problems())
    @example((np.ones(10), 10))
    @example((np.array([0.1] * 10), 1))
    @example((np.array([0.3, 1, 1, 0.7]), 3))
    @example((np.array([0.0, 1, 0, 1, 0]), 1))
    def test_inclusion_probabilities_are_exact(self, problem):
        pi = capped(*problem)
        # Exact up to the grid of 2**-40 for each of at most 30 units.
        np.testing.assert_allclose(exact_inclusion(pi), pi, atol=31 * UNIT)

    @pytest.mark.parametrize("d", [0.0, 0.3, 0.5, ABOVE_ONE])
    @pytest.mark.parametrize(
        "pi",
        [
            [0.1] * 10,  # sums to 1 − 1.1e-16
            [0.3, 1, 1, 1, 0.7],  # 0.3 + 1 is rounded
            [1 / 3] * 300,
            [1e-13, 1 - 1e-13, 1],
            [0, 0, 0],
            [0.5 + 4e-7, 0.5, 0, 0],
        ],
    )
    def test_rounding_does_not_change_the_number_of_draws(self, pi, d):
        units = hartley_rao(np.array(pi), fixed(d))
        assert len(units) == round(sum(pi))
        assert (np.array(pi)[units] > 0).all()

    def test_is_the_rule_of_the_paper(self):
        """Π_{k−1} ≤ d + l < Π_k, evaluated literally."""
        rng = np.random.default_rng(0)
        for _ in range(200):
            n, L = 12, int(rng.integers(1, 9))
            pi = capped(rng.exponential(size=n), L)
            d = rng.random()
            total = np.concatenate([[0], np.cumsum(pi)])
            expected = [
                k for k in range(n) if any(total[k] <= d + j < total[k + 1] for j in range(L))
            ]
            assert list(hartley_rao(pi, fixed(d))) == expected

    @pytest.mark.parametrize(
        ("pi", "reason"),
        [
            ([-0.1, 0.6, 0.5], "is out of range 0…1"),
            ([np.nan, 1.0], "is out of range 0…1"),
            ([0.5, 0.7], "integer number of draws"),
        ],
    )
    def test_values_that_are_not_inclusion_probabilities_are_rejected(self, pi, reason):
        with pytest.raises(InputError, match=reason):
            hartley_rao(np.array(pi), fixed(0.5))

    def test_rows_of_a_batch_are_drawn_independently(self):
        rng = np.random.default_rng(2)
        pi = capped(rng.exponential(size=(7, 3, 11)), rng.integers(1, 6, (7, 3)))
        d = rng.random((7, 3))
        marks = systematic_units(progressive_totals(pi), d)
        for row in np.ndindex(7, 3):
            expected = hartley_rao(pi[row], fixed(d[row]))
            np.testing.assert_array_equal(np.flatnonzero(marks[row]), expected)


class TestInclusion:
    @given(problems())
    def test_caps_at_one_and_shares_the_rest_in_proportion(self, problem):
        scores, size = problem
        pi = capped(scores, size)
        assert pi.sum() == pytest.approx(size)
        assert (pi <= 1).all()
        free = (pi < 1) & (scores > 0)
        ratio = pi[free] / scores[free]
        assert ratio == pytest.approx(ratio[:1].repeat(free.sum()))
        if free.any():  # whoever is capped would have had more in proportion
            assert (scores[pi == 1] * ratio[0] >= 1 - 1e-9).all()

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("value", [0.37, 0.58])  # 3 v / (v + v + v) is above one by rounding
    def test_if_all_positive_units_are_drawn_the_others_have_probability_zero(self, value):
        np.testing.assert_array_equal(capped(np.array([value, 0, value, value]), 3), [1, 0, 1, 1])

    def test_a_row_does_not_depend_on_the_other_rows(self):
        rng = np.random.default_rng(3)
        p = rng.lognormal(sigma=2, size=(50, 9))  # some rows are capped, some twice
        size = rng.integers(1, 6, 50)
        stacked = capped(p, size)
        assert (stacked == 1).any()
        assert (stacked < 1).all(-1).any()
        for row in range(50):
            np.testing.assert_array_equal(stacked[row], capped(p[row], int(size[row])))


class TestProbabilities:
    """Against the paper's formulas, summed term by term."""

    @pytest.mark.parametrize("lost", [0.0, np.inf, np.nan])
    def test_without_usable_norms_samples_are_equally_likely_but_no_padding(self, lost):
        norms = np.array([[lost, lost, 0.0], [1.0, 3.0, 0.0]])
        probabilities = in_proportion(norms, np.array([[True, True, False]] * 2))
        np.testing.assert_array_equal(probabilities, [[0.5, 0.5, 0], [0.25, 0.75, 0]])

    def test_variability_is_equation_23_at_the_probabilities_of_44(self):
        E, B = np.array([1, 2, 3, 5]), np.array([1, 2, 4, 3])
        gradients = np.random.default_rng(4).normal(size=(4, 5, 3))  # ∇Q_k(w; x_{k,n})
        norms = np.linalg.norm(gradients, axis=-1)
        p = in_proportion(norms)
        result = data_variability(norms.mean(-1), E, B)
        for k in range(4):
            total = sum(norms[k, n] ** 2 / p[k, n] for n in range(5))
            expected = 6 / (E[k] * B[k] * 5**2) * total
            assert result[k] == pytest.approx(expected)


class TestReassign:
    @given(st.lists(st.tuples(st.floats(1e-9, 1), st.floats(0, 1e6)), min_size=1, max_size=9))
    @example([(0.3, 5e-324), (0.7, 5e-324)])
    def test_the_probability_of_the_sampled_units_is_preserved(self, pairs):
        p, scores = np.array(pairs).T
        assert reassign(p, scores).sum() == pytest.approx(p.sum())

    @pytest.mark.parametrize("lost", [0.0, np.inf, np.nan])
    def test_unusable_scores_change_nothing(self, lost):
        probabilities = reassign(np.array([0.2, 0.1]), np.array([0.0, lost]))
        np.testing.assert_array_equal(probabilities, [0.2, 0.1])

    def test_padding_is_ignored(self):
        is_client = np.array([True, True, False])
        probabilities = reassign(np.array([0.2, 0.1, 0.5]), np.array([1.0, 2.0, 9.0]), is_client)
        assert probabilities == pytest.approx([0.1, 0.2, 0.0])


def test_equation_3_is_the_enumeration_of_successive_draws():
    """The balls of section I-B: two of four, drawn one after the other."""
    p = np.array([1 / 3, 1 / 6, 1 / 3, 1 / 6])
    expected = np.zeros(4)
    for first, second in itertools.permutations(range(4), 2):
        expected[[first, second]] += p[first] * p[second] / (1 - p[first])
    inclusion = successive_inclusion(p)
    assert inclusion == pytest.approx(expected)
    # By hand: 1/3 + 2 · (1/6)(1/3)/(5/6) + (1/3)(1/3)/(2/3); it is not twice 1/3.
    assert inclusion[0] == pytest.approx(19 / 30)
