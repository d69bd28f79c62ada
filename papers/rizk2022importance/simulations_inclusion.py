"""Monte Carlo of inclusion probabilities, compared with the intended probabilities.

Three ways of sampling: ``fixed``, systematic in the units' order, as printed in Rizk et al. 2022;
``shuffled``, Hartley and Rao's method, which permutes the units before each draw; ``successive``,
one unit after another with the *sampling* probabilities, the paper's counterexample.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from fedsampling.base.arrays import Array, Bools
from fedsampling.base.records import Positive, Share, Strict
from fedsampling.base.streams import stream
from fedsampling.experiments.simulations.simulation import (
    Progress,
    Simulation,
    tidy,
)
from fedsampling.samplers.importance import capped, progressive_totals, systematic_units

if TYPE_CHECKING:
    import pandas as pd


BLOCK = 2000


class OrderName(Strict):
    """How the units are ordered before systematic sampling."""

    name: Literal["fixed", "shuffled", "successive"]


class Inclusion(Simulation, name="inclusion"):
    """Estimate inclusion probabilities by drawing many samples of the units."""

    step_seconds: ClassVar[float] = 5e-06

    probabilities: list[Share] | None = Field(
        None, description="sampling probabilities; null: drawn for `units`"
    )
    units: Positive
    size: Positive
    draws: Positive
    sampler: OrderName

    @model_validator(mode="after")
    def _consistent(self) -> "Inclusion":
        if self.size > self.units:
            raise ValueError(f"size: {self.size} exceeds {self.units} units; give at most that")
        if self.probabilities is not None and len(self.probabilities) != self.units:
            raise ValueError(
                f"probabilities: {len(self.probabilities)} values for {self.units} units; "
                "give one for each"
            )
        return self

    def table(self, seed: int, progress: Progress) -> "pd.DataFrame":
        """Draw `draws` samples and count who is included.

        Returns per unit: ``target`` (the intended inclusion probability), ``frequency`` and its
        ``se``; for two draws also ``equation3``, the inclusion probability of successive sampling.
        For the run: ``neighbours``, how often a unit and its successor are both included; mean over
        units.
        """
        n, size = self.units, self.size
        probabilities = self.probabilities
        weights = (
            stream(seed, "units").lognormal(size=n)
            if probabilities is None
            else np.array(probabilities)
        )
        p = weights / weights.sum()
        pi = capped(p, size)
        rng = stream(seed, "inclusion")
        count, joint = np.zeros(n), 0.0
        for start in range(0, self.draws, BLOCK):
            draws = min(BLOCK, self.draws - start)
            mark = SCHEMES[self.sampler.name](p, pi, draws, rng)
            count += mark.sum(0)
            joint += (mark & np.roll(mark, -1, axis=1)).sum() / n
            progress(start)
        units = np.arange(n)
        columns = {
            "target": (units, pi),
            "frequency": (units, count / self.draws),
            "se": (units, np.sqrt(pi * (1 - pi) / self.draws)),
            "neighbours": (np.array([-1]), np.array([joint / self.draws])),
        }
        if size == 2:
            columns["equation3"] = (units, successive_inclusion(p))
        return tidy(columns)


def successive_inclusion(p: Array) -> Array:
    """Return the inclusion probabilities (3) of two successive draws without replacement."""
    first = p / (1 - p)
    second: Array = p * (first.sum() - first)  # another unit n first, then this one
    return p + second


def _fixed(p: Array, pi: Array, draws: int, rng: np.random.Generator) -> Bools:
    return systematic_units(progressive_totals(pi), rng.random(draws))


def _shuffled(p: Array, pi: Array, draws: int, rng: np.random.Generator) -> Bools:
    order = rng.permuted(np.tile(np.arange(len(pi)), (draws, 1)), axis=1)
    mark = np.empty(order.shape, np.bool_)
    np.put_along_axis(
        mark, order, systematic_units(progressive_totals(pi[order]), rng.random(draws)), 1
    )
    return mark


def _successive(p: Array, pi: Array, draws: int, rng: np.random.Generator) -> Bools:
    # The first arrivals of exponential clocks with rates p are successive draws without
    # replacement with probabilities p.
    clocks = rng.exponential(size=(draws, len(p))) / p
    size = round(pi.sum())
    mark = np.zeros(clocks.shape, np.bool_)
    np.put_along_axis(mark, np.argpartition(clocks, size - 1, axis=1)[:, :size], True, 1)
    return mark


SCHEMES: dict[str, Callable[[Array, Array, int, np.random.Generator], Bools]] = {
    "fixed": _fixed,
    "shuffled": _shuffled,
    "successive": _successive,
}
