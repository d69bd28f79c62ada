"""Evaluation agrees with explicit sums over clients."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from tests.helpers.small_network import SIZES, TESTS, learner, samples

from fedsampling.learning.training import evaluation
from fedsampling.learning.training.evaluation import client_losses, evaluate
from fedsampling.learning.training.learner import NetworkLearner

TRAINER = learner()
THETA = TRAINER.start(np.array([4, 9]))


def outputs(run, x):
    return TRAINER.network.outputs(THETA[run : run + 1], x[None])[0]


def is_correct(run):
    """Whether a run's model predicts the label of each test sample."""
    predicted = outputs(run, torch.from_numpy(TRAINER.data.x_test).float() / 255).argmax(1)
    return predicted.numpy() == TRAINER.data.y_test


def shares(run):
    """Shares of correct predictions, of each client with tests."""
    return [is_correct(run)[begin:end].mean() for begin, end in pairwise(TESTS) if end > begin]


def test_a_run_does_not_depend_on_the_runs_stacked_with_it():
    theta = TRAINER.start(np.arange(50))
    stacked = evaluate(TRAINER, theta)
    for run in range(50):
        single = evaluate(TRAINER, theta[run : run + 1])
        assert {name: value[0] for name, value in single.items()} == {
            name: value[run] for name, value in stacked.items()
        }


@pytest.mark.parametrize("batch", [5, 1000])
def test_loss_and_accuracy_are_weighted_over_clients(batch, monkeypatch):
    monkeypatch.setattr(evaluation, "BLOCK_SAMPLES", batch)
    result = evaluate(TRAINER, THETA)
    p = SIZES / SIZES.sum()
    for run in range(2):
        losses = [float(F.cross_entropy(outputs(run, x), y)) for x, y in map(samples, range(5))]
        values = {"loss": (losses, p), "accuracy": (shares(run), p[np.diff(TESTS) > 0])}
        for name, (by_client, weights) in values.items():
            mean = np.average(by_client, weights=weights)
            assert result[name][run] == pytest.approx(mean, rel=1e-6)
            spread = np.sqrt(np.average((by_client - mean) ** 2, weights=weights))
            assert result[f"{name}_std"][run] == pytest.approx(spread, rel=1e-5)


def test_quantiles_over_clients_have_equal_weights():
    result = evaluate(TRAINER, THETA, clients=True)
    assert result.keys() - evaluate(TRAINER, THETA).keys() == {
        f"accuracy_{name}" for name in ("worst", "q10", "q50", "q90")
    }
    assert result["accuracy_worst"][1] == min(shares(1))  # a tenth of four is one
    for level in (10, 50, 90):
        assert result[f"accuracy_q{level}"][1] == pytest.approx(np.quantile(shares(1), level / 100))


def test_a_common_test_set_is_weighted_by_clients_labels_without_spread():
    data, correct = replace(TRAINER.data, start_test=None), is_correct(0)
    shared = NetworkLearner(TRAINER.network, data, TRAINER.local)
    result = evaluate(shared, THETA, clients=True)
    assert result["accuracy"][0] == correct.mean()
    assert "accuracy_std" not in evaluate(shared, THETA)
    by_client = []
    for begin, end in pairwise(data.start):
        labels = [label for label in data.y[begin:end] if label in data.y_test]
        by_client.append(np.mean([correct[data.y_test == label].mean() for label in labels]))
    assert result["accuracy_q50"][0] == pytest.approx(np.quantile(by_client, 0.5))
    assert result["accuracy_worst"][0] == pytest.approx(min(by_client))


def test_clients_whose_labels_are_not_tested_are_left_out():
    y, others = TRAINER.data.y.copy(), TRAINER.data.y_test != 0
    y[: TRAINER.data.start[1]] = 0  # the first client has no other label
    tests = {"x_test": TRAINER.data.x_test[others], "y_test": TRAINER.data.y_test[others]}
    data = replace(TRAINER.data, start_test=None, y=y, **tests)
    result = evaluate(NetworkLearner(TRAINER.network, data, TRAINER.local), THETA, clients=True)
    correct, by_client = is_correct(0)[others], []
    for begin, end in pairwise(data.start):
        if len(labels := data.y[begin:end][np.isin(data.y[begin:end], data.y_test)]):
            share = [correct[data.y_test == label].mean() for label in labels]
            by_client.append(np.mean(share))
    assert 0 < len(by_client) < len(data.start) - 1
    assert result["accuracy_q50"][0] == pytest.approx(np.quantile(by_client, 0.5))
    assert result["accuracy_worst"][0] == pytest.approx(min(by_client))


def test_the_training_loss_can_be_omitted():
    tests = evaluate(TRAINER, THETA, training_loss=False)
    assert evaluate(TRAINER, THETA).keys() - tests.keys() == {"loss", "loss_std"}


def test_dropout_is_off_by_default():
    dropping = replace(
        TRAINER.network, body=lambda w, x, keep: keep(TRAINER.network.body(w, x, keep), 0.5)
    )
    trainer = NetworkLearner(dropping, TRAINER.data, TRAINER.local)
    off = client_losses(trainer, THETA)
    np.testing.assert_array_equal(off, client_losses(TRAINER, THETA))
    assert (off != client_losses(trainer, THETA, dropout=True)).all()
