"""Monte Carlo of the gradient estimate and of inclusion probabilities, against exact values."""

import numpy as np
import pytest
from tests.helpers.small_runs import array as column
from tests.helpers.small_runs import tables

RULES = ["optimal", "approximate", "tracked"]


@pytest.mark.parametrize("point", ["start", "optimum"])
@pytest.mark.parametrize("rule", ["uniform", *RULES])
def test_means_lie_within_their_errors_of_the_exact_gradient(rule, point):
    sampler = {"name": "uniform", "m": 3}
    if rule != "uniform":
        sampler = {"name": "isfedavg", "m": 3, "probabilities": rule}
    (table,) = tables("gradient", sampler=sampler, point=point, draws=4000)
    off = np.abs(column(table, "mean") - column(table, "exact"))
    # Five standard errors: sixteen comparisons raise a false alarm with probability 1e-5.
    assert (off < 5 * column(table, "se")).all()
    assert (np.abs(column(table, "exact")) < 1e-9).all() == (point == "optimum")


def test_all_agents_with_all_their_data_make_no_noise():
    all_agents = {"name": "isfedavg", "m": 8, "probabilities": "optimal"}
    (table,) = tables("gradient", sampler=all_agents, draws=10, batch=[12, 12])
    assert column(table, "noise") == pytest.approx([0], abs=1e-9)
    assert column(table, "mean") == pytest.approx(column(table, "exact"), rel=1e-4)


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
