"""When a recomputed run agrees with the stored one."""

import numpy as np
import pandas as pd
import pytest

from fedsampling.evidence.recomputed import Recomputed, compare_tables, recheck_sentence


def table(loss, accuracy):
    metrics = ["loss", "accuracy", "accuracy"]
    return pd.DataFrame({"at": 1, "metric": metrics, "value": [loss, 0.9, accuracy]})


@pytest.mark.parametrize(
    ("loss", "accuracy", "outcome"),
    [
        (2.0 + 1e-7, 0.8, "within tolerance"),
        (2.0 + 1e-5, 0.8, "differs"),
        (2.0, 0.8 + 3 / 1819, "within tolerance"),  # three test samples
        (2.0, 0.81, "differs"),
        (np.nan, 0.8, "differs"),
    ],
)
def test_losses_agree_up_to_rounding_and_accuracies_up_to_a_sample(loss, accuracy, outcome):
    assert compare_tables(table(loss, accuracy), table(2.0, 0.8))[0] == outcome


def test_other_rows_never_agree():
    assert compare_tables(table(2.0, 0.8)[:2], table(2.0, 0.8)) == ("differs", -1.0, None)


def test_infinite_values_hide_no_other_difference():
    stored = pd.DataFrame({"at": range(3), "metric": "seconds", "value": [1.0, 2.0, np.inf]})
    assert compare_tables(stored, stored)[0] == "within tolerance"
    assert compare_tables(stored.assign(value=[1.0, 5.0, np.inf]), stored) == ("differs", 1.5, 1)
    assert compare_tables(stored.assign(value=[1.0, 2.0, 7.0]), stored)[0] == "differs"


def test_metrics_that_the_stored_run_lacks_are_not_compared():
    whole = table(2.0, 0.8)
    loss = whole[whole["metric"] == whole["metric"].iloc[0]].reset_index(drop=True)
    assert len(loss) < len(whole)
    assert compare_tables(whole, loss)[0] == "within tolerance"
    assert compare_tables(loss, whole)[0] == "differs"


def test_the_first_round_that_differs_is_reported():
    stored = pd.DataFrame({"at": range(5), "metric": "seconds", "value": 1.0})
    recomputed = stored.assign(value=[1.0, 1.0, 1.0, 2.0, 1.0])
    assert compare_tables(recomputed, stored) == ("differs", 1.0, 3)


def test_the_summary_counts_runs_that_rounding_changed_apart():
    outcomes = ("equal", "differs", "within tolerance", "rounding")
    assert recheck_sentence(
        [Recomputed("paper/job", 0, "", outcome, 0.0) for outcome in outcomes]
    ).endswith(
        "3 of 4 agree (1 in all stored digits, 1 up to rounding, 1 until rounding errors grew)"
    )
    none = [Recomputed("paper/job", 0, "", "differs", 0.0)]
    assert recheck_sentence(none) == "Recomputed on this machine: 0 of 1 agree"
