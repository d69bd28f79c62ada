"""FedEntOpt: the entropy, the next client, and the buffer."""

from collections import deque

import numpy as np
import pytest
from scipy.stats import entropy as scipy_entropy

from fedsampling.samplers.fedentopt import FedEntOpt, entropy, next_client, select_clients
from fedsampling.samplers.protocol.prepared import prepared

from .rounds import play_all, sized

NOBODY = np.zeros(12, np.int64)


def many_labels(seed, n=12, classes=5):
    return np.random.default_rng(seed).poisson(8, (n, classes)).astype(float)


def played(scheme, counts, rounds, runs=1, offered=None):
    """Play rounds; yield each round's slots and weights."""
    setup = sized(counts.sum(1), runs, label_counts=counts)
    yield from play_all(prepared(scheme, setup), setup, rounds, offered=offered)


def test_the_entropy_is_that_of_the_shares():
    counts = many_labels(0)
    np.testing.assert_allclose(entropy(counts), scipy_entropy(counts, base=2, axis=1))
    assert entropy(np.zeros(3)) == 0
    assert entropy(np.array([4.0, 4, 0])) == pytest.approx(1)


def test_each_client_after_the_first_has_the_largest_entropy():
    for seed in range(20):
        labels = many_labels(seed)
        selected = select_clients(labels, NOBODY, np.arange(12), 5, 1, seed / 20)
        for i in range(1, 5):
            others = [k for k in range(12) if k not in selected[:i]]
            together = [labels[selected[:i]].sum(0) + labels[k] for k in others]
            values = dict(zip(others, map(scipy_entropy, together), strict=True))
            assert values[selected[i]] == pytest.approx(max(values.values()), abs=1e-12)


def test_of_equal_clients_the_first_is_selected():
    labels = np.tile([[3.0, 1.0]], (4, 1))
    assert next_client(np.array([5.0, 7.0]), labels, np.array([1, 2, 3])) == 1


def test_the_first_client_is_uniform():
    counts = many_labels(1).astype(int)
    ((slots, _),) = played(FedEntOpt(m=2), counts, 1, runs=2_400)
    first = slots.client.reshape(2_400, 2)[:, 0]
    assert np.abs(np.bincount(first, minlength=12) - 200).max() < 5 * np.sqrt(200)


@pytest.mark.parametrize("buffer", [0.1, 0.5, 0.75])
def test_the_buffer_is_first_in_first_out(buffer):
    """Compared with a queue, over 40 rounds of three clients each."""
    counts, Q = many_labels(2).astype(int), round(buffer * 12)
    queue = deque(maxlen=Q)
    for slots, _ in played(FedEntOpt(m=3, buffer=buffer), counts, 40):
        for client in slots.client:
            assert client not in queue
            queue.append(client)


def test_the_buffer_leaves_enough_clients_for_a_round():
    """Q is capped at K − M = 11, so all twelve clients take turns."""
    counts = many_labels(3).astype(int)
    total = np.zeros(12)
    for slots, _ in played(FedEntOpt(m=1, buffer=1.0), counts, 36):
        total[slots.client] += 1
    np.testing.assert_array_equal(total, 3)


def test_clients_with_different_labels_train_together():
    counts = np.repeat(np.eye(3, dtype=int) * 20, 4, axis=0)  # four clients of each label
    for slots, weights in played(FedEntOpt(m=3), counts, 20):
        assert sorted(slots.client // 4) == [0, 1, 2]
        np.testing.assert_allclose(weights, 1 / 3)


def test_if_few_clients_are_available_the_oldest_leave_the_buffer_early():
    counts = many_labels(4).astype(int)
    offered = [np.arange(3)] * 3
    for slots, _ in played(FedEntOpt(m=2), counts, 3, offered=offered):
        assert len(set(slots.client)) == 2
        assert set(slots.client) <= {0, 1, 2}
