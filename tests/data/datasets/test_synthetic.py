"""Synthetic(α, β): labels, features and sizes against FedProx's formulas."""

import numpy as np
import pytest
from tests.data.datasets.loading import load

from fedsampling.base.streams import stream
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
def test_alpha_and_beta_are_variances_in_text_and_deviations_in_code(variant, deviation):
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
