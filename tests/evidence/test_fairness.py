"""Summaries of single clients, against values written out."""

import numpy as np
import pandas as pd
import pytest

import fedsampling as fs
from fedsampling.evidence.fairness import fairness, over_seeds
from fedsampling.evidence.ranking import ranking

N = 20
METRICS = {
    "samples": np.full(N, 10.0),
    "importance": np.full(N, 1 / N),
    "tests": np.full(N, 4.0),
    "offered": np.full(N, 8.0),
    "rounds": np.array([0.0, 8.0] + [4.0] * (N - 2)),
    "weight": np.array([0.0, 0.8] + [0.4] * (N - 2)),
    "loss": np.linspace(2, 0, N),
    "accuracy": np.array([0.1, 0.3] + [0.8] * (N - 4) + [0.9, 1.0]),
}


def history(shift=0.0, seeds=3, without=()):
    """Rows of every client, and an accuracy that was measured in rounds."""
    rows = [
        (seed, client, f"client_{name}", value + shift * seed * (name == "accuracy"))
        for seed in range(seeds)
        for name, values in METRICS.items()
        if name not in without
        for client, value in enumerate(values)
    ]
    rows += [(seed, 8, "accuracy", 0.5) for seed in range(seeds)]
    return pd.DataFrame(rows, columns=["seed", "at", "metric", "value"])


def test_a_row_for_each_client_has_its_part_in_rounds_and_weights():
    table = fs.by_client(history())
    assert len(table) == 3 * N
    first = table[table["seed"] == 0].set_index("client")
    assert first["participation"].iloc[:3].tolist() == [0, 1, 0.5]
    assert first["relative_weight"].iloc[:3].tolist() == pytest.approx([0, 2, 1])


def test_scores_on_training_samples_are_named_so():
    rows = history()
    rows.loc[rows["metric"] == "client_tests", "value"] = 0
    table = fs.by_client(rows)
    assert {"training_accuracy", "training_loss"} <= {*table}
    assert not {"accuracy", "loss"} & {*table}
    measures = fairness(table)
    assert measures["worst_training_accuracy"].iloc[0] == pytest.approx(0.2)
    assert "worst_accuracy" not in measures
    message = r"no test samples for 'worst_accuracy'; .*compare 'worst_tr"
    with pytest.raises(fs.InputError, match=message):
        ranking({"md": rows}, "worst_accuracy", "md")


def test_clients_without_tests_have_no_score():
    rows = history()
    rows.loc[(rows["metric"] == "client_tests") & (rows["at"] == 0), "value"] = 0
    table = fs.by_client(rows)
    assert table.groupby("client")["accuracy"].count().tolist() == [0] + [3] * (N - 1)
    worst = fairness(table)["worst_accuracy"].iloc[0]
    assert worst == pytest.approx((0.3 + 0.8) / 2)


def test_tenths_are_means_of_the_worst_and_best_clients():
    row = fairness(fs.by_client(history())).iloc[0]
    average = (0.1 + 0.3 + 16 * 0.8 + 0.9 + 1.0) / N
    assert row["never_selected"] == 1 / N
    assert row["least_weight"] == 0
    assert row["jain"] == pytest.approx(80**2 / (N * (64 + 18 * 16)))
    assert row["mean_accuracy"] == pytest.approx(average)
    assert row["worst_accuracy"] == pytest.approx(0.2)
    assert row["best_accuracy"] == pytest.approx(0.95)
    assert row["median_accuracy"] == 0.8
    assert row["accuracy_gap"] == pytest.approx(average - 0.2)


def test_for_regression_the_worst_clients_have_the_largest_losses():
    row = fairness(fs.by_client(history(without=("accuracy",)))).iloc[0]
    assert row["worst_loss"] == pytest.approx((METRICS["loss"][0] + METRICS["loss"][1]) / 2)
    assert row["best_loss"] < row["mean_loss"] < row["worst_loss"]


def test_samplers_are_compared_by_summaries_of_their_clients():
    histories = {"md": history(), "uniform": history(shift=-0.01)}
    table = fs.left_out(histories)
    assert table["sampler"].tolist() == ["md", "uniform"]
    uniform = table.iloc[1]
    assert uniform["worst_accuracy"] == pytest.approx(0.19)
    assert uniform["worst_accuracy_low"] < 0.19 < uniform["worst_accuracy_high"]
    worst = ranking(histories, "worst_accuracy", "md")
    assert worst["sampler"].tolist() == ["md", "uniform"]
    assert worst["value"].tolist() == pytest.approx([0.2, 0.19])
    assert not ranking(histories, "accuracy_gap", "md").attrs["larger"]


def test_intervals_stay_within_the_values_that_are_possible():
    table = fairness(fs.by_client(history())).iloc[[0, 0, 0]]
    table = table.assign(least_weight=[0.0, 0.01, 0.4], worst_accuracy=[1.0, 0.7, 1.0])
    row = over_seeds(table)
    assert (row["least_weight_low"], row["worst_accuracy_high"]) == (0.0, 1.0)
    assert 0 < row["least_weight_high"] < 1


def test_of_a_diverged_run_only_facts_about_the_clients_are_known():
    data = fs.load("mnist", "by_digit", data="embedded")
    work = {"model": "mlp", "steps": 2, "batch": 5, "rounds": 3, "by_client": True}
    with pytest.warns(UserWarning, match="diverged"):
        lost = fs.train(data, fs.scheme("md", m=5), step=1e30, **work)
    facts = ["samples", "importance", "tests", "offered"]
    table = fs.by_client(lost)
    expected = fs.by_client(fs.train(data, fs.scheme("md", m=5), step=0.1, **work))
    pd.testing.assert_frame_equal(table[facts], expected[facts])
    assert table[["rounds", "weight", "loss", "accuracy", "participation"]].isna().to_numpy().all()
    row = fs.left_out(lost).iloc[0]
    assert row["diverged"] == 1
    assert row[["never_selected", "least_weight", "jain", "worst_accuracy"]].isna().all()
