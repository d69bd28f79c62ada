"""DivFL: facility location on gradient differences."""

import numpy as np
import pytest

from fedsampling.samplers.divfl import DivFL, distances, lazy_greedy
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup

from .rounds import play


def gradients(n, seed=0, d=4):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, d)) * rng.uniform(0.2, 3, (n, 1))).astype(np.float32)


def gains(D, chosen):
    """Gain of each client, given the selected clients."""
    nobody = np.full(len(D), D.max() + 1)
    nearest = D[chosen].min(axis=0) if len(chosen) else nobody
    return np.maximum(nearest - D, 0).sum(axis=1)


def test_distances_are_euclidean_and_not_squared():
    g = gradients(9) + 1e3  # a common part must not cost digits
    expected = np.linalg.norm(g[:, None].astype(float) - g, axis=2)
    np.testing.assert_allclose(distances(g), expected, atol=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_lazy_greedy_adds_the_client_with_the_largest_gain(seed):
    D = distances(gradients(25, seed))
    chosen = lazy_greedy(D, 7)
    assert len(set(chosen)) == 7
    for step in range(7):
        gain = gains(D, chosen[:step])
        assert gain[chosen[step]] == pytest.approx(gain.max())


def test_equal_gradients_give_different_clients():
    assert sorted(lazy_greedy(np.zeros((4, 4)), 4)) == [0, 1, 2, 3]


def test_weights_are_equal_or_by_importance_or_by_covered_importance():
    g = np.array([[[0.0], [0.1], [10.0], [10.2], [10.3]]])
    setup = Setup(np.ones(5, np.int64), np.array([0.1, 0.1, 0.2, 0.2, 0.4]))
    omega = {}
    for weights in ("equal", "samples", "covered"):
        slots, values = play(
            prepared(DivFL(m=2, weights=weights), setup), setup, observed={"gradients": g}
        )
        omega[weights] = dict(zip(slots.client, values, strict=True))
    assert omega["equal"] == {2: 0.5, 0: 0.5}
    assert omega["samples"] == pytest.approx({2: 2 / 3, 0: 1 / 3})
    assert omega["covered"] == pytest.approx({2: 0.8, 0: 0.2})
