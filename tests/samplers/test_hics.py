"""HiCS-FL: entropies, distances and clusters as in the paper's equations."""

from math import exp, log, pi, sqrt

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from scipy.stats import entropy as shannon

from fedsampling.samplers.hics import (
    HiCS,
    client_distances,
    cluster_odds,
    clusters,
    estimated_entropy,
)
from fedsampling.samplers.protocol.prepared import prepared

from .rounds import equal, play, play_all

UPDATES = np.array([[0.2, -0.1, -0.1], [0.0, 0.1, -0.1], [-0.1, 0.3, -0.2], [0.1, 0.1, 0.1]])


def test_estimated_entropy_is_that_of_the_softmax():
    powers = np.exp(UPDATES / 0.1)
    expected = shannon(powers / powers.sum(1, keepdims=True), axis=1)
    np.testing.assert_allclose(estimated_entropy(UPDATES, 0.1), expected)
    assert expected[3] == pytest.approx(log(3))  # a balanced client


def test_distances_are_angles_plus_differences_of_entropy():
    entropy = estimated_entropy(UPDATES, 0.1)
    angle = np.arccos(np.clip(1 - squareform(pdist(UPDATES, "cosine")), -1, 1))
    expected = angle + 10 * np.abs(entropy[:, None] - entropy)
    result = client_distances(UPDATES, entropy, 10.0)
    np.testing.assert_allclose(result, np.where(np.eye(4), 0, expected), atol=1e-6)


def test_opposite_updates_are_half_a_turn_apart_in_spite_of_rounding():
    update = np.array([0.2, -0.5, -0.4])
    cosine = -(update @ update) / np.linalg.norm(update) ** 2
    assert cosine < -1  # by rounding
    distances = client_distances(np.array([update, -update]), np.zeros(2), 10.0)
    assert distances[0, 1] == pytest.approx(pi)


def test_clusters_separate_balanced_clients():
    rng = np.random.default_rng(1)
    balanced = rng.normal(size=(4, 5)) * 0.001
    skewed = 0.3 * np.eye(5)[[0, 0, 1, 1]]
    updates = np.concatenate([balanced, skewed])
    entropy = estimated_entropy(updates, 0.1)
    cluster = clusters(client_distances(updates, entropy, 10.0), 2)
    assert len({*cluster[:4]}) == len({*cluster[4:]}) == 1
    assert cluster[0] != cluster[4]


def test_clusters_are_drawn_by_their_mean_entropy():
    entropy, cluster = np.array([1.0, 0.5, 0.2, 0.4]), np.array([0, 0, 1, 1])
    powers = [exp(4 * 0.75), exp(4 * 0.3)]
    probabilities = cluster_odds(entropy, cluster, 4.0)
    np.testing.assert_allclose(probabilities, np.array(powers) / sum(powers))
    np.testing.assert_allclose(cluster_odds(entropy, cluster, 0.0), [0.5, 0.5])


def test_all_clients_train_once_before_any_trains_twice():
    n, m = 11, 4
    setup = equal(n, runs=3)
    ready = prepared(HiCS(m=m, temperature=0.1, horizon=20), setup)
    counts = np.zeros((3, n), int)
    updates = np.random.default_rng(0).normal(size=(10, 3 * m, 3))
    played = play_all(ready, setup, 10, trained=lambda t, _: {"bias_updates": updates[t]})
    for t, (slots, _) in enumerate(played):
        pairs = {*zip(slots.run.tolist(), slots.client.tolist(), strict=True)}
        assert len(pairs) == len(slots) == 3 * m  # distinct clients
        np.add.at(counts, (slots.run, slots.client), 1)
        if t == 2:
            assert counts.min() == 1
            assert counts.max(1).tolist() == [2, 2, 2]


def test_balanced_clients_are_preferred_until_the_horizon():
    runs, setup = 300, equal(10, runs=300)
    updates = np.concatenate([np.zeros((5, 4)) + 1e-9, 0.5 * np.eye(4)[[0, 0, 1, 1, 1]]])
    shares = []
    for t in (0, 100):
        ready = prepared(HiCS(m=1, clusters=2, temperature=0.1), setup)
        ready.state.updates, ready.state.seen[:] = np.tile(updates, (runs, 1, 1)), 1
        slots, _ = play(ready, setup, t, trained=lambda _: {"bias_updates": np.zeros((runs, 4))})
        shares.append(float((slots.client < 5).mean()))
    gap = float(np.diff(estimated_entropy(updates[[9, 0]], 0.1))[0])
    expected = 1 / (1 + exp(-4 * gap))
    assert shares[0] == pytest.approx(expected, abs=5 * sqrt(0.25 / runs))
    assert shares[1] == pytest.approx(0.5, abs=5 * sqrt(0.25 / runs))
