"""ISFedAvg is unbiased: exact sums over all outcomes of systematic sampling."""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.helpers.small_network import without_tests

from fedsampling.experiments.simulations.federated import at_optimum
from fedsampling.learning.training.convex import linear_regression, sample_norms
from fedsampling.samplers.importance import capped
from fedsampling.samplers.isfedavg import ISFedAvg
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Batch, Setup, Slots, View

L, K, M = 2, 5, 2
RULES = ["optimal", "approximate", "tracked"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    N = np.array([4, 9, 6, 12, 7])
    x = rng.normal(size=(N.sum(), M)) * np.repeat([0.3, 1, 1, 2, 5], N)[:, None]
    return without_tests(x, x @ [1, -2] + rng.normal(size=N.sum()), N)


MODEL = linear_regression(0.1)
E, B = np.array([1, 2, 1, 3, 2]), np.array([3, 2, 1, 4, 7])


def one_uniform(d):
    """Return what stands for the draws of a round whose variates are d."""
    return SimpleNamespace(uniform=lambda purpose: d)


def pieces(pi):
    """Middle and length of each interval of d in which the chosen set is the same."""
    ends = np.unique(np.append(np.cumsum(pi) % 1, [0, 1]))
    is_interval = np.diff(ends) > 1e-12  # the others are rounding
    return ((ends[:-1] + ends[1:]) / 2)[is_interval], np.diff(ends)[is_interval]


def at_model(data, rule, runs, w, variability="optimum"):
    """Set up a sampler, and what it observes at w; a tracked one holds arbitrary probabilities."""
    setup = Setup(data.n_samples, data.p, runs, E, B, at_optimum(MODEL, data))
    sampler = prepared(ISFedAvg(m=L, probabilities=rule, variability=variability), setup)
    state = sampler.state
    if rule == "tracked":
        rng = np.random.default_rng(1)
        state.p_agents[:] = rng.dirichlet(np.ones(K))
        for k, N_k in enumerate(data.n_samples):
            state.p_data[:, k, :N_k] = rng.dirichlet(np.ones(N_k))
    theta = np.repeat(w[None], runs, axis=0)
    observed = {
        "client_gradients": MODEL.client_gradients(theta, data),
        "mean_norms": MODEL.mean_norms(theta, data),
    }
    return sampler, View(data.n_samples, data.p, 0, runs, observed)


@pytest.mark.parametrize("variability", ["optimum", "estimated"])
@pytest.mark.parametrize("rule", RULES)
def test_estimate_of_the_aggregate_gradient_is_unbiased(data, rule, variability):
    """Lemma 1, at a model that is not w^o: integrate over d of the agents and of every batch."""
    w = np.array([0.5, 2.0])
    gradients = MODEL.client_gradients(w[None], data)[0]
    sampler, view = at_model(data, rule, 1, w, variability)
    sampler.select(view, one_uniform(np.array([0.5])))
    d, length = pieces(capped(sampler.state.p_agents[0], L))
    sampler, view = at_model(data, rule, len(d), w, variability)  # one run for each piece
    slots = sampler.select(view, one_uniform(d))
    assert (np.bincount(slots.run) == L).all()
    omega = sampler.weigh(slots, view, None)

    local = np.empty((K, M))
    for k, N_k in enumerate(data.n_samples):
        norms = sample_norms(MODEL, data, w[None], np.array([k]))
        p = sampler.state.p_data[0, k] if rule == "tracked" else sampler.state.p_data[k]
        pi = capped((norms[0] if rule == "approximate" else p)[:N_k], int(B[k]))
        u, share = pieces(pi)
        total = 0
        for u_piece, share_piece in zip(u, share, strict=True):
            slot = Slots(np.array([0]), np.array([k]), np.ones(1))
            if rule == "approximate":
                sampler.saw_samples(slot, norms)
            batch = sampler.batch(slot, np.array([u_piece]))
            used = batch.weight[0] > 0
            assert used.sum() == B[k]
            rows = data.start[k] + batch.index[0]
            total = total + share_piece * MODEL.gradient(
                w[None], data.x[None, rows], data.y[None, rows], batch.weight
            )
        local[k] = total[0]
        np.testing.assert_allclose(local[k], gradients[k], rtol=1e-8)

    weight = length[slots.run] * omega * slots.scale
    np.testing.assert_allclose(weight @ local[slots.client], gradients.mean(0), rtol=1e-8)


def test_the_optimal_rule_includes_agents_in_proportion_to_equation_48(data):
    w = at_optimum(MODEL, data)["w"]
    expected = []
    for k in range(K):
        rows = slice(data.start[k], data.start[k + 1])
        x, y = data.x[rows], data.y[rows]
        g = 2 * (x @ w - y)[:, None] * x + 2 * MODEL.rho * w
        sigma2 = 6 / (E[k] * B[k]) * np.linalg.norm(g, axis=1).mean() ** 2
        expected.append(np.sqrt(sigma2 + (3 + 6 / (E[k] * B[k])) * (g.mean(0) ** 2).sum()))
    sampler, _ = at_model(data, "optimal", 1, w)
    assert sampler.state.p_agents[0] == pytest.approx(np.array(expected) / sum(expected))


def test_tracking_changes_only_sampled_data_and_preserves_the_sums(data):
    sampler, _ = at_model(data, "tracked", 2, np.zeros(M))
    before = sampler.state.p_data.copy()
    slots = Slots(np.array([1]), np.array([3]), np.ones(1))
    batch = Batch(np.array([[2, 5, 9, 0, 0, 0, 0]]), np.array([[1.0, 1, 1, 0, 0, 0, 0]]))
    sampler.saw_batch(slots, batch, np.array([[1.0, 2, 3, 9, 9, 9, 9]]))
    after = sampler.state.p_data
    changed = np.argwhere(after != before)
    assert {tuple(where) for where in changed} <= {(1, 3, 2), (1, 3, 5), (1, 3, 9)}
    held = before[1, 3, [2, 5, 9]].sum()
    assert after[1, 3, [2, 5, 9]] == pytest.approx(held * np.array([1, 2, 3]) / 6)
    assert after.sum(-1) == pytest.approx(np.ones((2, K)))


@pytest.mark.parametrize("variability", ["optimum", "estimated"])
def test_tracking_agents_is_equation_52(data, variability):
    sampler, _ = at_model(data, "tracked", 2, np.zeros(M), variability)
    before = sampler.state.p_agents.copy()
    slots = Slots(np.array([0, 0, 1, 1]), np.array([0, 4, 2, 3]), np.ones(4))
    k, gradient, sigma2 = slots.client, np.arange(8.0).reshape(4, M), np.array([1.0, 2, 3, 4])
    sampler.saw_round(slots, {"gradient": gradient, "sigma2": sigma2})
    if variability == "optimum":
        sigma2 = 6 / (E[k] * B[k]) * at_optimum(MODEL, data)["mean_norm"][k] ** 2
    scores = np.sqrt(sigma2 + (3 + 6 / (E[k] * B[k])) * (gradient**2).sum(1))
    expected = before.copy()
    for run, rows in enumerate(([0, 1], [2, 3])):
        share = scores[rows] / scores[rows].sum()
        expected[run, k[rows]] = share * (1 - np.delete(before[run], k[rows]).sum())
    np.testing.assert_allclose(sampler.state.p_agents, expected)
