"""The Quadratic of harshvardhan2025latency: its law, and what is refused."""

from functools import partial

import numpy as np
import pytest
from tests.data.datasets.loading import load

SMALL = {"clients": 6, "samples": 4_000, "tests": 3, "dimension": 4, "noise": 0.001}
loaded = partial(load, "quadratic", eigenvalues=(1.0, 10.0), **SMALL)


def covariances(dataset):
    x = dataset.x.astype(np.float64).reshape(6, 4_000, 4)
    return x.transpose(0, 2, 1) @ x / 4_000


def test_covariances_commute_and_differ_unless_clients_are_alike():
    # Shared eigenvectors: the mean's diagonalise each; errors are of order 10/√4000 ≈ 0.16.
    result = covariances(loaded(iid=False))
    axes = np.linalg.eigh(result.mean(0))[1]
    turned = axes.T @ result @ axes
    off = turned * (1 - np.eye(4))
    assert np.abs(off).max() < 1.2  # eight standard errors; the eigenvalues spread over nine
    values = np.diagonal(turned, axis1=1, axis2=2)
    assert 0.8 < values.min() < values.max() < 11.5
    assert values.std(0).max() > 1
    alike = covariances(loaded(iid=True))
    assert np.abs(alike - alike.mean(0)).max() < 1.5


def test_targets_are_those_of_a_binary_model_up_to_the_noise():
    dataset = loaded(iid=False)
    w, residual, *_ = np.linalg.lstsq(dataset.x.astype(np.float64), dataset.y, rcond=None)
    assert set(np.round(w, 3)) <= {0.0, 1.0}
    assert np.sqrt(residual[0] / len(dataset.y)) == pytest.approx(0.001, rel=0.05)
