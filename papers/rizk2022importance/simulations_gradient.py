"""Monte Carlo of the gradient estimate at a fixed model: its bias and its noise.

The estimate comes from the training code: the update of one round, divided by a step so small that
the incremental error (15) of Rizk et al. 2022 vanishes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from fedsampling.base.records import Counts, Positive
from fedsampling.base.streams import Draws
from fedsampling.data.datasets.dataset import ConvexData
from fedsampling.experiments.simulations.federated import (
    ConvexModel,
    at_optimum,
    build_learner,
    build_sampler,
    check_fits,
)
from fedsampling.experiments.simulations.simulation import (
    Progress,
    RunContext,
    Seed,
    Simulated,
    Simulation,
    tidy,
)
from fedsampling.learning.training.convex import ConvexWork, aggregate
from fedsampling.samplers.checks.validation import Checked
from fedsampling.samplers.protocol.in_settings import ConvexScheme
from fedsampling.samplers.protocol.slots import View

if TYPE_CHECKING:
    import pandas as pd


STEP = 1e-6
STACK = 100  # estimates drawn at once, as runs of one job


class Gradient(Simulation, name="gradient"):
    """Draw the aggregate gradient estimate many times at a fixed model."""

    step_seconds: ClassVar[float] = 0.0001

    dataset: ConvexData
    model: ConvexModel
    epochs: Counts = Field(description="range of E_k")
    batch: Counts = Field(description="range of B_k")
    sampler: ConvexScheme
    point: Literal["start", "optimum"] = Field(description="the model: zero, or w^o")
    draws: Positive
    problem_seed: Seed = 0

    @model_validator(mode="after")
    def _consistent(self) -> "Gradient":
        check_fits(self.dataset, self.sampler, self.batch)
        return self

    def simulate(
        self,
        data: str,
        seeds: Sequence[int],
        where: RunContext,
        progress: Progress = lambda _: None,
    ) -> Simulated:
        """Draw the estimate many times and compare it with the exact gradient.

        Returns per coordinate: ``exact``, ``mean`` of the estimates and its ``se``.  For the run:
        ``noise`` = E‖s‖², the mean squared error of an estimate (the left side of equation 19).
        """
        problem = self.dataset.load(data, self.problem_seed, where.cache, where.mirror)
        work = ConvexWork(step=STEP, epochs=self.epochs, batch=self.batch)
        learner = build_learner(self.model, work, problem, self.problem_seed)
        optimum = at_optimum(learner.model, problem)
        w = optimum["w"] if self.point == "optimum" else np.zeros_like(optimum["w"])
        theta = np.repeat(w[None], STACK, axis=0)
        exact = problem.p @ learner.model.client_gradients(w[None], problem)[0]

        def table(seed: int) -> "pd.DataFrame":
            sampler = build_sampler(self.sampler, learner, STACK, optimum)
            checked = Checked(sampler, STACK, warns=False)
            estimates = []
            for block in range(-(-self.draws // STACK)):
                rng = Draws(np.arange(STACK), seed * 2**16 + block)
                observed = learner.observe(sampler.needs, theta)
                view = View(problem.n_samples, problem.p, block, STACK, observed)
                slots = checked.select(view, rng)
                moved = learner.work(theta, slots, sampler, rng)
                omega = checked.weigh(slots, view, rng)
                estimates.append(aggregate(omega[:, None] * moved, slots, STACK) / -STEP)
                progress(block * STACK)
            drawn = np.concatenate(estimates)[: self.draws]
            at = np.arange(len(w))
            # A stack's estimates share nothing but the data; a tracked sampler's probabilities are
            # fixed before each draw, so the errors stay uncorrelated.
            se = drawn.std(0, ddof=1) / np.sqrt(len(drawn))
            noise = ((drawn - exact) ** 2).sum(-1)
            return tidy(
                {
                    "exact": (at, exact),
                    "mean": (at, drawn.mean(0)),
                    "se": (at, se),
                    "noise": (np.array([-1]), noise[None].mean(-1)),
                    "noise_se": (np.array([-1]), noise[None].std(-1) / np.sqrt(len(noise))),
                }
            )

        return Simulated([table(seed) for seed in seeds], problem.inputs, problem.unverified)
