"""Each client's rounds and weight, and the final model on its own samples."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.helpers.small_network import SIZES, TESTS, dataset, learner, samples

import fedsampling as fs
from fedsampling.learning.training.evaluation import on_own_samples
from fedsampling.learning.training.participation import Participation
from fedsampling.samplers.protocol.slots import Slots

N, ROUNDS = len(SIZES), 6
WORK = {
    "model": {"name": "mlp", "hidden": 5}, "steps": 2, "batch": 3, "step": 0.1, "rounds": ROUNDS,
    "seeds": 2, "evaluate_every": 3, "by_client": True,
}  # fmt: skip


def table(history):
    """A row for each seed and client, a column for each metric."""
    rows = history[history["metric"].str.startswith("client_")]
    return rows.pivot(index=["seed", "at"], columns="metric", values="value")


def last(history, metric):
    rows = history[(history["metric"] == metric) & (history["at"] == ROUNDS)]
    return rows.sort_values("seed")["value"].to_numpy()


def test_rounds_of_all_clients_add_up_to_m_in_each_round():
    clients = table(fs.train(dataset(), fs.scheme("uniform", m=3), **WORK))
    assert len(clients) == 2 * N
    assert clients["client_rounds"].groupby("seed").sum().tolist() == [3 * ROUNDS] * 2
    assert clients["client_rounds"].between(0, ROUNDS).all()
    assert (clients["client_offered"] == ROUNDS).all()
    assert clients.loc[0, "client_samples"].tolist() == SIZES.tolist()
    assert clients.loc[1, "client_importance"].tolist() == pytest.approx(SIZES / SIZES.sum())


def test_weights_of_full_participation_are_the_importances():
    clients = table(fs.train(dataset(), "full", **WORK))
    assert (clients["client_rounds"] == ROUNDS).all()
    expected = ROUNDS * clients["client_importance"]
    assert clients["client_weight"].tolist() == pytest.approx(expected.tolist())


def test_weights_of_a_client_drawn_twice_add_up():
    counts = Participation(by_client=True)
    counts.start(1, 3)
    counts.count(Slots.stack([np.array([2, 0, 2])]), np.array([0.5, 0.25, 0.125]))
    assert counts.weights.tolist() == [[0.25, 0, 0.625]]
    assert counts.rounds.tolist() == [[1, 0, 1]]


@pytest.mark.parametrize(
    ("metric", "data"), [("accuracy", dataset()), ("loss", replace(dataset(), start_test=None))]
)
def test_accuracies_and_losses_weighted_by_importance_are_the_metrics(metric, data):
    history = fs.train(data, fs.scheme("md", m=3), **WORK)
    clients = table(history)
    assert clients["client_tests"].any() == (metric == "accuracy")
    if metric == "accuracy":
        clients = clients[clients["client_tests"] > 0]
    weights = clients["client_importance"]
    weighted = (clients[f"client_{metric}"] * weights).groupby("seed").sum()
    mean = weighted / weights.groupby("seed").sum()
    assert mean.tolist() == pytest.approx(last(history, metric).tolist())


def test_a_client_without_tests_is_measured_on_its_training_samples():
    trainer = learner()
    theta = trainer.start(np.array([4, 9]))
    measured = on_own_samples(trainer, theta)
    assert measured["client_tests"][0].tolist() == np.diff(TESTS).tolist()
    x, y = samples(1)
    for run in range(2):
        predicted = trainer.network.outputs(theta[run : run + 1], x[None])[0].argmax(1)
        expected = float((predicted == y).float().mean())
        assert measured["client_accuracy"][run, 1] == pytest.approx(expected)


def test_unavailable_clients_are_offered_less_often():
    work = WORK | {"availability": {"name": "markov", "rate": [0.2, 0.8], "persistence": 0.5}}
    clients = table(fs.train(dataset(), fs.scheme("md", m=2), **work))
    assert (clients["client_rounds"] <= clients["client_offered"]).all()
    assert clients["client_offered"].min() < ROUNDS


def test_other_metrics_do_not_change():
    settings = WORK | {"by_client": False}
    plain = fs.train(dataset(), fs.scheme("md", m=3), **settings)
    with_clients = fs.train(dataset(), fs.scheme("md", m=3), **WORK)
    is_other = ~with_clients["metric"].str.startswith("client_")
    pd.testing.assert_frame_equal(plain, with_clients[is_other].reset_index(drop=True))
