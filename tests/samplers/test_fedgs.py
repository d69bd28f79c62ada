"""FedGS: the graph, its shortest paths, and the set that maximises the objective."""

from itertools import combinations

import numpy as np

from fedsampling.samplers.fedgs import FedGS, best_set, gain, graph_distances, similarities
from fedsampling.samplers.protocol.prepared import prepared

from .rounds import play_all, sized


def objective(A, u, members):
    return sum(A[i, j] for i, j in combinations(members, 2)) + sum(u[i] for i in members)


def played(scheme, counts, rounds, offered=None):
    """Play rounds; yield each round's clients and weights."""
    setup = sized(counts.sum(1), label_counts=counts)
    ready = prepared(scheme, setup)
    for slots, omega in play_all(ready, setup, rounds, offered=offered):
        yield slots.client, omega


def test_the_set_maximises_the_objective_over_all_sets():
    """Compared with enumeration, on 60 random problems like those of the sampler."""
    rng = np.random.default_rng(0)
    hits = []
    for _ in range(60):
        H = graph_distances(similarities(rng.dirichlet(np.full(6, 0.3), size=12)), 0.01, 0.1)
        A, u = gain(H, rng.poisson(2.0, 12), 0.1, 4, 12)
        best = max(objective(A, u, members) for members in combinations(range(12), 4))
        hits.append(objective(A, u, best_set(A, u, 4)) > best - 1e-12)
    assert np.mean(hits) > 0.95


def test_the_linear_part_is_the_growth_of_the_variance_of_the_counts():
    """Up to a constant, which all sets of the same size share."""
    count = np.array([3, 0, 1, 4, 2])
    _, u = gain(np.zeros((5, 5)), count, 0.1, 2, 5)
    sets = list(combinations(range(5), 2))
    variance = [(count + np.isin(np.arange(5), members)).var(ddof=1) for members in sets]
    sums = np.array([u[list(members)].sum() for members in sets]) + variance
    np.testing.assert_allclose(sums, sums[0])


def test_distances_are_shortest_paths():
    V = similarities(np.random.default_rng(1).dirichlet(np.ones(4), size=7))
    R = np.where(V > 0.01, np.exp(-(V**2) / 0.1), np.inf)
    np.fill_diagonal(R, 0)
    for _ in range(7):  # relax all edges, as Bellman and Ford do
        R = (R[:, :, None] + R[None]).min(1)
    H = graph_distances(V, 0.01, 0.1)
    np.testing.assert_allclose(H, R / R.max(), rtol=1e-12)


def test_clients_without_a_path_have_the_largest_distance():
    labels = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    H = graph_distances(similarities(labels), 0.5, 0.1)
    assert H[0, 2] == H[1, 2] == 1


def test_clients_of_different_labels_train_together_and_all_equally_often():
    counts = np.repeat(np.eye(3, dtype=int) * 17 + 1, 4, axis=0)  # four clients of each label
    total = np.zeros(12)
    for clients, _ in played(FedGS(m=3), counts, 40):
        assert sorted(clients // 4) == [0, 1, 2]
        total[clients] += 1
    np.testing.assert_array_equal(total, 10)


def test_clients_that_were_unavailable_come_first_when_they_return():
    counts = np.full((6, 2), 5)
    offered = [np.arange(4)] * 6 + [np.arange(6)]
    *_, (last, weights) = played(FedGS(m=2), counts, 7, offered)
    assert last.tolist() == [4, 5]
    np.testing.assert_allclose(weights, 0.5)
