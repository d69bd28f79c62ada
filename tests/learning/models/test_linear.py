from dataclasses import replace

import numpy as np
import pytest
from tests.helpers.small_network import without_tests

from fedsampling.base.streams import stream
from fedsampling.learning.training.convex import MODELS, linear_regression, logistic_regression


@pytest.fixture(scope="module")
def unequal():
    """Three clients of different size and importance."""
    rng = stream(5, "test")
    x, y = rng.standard_normal((12, 3)), rng.standard_normal(12)
    return without_tests(x, y, [2, 5, 5], np.array([0.2, 0.5, 0.3]))


class TestMinimiser:
    @pytest.mark.parametrize("rho", [0.0, 0.001, 2.0])
    def test_equals_least_squares_on_the_stacked_system(self, unequal, rho):
        root = np.sqrt(np.repeat(unequal.p / unequal.n_samples, unequal.n_samples))
        A = np.concatenate([root[:, None] * unequal.x, np.sqrt(rho) * np.eye(3)])
        b = np.concatenate([root * unequal.y, np.zeros(3)])
        expected = np.linalg.lstsq(A, b)[0]
        assert linear_regression(rho).minimiser(unequal) == pytest.approx(expected, abs=1e-12)

    def test_equals_equations_57_to_59(self):
        rng = stream(6, "test")
        K, N_k, M, rho = 4, 5, 2, 0.1
        u, v, w_star = rng.normal(size=(K, N_k, M)), rng.normal(size=(K, N_k)), rng.normal(size=M)
        dataset = without_tests(u.reshape(-1, M), (u @ w_star + v).ravel(), [N_k] * K)
        R_u = np.mean([np.mean([np.outer(a, a) for a in u_k], axis=0) for u_k in u], axis=0)
        r_uv = np.mean([v_k @ u_k / N_k for u_k, v_k in zip(u, v, strict=True)], axis=0)
        inverse = np.linalg.inv(R_u + rho * np.eye(M))
        expected = inverse @ R_u @ w_star + inverse @ r_uv
        assert linear_regression(rho).minimiser(dataset) == pytest.approx(expected)

    def test_logistic_minimiser_has_zero_gradient(self, unequal):
        labelled = replace(unequal, y=np.where(unequal.y > 0, 1.0, -1.0))
        model = logistic_regression(0.05)
        w = model.minimiser(labelled)
        gradient = model.client_gradients(w[None], labelled)[0]
        assert labelled.p @ gradient == pytest.approx(np.zeros(3), abs=1e-9)


RHO, STEP = 0.3, 1e-6


def differences(name, w, x, y):
    """Central differences, exact to about 1e-9, of Q(w; x, y) as the papers write it."""

    def loss(w):
        z = x @ w
        margin = (y - z) ** 2 if name == "linear" else np.log1p(np.exp(-y * z))
        return margin + RHO * w @ w

    return [(loss(w + STEP * unit) - loss(w - STEP * unit)) / (2 * STEP) for unit in np.eye(3)]


@pytest.mark.parametrize("name", sorted(MODELS))
class TestGradients:
    def test_gradients_and_norms_are_those_of_finite_differences(self, name):
        rng = stream(1, "test")
        w, x = rng.normal(size=(2, 3)), rng.normal(size=(2, 4, 3))
        y = np.where(rng.random((2, 4)) < 0.5, -1.0, 1.0)
        weight = np.array([[0.5, 0.0, 2.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
        model = MODELS[name](RHO)
        result, norms = model.gradient(w, x, y, weight), model.norms(w, x, y)
        for slot in range(2):
            each = [differences(name, w[slot], x[slot, b], y[slot, b]) for b in range(4)]
            assert result[slot] == pytest.approx(weight[slot] @ each, abs=1e-7)
            assert norms[slot] == pytest.approx(np.linalg.norm(each, axis=1), abs=1e-7)

    def test_client_gradients_agree_with_norms_and_gradient_of_each_client(self, name, unequal):
        model = MODELS[name](RHO)
        data = replace(unequal, y=np.sign(unequal.y))
        w = stream(2, "test").normal(size=(2, 3))
        gradient, mean_norm = model.client_gradients(w, data), model.mean_norms(w, data)
        for k in range(3):
            rows = slice(data.start[k], data.start[k + 1])
            x = np.repeat(data.x[None, rows], 2, axis=0)
            y = np.repeat(data.y[None, rows], 2, axis=0)
            weight = np.full(y.shape, 1 / y.shape[1])
            assert gradient[:, k] == pytest.approx(model.gradient(w, x, y, weight))
            assert mean_norm[:, k] == pytest.approx(model.norms(w, x, y).mean(1))
