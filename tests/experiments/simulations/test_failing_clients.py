"""A training run of the pipeline whose clients fail after they were selected."""

import numpy as np
import pytest
from tests.helpers.network_runs import network, tables
from tests.helpers.small_runs import NOWHERE
from tests.helpers.small_runs import array as by_round
from tests.shared import line_of

from fedsampling.experiments.specs import canonical

FAILING = {"failures": {"probability": 0.3, "deadline": 60.0}}
RECORDED = {"evaluation": {"selections": True}}


def test_failures_and_selections_are_hashed_only_if_set():
    plain = canonical(network().model_dump(mode="json"))
    assert "failures" not in plain
    assert "selections" not in plain
    number = network({"failures": 0.3}).model_dump(mode="json")["failures"]
    record = network({"failures": {"probability": 0.3}}).model_dump(mode="json")["failures"]
    assert number == record == {
        "probability": [0.3], "reports": None, "deadline": None, "first": None,
    }  # fmt: skip


def test_the_table_of_a_run_has_its_failures_and_its_selections():
    (table,) = tables(network(FAILING | RECORDED), [0])
    reported = by_round(table, "selected_reported").reshape(6, 4)
    np.testing.assert_array_equal(4 - reported.sum(1), by_round(table, "failed"))
    assert by_round(table, "seconds").max() <= 60
    (without,) = tables(network(FAILING), [0])
    rest = table[~table["metric"].astype(str).str.startswith("selected_")]
    np.testing.assert_array_equal(without["value"], rest["value"])


def test_runs_of_other_learning_rates_fail_together():
    slow = network(FAILING | RECORDED)
    fast = network(FAILING | RECORDED | {"work": {"step": 0.02}})
    stacked = slow.simulate_stacked([slow, fast], "embedded", [0, 1], NOWHERE).tables
    singles = [*tables(slow, [0]), *tables(fast, [1])]
    for table, single in zip(stacked, singles, strict=True):
        np.testing.assert_array_equal(table["value"], single["value"])


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"delays": None, **FAILING}, "failures.deadline: no effect without delays"),
        ({"failures": {"first": 4}}, "failures.first: 4 is no less than the 4 clients that"),
        ({"failures": {"probability": 0}}, "failures: no effect; set probability above 0"),
        ({"failures": {"wait": 4}}, "failures.wait: unknown key"),
    ],
)
def test_settings_without_effect_are_refused(changes, line):
    assert line_of(network, changes).startswith(line)
