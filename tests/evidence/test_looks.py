"""Intervals that allow for several looks err as rarely as one look's, in simulated experiments."""

import numpy as np
import pytest
from scipy import stats
from tests.shared import PAPERS

from fedsampling.evidence.look_levels import LEVELS
from fedsampling.evidence.looks import Looks, simulated_level, smallest_p_values
from fedsampling.evidence.statistics import allowing_for, compare, difference, holm, mean
from fedsampling.experiments.papers import load_paper

FOUR = Looks((3, 5, 10, 20))


@pytest.mark.parametrize(("level", "published"), [(0.95, 0.0146), (0.99, 0.0027)])
def test_level_of_each_look(level, published):
    """The level at 5 % is an independent simulation's, the other no multiple of it."""
    assert 1 - FOUR.level(level) == pytest.approx(published, rel=0.03)


@pytest.mark.parametrize(
    "looks", [FOUR.seeds, *(pytest.param(each, marks=pytest.mark.long) for each in LEVELS)]
)
def test_stored_levels_are_those_of_the_simulation(looks):
    for level, stored in LEVELS[looks].items():
        assert 1 - simulated_level(looks, level) == pytest.approx(1 - stored, rel=1e-9)


def test_every_plan_of_a_paper_has_stored_levels():
    declared = {
        tuple(changes["looks"])
        for path in PAPERS.glob("*/paper.yaml")
        for changes in load_paper(path.parent.name, PAPERS).confirm.values()
    }
    assert {looks for looks in declared if len(looks) > 1} <= LEVELS.keys()


def test_a_plan_of_one_look_has_its_nominal_level():
    assert Looks((7,)).level(0.95) == 0.95


def test_a_level_that_no_claim_has_is_refused():
    with pytest.raises(ValueError, match=r"0\.4 is too low for several looks"):
        FOUR.level(0.4)


def test_four_looks_at_the_nominal_level_would_err_three_times_as_often():
    assert (smallest_p_values(FOUR.seeds) < 0.05).mean() == pytest.approx(0.15, abs=0.01)


def test_any_look_errs_in_at_most_5_percent_of_experiments():
    """On fresh draws, with p-values by scipy."""
    values = np.random.default_rng(1).standard_normal((40_000, FOUR.seeds[-1]))
    smallest = np.min(
        [stats.ttest_1samp(values[:, :n], 0, axis=1).pvalue for n in FOUR.seeds], axis=0
    )
    assert (smallest < 1 - FOUR.level(0.95)).mean() == pytest.approx(0.05, abs=0.004)


def test_finished_looks_are_those_with_enough_seeds():
    assert [FOUR.finished(n) for n in (2, 3, 9, 10, 25)] == [0, 1, 2, 3, 4]


class TestIntervals:
    """Within the context, every interval is Student's at the level of one look."""

    values = np.random.default_rng(0).exponential(size=30)

    def test_mean(self):
        level = FOUR.level(0.95)
        low, high = stats.t.interval(level, 29, self.values.mean(), stats.sem(self.values))
        with allowing_for(FOUR):
            estimate = mean(self.values)
        assert (estimate.low, estimate.high) == (pytest.approx(low), pytest.approx(high))
        assert mean(self.values).high < estimate.high

    def test_comparison_of_many_seeds_is_no_bootstrap(self):
        with allowing_for(Looks((30,))):
            planned = compare(self.values, np.zeros(30), difference)
        student = mean(self.values)
        assert (planned.low, planned.high) == (student.low, student.high)
        assert compare(self.values, np.zeros(30), difference).high != student.high

    def test_joint_intervals(self):
        pairs = {
            name: (self.values, shift + self.values[::-1]) for name, shift in (("a", 0), ("b", 1))
        }
        with allowing_for(FOUR):
            joint = holm(pairs, difference)
            (first, second) = (compare(*pairs[name], difference, 0.975) for name in pairs)
        assert joint["b"].high == second.high
        assert joint["a"].high <= first.high

    def test_the_context_ends(self):
        before = mean(self.values)
        with allowing_for(FOUR):
            assert mean(self.values) != before
        assert mean(self.values) == before
        assert mean(self.values).high == pytest.approx(
            stats.t.interval(0.95, 29, self.values.mean(), stats.sem(self.values))[1]
        )
