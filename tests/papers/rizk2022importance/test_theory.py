"""The exact mean-square deviation, against enumeration, simulation and cases without noise."""

from itertools import combinations, product

import numpy as np
import pytest
from tests.helpers.small_runs import array, settings, tables

from fedsampling.base.errors import InputError
from fedsampling.samplers.importance import progressive_totals, systematic_units
from papers.rizk2022importance import theory

UNIFORM = {"name": "uniform", "m": 3}
OPTIMAL = {"name": "isfedavg", "m": 3, "probabilities": "optimal"}
WORK = {"step": 0.02, "epochs": [1, 3], "batch": [1, 5]}


def counted(samples, n):
    """Return E[c_k c_l] over samples that are all as likely; c_k counts unit k."""
    counts = np.array([np.bincount(units, minlength=n) for units in samples])
    return counts.T @ counts / len(counts)


def recursion(**changes):
    return theory.recursion(settings("federated", **changes))


def test_systematic_pairs_are_those_of_all_values_of_its_variate():
    pi = np.array([1, 7, 2, 8, 3, 3]) / 8  # the sample changes at multiples of 1/8 only
    samples = [
        np.flatnonzero(systematic_units(progressive_totals(pi), np.float64(d / 8)))
        for d in range(8)
    ]
    assert theory.systematic(pi) == pytest.approx(counted(samples, 6), abs=1e-11)


def test_systematic_pairs_are_the_frequencies_of_samples():
    pi = np.array([0.31, 0.02, 0.77, 0.4, 1.0, 0.13, 0.37])
    draws = 100_000
    d = np.random.default_rng(0).random(draws)
    marks = systematic_units(progressive_totals(pi), d).astype(float)
    pairs = theory.systematic(pi)
    # Five standard errors: 28 comparisons raise a false alarm with probability 2e-5.
    assert (np.abs(marks.T @ marks / draws - pairs) < 5 * np.sqrt(0.25 / draws)).all()
    assert np.diag(pairs) == pytest.approx(pi)
    assert pairs.sum(1) == pytest.approx(3 * pi)  # each sample has three units


def test_pairs_with_equal_probabilities_are_those_of_all_samples():
    assert theory.without_replacement(5, 3) == pytest.approx(counted(combinations(range(5), 3), 5))
    assert theory.without_replacement(1, 1) == pytest.approx(1)
    every = [*product(range(4), repeat=3)]
    assert theory.with_replacement(4, 3) == pytest.approx(counted(every, 4))


@pytest.mark.parametrize(
    ("sampler", "correct"), [(UNIFORM, False), (UNIFORM, True), (OPTIMAL, True)]
)
def test_it_is_the_mean_of_simulated_runs(sampler, correct):
    changes = {"sampler": sampler, "work": WORK | {"correct": correct}, "rounds": 40, "every": 4}
    runs = np.array([array(t, "msd") for t in tables("federated", range(2000), **changes)])
    exact = recursion(**changes)
    expected = exact.course(40)[::4]
    error = runs.std(0, ddof=1) / np.sqrt(len(runs))
    # Five standard errors: ten comparisons raise a false alarm with probability 6e-6.
    assert (np.abs(runs.mean(0) - expected)[1:] < 5 * error[1:]).all()
    assert runs[:, 0] == pytest.approx(expected[0])


def test_without_noise_it_is_the_course_of_a_single_run():
    """All agents with all their data: every round is the same."""
    everything = {"epochs": [1, 3], "batch": [12, 12], "step": 0.05}
    changes = {"sampler": OPTIMAL | {"m": 8}, "work": everything, "rounds": 6, "every": 1}
    (table,) = tables("federated", **changes)
    exact = recursion(**changes)
    assert exact.course(6) == pytest.approx(array(table, "msd"))
    one_epoch = recursion(**changes | {"work": everything | {"epochs": [1, 1]}})
    assert one_epoch.steady_msd() == pytest.approx(0, abs=1e-12)  # gradient descent


def test_the_steady_state_is_the_limit():
    exact = recursion(sampler=OPTIMAL)
    assert exact.growth < 1
    assert exact.steady_msd() == pytest.approx(exact.course(2000)[-1])


def test_without_a_limit_it_is_infinite():
    exact = recursion(sampler=OPTIMAL, work=WORK | {"step": 1.0})
    assert exact.growth > 1
    assert exact.steady_msd() == np.inf
    course = exact.course(21)
    assert course[21] / course[20] == pytest.approx(exact.growth, rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sampler": OPTIMAL | {"probabilities": "tracked"}}, "needs fixed probabilities"),
        ({"model": {"name": "logistic", "rho": 0.001}}, "needs an affine gradient"),
    ],
)
def test_it_refuses_what_is_not_affine(changes, message):
    with pytest.raises(InputError, match=message):
        recursion(**changes)
