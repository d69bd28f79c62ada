"""A small problem with clients of different sizes."""

import numpy as np
import pytest
from tests.helpers.small_network import without_tests

from fedsampling.experiments.simulations.federated import at_optimum, build_sampler
from fedsampling.learning.training.convex import MODELS, ConvexLearner, ConvexWork
from fedsampling.learning.training.loop import measuring, train
from fedsampling.runs.rows import digest
from fedsampling.samplers.basic import MD, Uniform
from fedsampling.samplers.isfedavg import ISFedAvg
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup

L = 3
VARIANTS = ["fedavg", "optimal", "approximate", "tracked"]
VARIANTS += ["approximate-estimated", "tracked-estimated"]


class Problem:
    """A learner, and its samplers and training."""

    def __init__(self, learner):
        self.learner, self.data, self.model = learner, learner.data, learner.model
        self.iterates = []

    @property
    def optimum(self):
        return at_optimum(self.model, self.data)

    def sampler(self, variant, runs, m=L):
        if variant in ("fedavg", "md"):
            scheme = {"fedavg": Uniform, "md": MD}[variant](m=m)
            return prepared(scheme, Setup(self.learner.n_samples, self.learner.p, runs))
        rule, _, estimated = variant.partition("-")
        variability = estimated or "optimum"
        sampler = ISFedAvg(m=m, probabilities=rule, variability=variability)
        return build_sampler(sampler, self.learner, runs, self.optimum)

    def train(self, variant, seeds, rounds, m=L):
        """Tables of all seeds; the iterates are kept."""
        self.iterates.clear()

        def keep(theta, _):
            self.iterates.append(theta.copy())
            return {"square": (theta**2).sum(-1)}

        sampler = self.sampler(variant, len(seeds), m)
        return train(self.learner, sampler, seeds, rounds, [measuring(1, keep)]).tables()

    def digests(self, variant, seeds, rounds=6):
        tables = self.train(variant, seeds, rounds)
        return {seed: digest(table) for seed, table in zip(seeds, tables, strict=True)}


def make(model, K=7, M=3, **work):
    """K agents with 6 to 15 samples, batches of 1 to 5, 1 to 4 epochs."""
    rng = np.random.default_rng(3)
    N = rng.integers(6, 16, K)
    x = rng.normal(size=(N.sum(), M)) * np.repeat(rng.uniform(0.5, 2, K), N)[:, None]
    y = x @ rng.normal(size=M) + rng.normal(size=N.sum())
    data = without_tests(x, np.sign(y) if model == "logistic" else y, N)
    sizes = {"E": rng.integers(1, 5, K), "B": rng.integers(1, 6, K)}
    sizes |= {name: work.pop(name) for name in ("E", "B") if name in work}
    work = ConvexWork(**{"step": 0.05, "epochs": (1, 4), "batch": (1, 5), **work})
    return Problem(ConvexLearner(MODELS[model](0.01), data, work, **sizes))


@pytest.fixture(params=["linear", "logistic"])
def problem(request):
    return make(request.param)


@pytest.fixture
def linear():
    return lambda **work: make("linear", **work)


@pytest.fixture(params=VARIANTS)
def variant(request):
    return request.param
