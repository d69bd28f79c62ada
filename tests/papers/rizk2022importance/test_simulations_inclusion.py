"""The Monte-Carlo of inclusion probabilities against exact ones."""

import numpy as np
import pytest
from small_runs import array as column
from small_runs import tables


def simulate(scheme, **changes):
    return tables("inclusion", seeds=(0, 1), sampler={"name": scheme}, **changes)


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [("fixed", "target"), ("shuffled", "target"), ("successive", "equation3")],
)
def test_frequencies_are_those_that_each_scheme_promises(scheme, expected):
    table, second_seed = simulate(scheme)
    off = np.abs(column(table, "frequency") - column(table, expected))
    # Five standard errors: twelve comparisons raise a false alarm with probability 7e-6.
    assert (off < 5 * column(table, "se")).all()
    assert not np.array_equal(column(table, "frequency"), column(second_seed, "frequency"))


def test_successive_draws_miss_the_inclusion_probabilities_asked_for():
    table, _ = simulate("successive")
    assert (np.abs(column(table, "frequency") - column(table, "target")) > 0.025).all()


def test_shuffling_lets_neighbours_meet_that_a_fixed_order_keeps_apart():
    equal = {"probabilities": None, "units": 20, "size": 2}
    fixed, shuffled = (column(simulate(s, **equal)[0], "neighbours") for s in ("fixed", "shuffled"))
    assert fixed < shuffled


def test_larger_samples_have_no_equation_3():
    table, _ = simulate("fixed", size=3)
    assert set(table.metric) == {"target", "frequency", "se", "neighbours"}
    assert column(table, "target").sum() == pytest.approx(3)
