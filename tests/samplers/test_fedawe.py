"""FedAWE: training with local models, compared with a loop over clients."""

import numpy as np

import fedsampling
from fedsampling.base.streams import Draws
from fedsampling.learning.training.loop import play_round
from fedsampling.samplers.fedawe import FedAWE
from fedsampling.samplers.scheme import Setup, View

N, M, D, STEP = 6, 2, 3, 0.02
P = np.array([0.3, 0.1, 0.2, 0.1, 0.25, 0.05])
CENTRES = np.random.default_rng(2).normal(size=(N, D))


class Quadratic:
    """A learner of one run: client i takes a step of gradient descent on ‖x − c_i‖²/2."""

    n_samples, p = np.full(N, 5), P

    def __init__(self, available=None):
        self.available = available

    def offered(self, t):
        return np.arange(N) if self.available is None else np.flatnonzero(self.available[t])

    def observe(self, needs, theta, offered=None):
        return {}

    def work(self, theta, slots, sampler, rng, start=None):
        return STEP * (CENTRES[slots.client] - start)

    def report(self, needs, updates):
        return {}

    def advance(self, theta, updates, slots, omega, added=None, base=None):
        return base + (omega @ updates)[None]

    def charge(self, sampler, slots, omega, rng):
        return {}

    def state(self, theta):
        return {"theta": theta}


def trained(rounds, available=None, m=M):
    """Yield each round's model under the library's loop."""
    learner = Quadratic(available)
    ready = FedAWE(m=m).prepared(Setup(learner.n_samples, P, runs=1, dimension=D))
    theta = np.zeros((1, D))
    for t in range(rounds):
        theta, _ = play_round(learner, ready, theta, Draws(np.arange(1), t))
        yield theta[0], np.flatnonzero(ready._joined[0])


def test_training_follows_algorithm_1():
    """Compare with a plain loop over clients, each with its own model, as in Algorithm 1."""
    available = np.random.default_rng(4).random((30, N)) < np.linspace(0.3, 0.9, N)
    available[:, 0] |= ~available.any(1)
    x, tau = np.zeros((N, D)), np.full(N, -1)
    for t, (theta, active) in enumerate(trained(30, available)):
        reports = {}
        for i in active:
            innovation = x[i] - (x[i] + STEP * (CENTRES[i] - x[i]))  # G_i
            reports[i] = x[i] - (t - tau[i]) * innovation
            tau[i] = t
        share = P[active] / P[active].sum()
        new = sum(s * reports[i] for s, i in zip(share, active, strict=True))
        np.testing.assert_allclose(theta, new, rtol=1e-4, atol=1e-5)
        x[active] = new


def test_with_all_clients_in_every_round_it_is_fedavg():
    theta = np.zeros(D)
    for model, _ in trained(5, m=N):
        theta = theta + STEP * (P @ CENTRES - theta)
        np.testing.assert_allclose(model, theta, rtol=1e-5, atol=1e-6)


def test_seldom_available_clients_have_full_weight_in_the_long_run():
    """The mean model is near that of the full objective, where FedAvg's is far away."""
    available = np.random.default_rng(1).random((1500, N)) < np.array(
        [0.1, 0.9, 0.2, 0.9, 0.2, 0.9]
    )
    available[:, 1] |= ~available.any(1)
    models = [theta for theta, _ in trained(1500, available, m=N)]
    optimum, mean = P @ CENTRES, np.mean(models[400:], axis=0)
    rate = available.mean(0)
    biased = (P * rate / (P * rate).sum()) @ CENTRES  # about where FedAvg stays
    assert np.linalg.norm(mean - optimum) < 0.25 * np.linalg.norm(biased - optimum)


def test_weights_count_the_missed_rounds():
    sizes = np.full(N, 5)
    ready = FedAWE(m=1).prepared(Setup(sizes, P, 1, dimension=D))
    for t, client, expected in ((0, 2, 1.0), (1, 2, 1.0), (2, 4, 3.0), (5, 2, 4.0)):
        view, rng = View(sizes, P, t, 1).restricted_to(np.array([client])), Draws(np.arange(1), t)
        slots = ready.select(view, rng)
        assert ready.weigh(slots, view, rng).tolist() == [expected]


def test_a_network_learns_with_it():
    x = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    data = fedsampling.federated(x, y, clients=np.repeat(np.arange(8), 5), x_test=x, y_test=y)
    common = {"model": "softmax", "inputs": "raw", "steps": 2, "batch": 5, "step": 0.1}
    history = fedsampling.train(
        data, FedAWE(m=3), rounds=30, seeds=[0, 1], evaluate_every=30, **common
    )
    accuracy = history[(history["metric"] == "accuracy") & (history["at"] == 30)]["value"]
    assert (accuracy > 0.8).all()
