"""Probabilities tracked from participants' scores."""

from dataclasses import replace

import numpy as np

from fedsampling.samplers.tracked import redistributed

from .rounds import equal

N = 6
P = np.arange(1, N + 1) / 21
MANY = replace(equal(N, 20_000, dimension=3), p=P)


def test_participants_redistribute_their_own_probability():
    probabilities = redistributed(np.array([0.1, 0.3]), np.array([3.0, 1.0]))
    np.testing.assert_allclose(probabilities, [0.3, 0.1])
    # Nobody is excluded for good, and nothing is learnt of those who diverged or stood still.
    assert (redistributed(np.array([0.1, 0.3]), np.array([0.0, 1.0])) > 0).all()
    for scores in ([0.0, 0.0], [np.inf, 1.0], [np.nan, 1.0]):
        assert redistributed(np.array([0.1, 0.3]), np.array(scores)).tolist() == [0.1, 0.3]
