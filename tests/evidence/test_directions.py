"""Comparisons say what seeds and metrics say: no order from rounding, no direction from a name."""

import functools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shared import line_of

import fedsampling as fs
from fedsampling.evidence.directions import LARGER, SMALLER
from fedsampling.evidence.fairness import MEASURES, bounds_of
from fedsampling.learning.training.history import COMPARED_COSTS, METRICS

SCORES = st.floats(0.01, 1.0)
COUNTS = frozenset({"clients", "reports", "labels", "diverged_at"})  # no direction


def history(values, metric="score", order=None):
    rows = [(seed, 1, metric, value) for seed, value in enumerate(values)]
    table = pd.DataFrame(rows, columns=["seed", "at", "metric", "value"])
    return table if order is None else table.iloc[order]


@given(st.lists(SCORES, min_size=2, max_size=6), st.floats(-1, 1), st.integers(-3, 3))
def test_equal_differences_are_no_order(values, gap, ulps):
    values = np.array(values)
    rounded = values * (1 + ulps * 2.0**-52)
    table = fs.compare(
        {"a": history(values), "b": history(rounded + gap)}, metric="score", larger=True
    )
    assert table["significance"].tolist() == ["no", "no"]
    assert table[["rank_low", "rank_high"]].to_numpy().tolist() == [[1, 2], [1, 2]]
    assert not (table["difference_low"] == table["difference_high"]).any()
    if gap == 0:
        assert table["rank"].tolist() == [1, 1]
        assert table.set_index("sampler").loc["b", "difference"] == 0


@given(st.lists(st.tuples(SCORES, SCORES, SCORES), min_size=3, max_size=8), st.randoms())
def test_a_metric_and_its_negative_in_the_other_direction_rank_alike(seeds, random):
    columns = np.array(seeds).T
    tables = []
    for sign in (1, -1):
        order = random.sample(range(len(seeds)), len(seeds))  # rows of a history have no order
        histories = {
            label: history(sign * v, order=order) for label, v in zip("abc", columns, strict=True)
        }
        table = fs.compare(histories, metric="score", larger=sign > 0).set_index("sampler")
        tables.append(table.sort_index())
    for name in ("rank", "rank_low", "rank_high", "significance"):
        assert tables[0][name].tolist() == tables[1][name].tolist()
    np.testing.assert_allclose(tables[0]["value"], -tables[1]["value"])


@pytest.mark.parametrize("scale", [1, 100])
def test_scores_of_any_scale_have_an_interval_around_their_mean(scale):
    values = {"a": history(scale * np.array([0.7, 0.72, 0.9]), "accuracy")}
    row = fs.compare(values).iloc[0]
    assert row["low"] < row["value"] < row["high"]
    assert (row["high"] == 1) == (scale == 1)
    assert bounds_of("accuracy", np.array([0.2, 72.0])) == (-np.inf, np.inf)


@pytest.mark.filterwarnings("ignore:the best values are at the edge")
@pytest.mark.parametrize("direction", ["smaller_is_better", "greater_is_better"])
def test_a_function_declares_the_direction_of_its_metric(direction):
    x = np.random.default_rng(0).normal(size=(80, 2))
    data = fs.federated(x, (x[:, 0] > 0).astype(int), clients=np.arange(80) % 4, test_share=0.25)
    work = {"model": "softmax", "steps": 3, "batch": 5, "rounds": 4, "seeds": 2}

    def brier(model, x, y):
        return (model(x).softmax(1)[:, 1] - y).square().mean()

    setattr(brier, direction, direction == "smaller_is_better")
    for function in (brier, functools.partial(brier)):
        function.__dict__.update(brier.__dict__)
        options = {"metric": "brier", "metrics": {"brier": function}, **work}
        trials = fs.tune([fs.scheme("md", m=2)], data, {"step": [1e-6, 0.5]}, **options)
        assert trials.loc[trials["chosen"], "step"].tolist() == [0.5]
    runs = {
        str(step): fs.train(data, fs.scheme("md", m=2), step=step, metrics={"brier": brier}, **work)
        for step in (1e-6, 0.5)
    }
    assert fs.compare(runs, metric="brier")["sampler"].tolist() == ["0.5", "1e-06"]


def test_an_unknown_direction_is_refused_with_both_ways_to_say_it():
    line = line_of(lambda: fs.compare({"a": history([1.0, 2.0], "rmse")}, metric="rmse"))
    assert "pass larger=True or larger=False, or set smaller_is_better on its function" in line
    assert "larger: 'no' is invalid" in line_of(
        lambda: fs.compare({"a": history([1.0], "rmse")}, metric="rmse", larger="no")
    )


def test_every_metric_of_the_package_has_one_direction():
    assert not LARGER & SMALLER
    single = ("client_", "selected_")  # of a single client
    own = {name for name in METRICS if not name.startswith(single)} - COUNTS
    assert own | COMPARED_COSTS | {*MEASURES} <= LARGER | SMALLER
