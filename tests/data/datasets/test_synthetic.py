"""Synthetic(α, β): labels, features and sizes against FedProx's formulas."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.data.datasets.loading import load

from fedsampling.base.streams import stream
from fedsampling.data.datasets.regression import Regression
from fedsampling.data.datasets.synthetic import CLASSES, DIMENSION, Synthetic, draw, sample_sizes


def test_labels_are_those_of_the_clients_own_model():
    rng = stream(0, "test")
    models, means = rng.standard_normal((3, CLASSES, DIMENSION + 1)), np.zeros((3, DIMENSION))
    x, y = draw(models, means, np.array([5, 7, 9]), rng)
    client = np.repeat([0, 1, 2], [5, 7, 9])
    for row, label, k in zip(x.astype(np.float64), y, client, strict=True):
        scores = [sum(models[k, c, :-1] * row) + models[k, c, -1] for c in range(CLASSES)]
        assert label == int(np.argmax(scores))


def test_features_have_the_papers_mean_and_variance():
    means = np.array([np.full(DIMENSION, 3.0), np.full(DIMENSION, -1.0)])
    models = np.zeros((2, CLASSES, DIMENSION + 1))
    x, _ = draw(models, means, np.array([20_000, 20_000]), stream(0, "test"))
    np.testing.assert_allclose(x[:20_000].mean(0), 3, atol=0.04)
    np.testing.assert_allclose(x[20_000:].mean(0), -1, atol=0.04)
    variance = [j**-1.2 for j in range(1, DIMENSION + 1)]
    np.testing.assert_allclose(x[:20_000].var(0), variance, rtol=0.05)


def test_sizes_are_fifty_and_a_log_normal_number():
    sizes = sample_sizes(20_001, stream(0, "test"))
    assert sizes.min() >= 50
    beyond = np.log(sizes[sizes > 60] - 50.0)
    assert np.median(sizes) - 50 == pytest.approx(np.exp(4), rel=0.1)
    assert np.quantile(beyond, 0.9) > 6  # e^(4 + 1.28 · 2) = 700 of a tenth


@pytest.mark.parametrize(("variant", "deviation"), [("text", 2.0), ("code", 4.0)])
def test_alpha_and_beta_are_variances_in_the_text_and_deviations_in_the_code(variant, deviation):
    record = Synthetic(name="synthetic", alpha=4, beta=4, clients=4000, variant=variant)
    models, means = record._laws(0)
    # The mean of 610 entries of N(u_k, 1), and of 60 of N(B_k, 1).
    assert models.mean((1, 2)).std() == pytest.approx(deviation, rel=0.05)
    assert means.mean(1).std() == pytest.approx(deviation, rel=0.05)


def test_iid_clients_share_the_model_and_the_features():
    models, means = Synthetic(name="synthetic", iid=True)._laws(0)
    assert (models == models[0]).all()
    assert not means.any()


def test_a_tenth_of_each_clients_samples_are_its_tests():
    data = load("synthetic", clients=8)
    sizes = sample_sizes(8, stream(0, "data.sizes"))
    assert data.n_samples.tolist() == [int(0.9 * size) for size in sizes]
    assert (data.n_samples + np.diff(data.start_test)).tolist() == sizes.tolist()
    np.testing.assert_allclose(data.p, data.n_samples / data.n_samples.sum())


# The Quadratic of harshvardhan2025latency: its law, and what is refused.


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


PAPER = {"samples": 100, "dimension": 2, "eigenvalues": (1.0, 4.0), "noise": (0.01, 1.0)}


def generated(seed=0, agents=300, **changed):
    return Regression(agents=agents, **(PAPER | changed)).load("generated", seed, Path(), None)


class TestLaw:
    def test_covariances_have_the_chosen_eigenvalues_in_every_direction(self):
        dataset = generated(agents=400, samples=4_000)
        u = dataset.x.reshape(400, 4_000, 2)
        values, vectors = np.linalg.eigh(u.transpose(0, 2, 1) @ u / 4_000)
        # The greater of two uniform numbers on [1, 4], shifted by estimation by at most about
        # 0.05.  Error probability of each Kolmogorov-Smirnov test: 1e-4.
        greater = stats.kstest(values[:, 1], lambda z: np.clip((z - 1) / 3, 0, 1) ** 2)
        angle = np.arctan2(vectors[:, 1, 1], vectors[:, 0, 1]) % np.pi / np.pi
        assert greater.pvalue > 1e-4
        assert stats.kstest(angle, "uniform").pvalue > 1e-4

    def test_noise_variance_is_log_uniform_over_the_agents(self):
        with_noise = generated(samples=2_000, eigenvalues=(1e-12, 1e-12))  # u = 0 nearly, so d = v
        variance = with_noise.y.reshape(300, 2_000).var(axis=1)
        share = np.log(variance / 0.01) / np.log(100)
        assert stats.kstest(share, "uniform").pvalue > 1e-4  # the error probability

    def test_few_agents_are_a_factor_noisier_than_all_others(self):
        noise = {"few": 4, "factor": 1e4, "others": 0.1}
        noisy, even = generated(noise=noise), generated(noise=(0.1, 0.1))
        v = (noisy.y - even.y).reshape(300, 100)
        assert np.allclose(v[4:], 0, atol=1e-12)
        assert v[:4].var(axis=1) == pytest.approx(np.full(4, 0.1 * (100 - 1) ** 2), rel=0.6)

    def test_same_seed_same_data_other_seed_other_data(self):
        first, same_seed, other_seed = (generated(seed) for seed in (1, 1, 2))
        assert np.array_equal(first.y, same_seed.y)
        assert not np.isclose(first.y, other_seed.y).any()
