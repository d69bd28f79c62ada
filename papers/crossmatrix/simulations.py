"""A full factorial design on one small problem: which property of the clients favours a sampler.

Each cell of the design is a population of clients with softmax models on the same mixture of
Gaussians.  A run trains its sampler and MD in every cell, and returns the ratios of their costs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.errors import InputError
from fedsampling.base.records import NotNegative, Positive, Variance
from fedsampling.base.streams import stream
from fedsampling.data.federated import FederatedDataset
from fedsampling.experiments.simulations.network import Training
from fedsampling.experiments.simulations.simulation import (
    Progress,
    Seed,
    Simulated,
    Simulation,
    Where,
)
from fedsampling.learning.training.checkpoint import NEVER
from fedsampling.samplers.interface.in_settings import NetworkScheme
from fedsampling.samplers.scheme import Scheme, scheme

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

# Two levels of each factor, the second harder than the first; availability has three.
FACTORS: Mapping[str, tuple[str, ...]] = {
    "labels": ("mixed", "skewed"),
    "sizes": ("equal", "unequal"),
    "clients": ("few", "many"),
    "delays": ("alike", "spread"),
    "work": ("short", "long"),
    "presence": ("always", "random", "label"),
}
CELLS = tuple(product(*FACTORS.values()))
TARGETS = (0.5, 0.95)  # fractions of the way from the initial model's score to MD's final score
PENALTY = 2.0  # cost of a missed target, in units of the whole run's cost
WINDOW = 3  # consecutive evaluations whose mean must reach the target
BITS = ("model_bits", "norm_bits", "exchange_bits", "observation_bits")
SECONDS = ("seconds", "asking_seconds")


_MD: dict[tuple[Any, ...], list["pd.DataFrame"]] = {}  # by settings, cell and seeds


class Factors(Simulation, name="factors"):
    """Train a sampler and MD in every cell of the design, on the same seeds."""

    step_seconds: ClassVar[float] = 0.7
    gpu: ClassVar[bool] = False

    sampler: NetworkScheme
    n: Positive = Field(30, description="clients")
    samples: Positive = Field(40, description="samples of a client, on average")
    classes: Positive = Field(6, description="labels")
    features: Positive = Field(10, description="dimension of a sample")
    separation: Variance = Field(0.8, description="standard deviation of the classes' centres")
    tests: Positive = Field(1000, description="test samples, labels equally likely")
    m: tuple[Positive, Positive] = Field((3, 9), description="clients of a round: few, many")
    alpha: tuple[Variance, Variance] = Field(
        (100.0, 0.1), description="Dirichlet parameter of a client's labels: mixed, skewed"
    )
    spread: NotNegative = Field(1.5, description="standard deviation of log sizes if unequal")
    computation: tuple[tuple[Variance, Variance], tuple[Variance, Variance]] = Field(
        ((50.0, 60.0), (5.0, 200.0)), description="range of seconds of a round: alike, spread"
    )
    rate: tuple[Variance, Variance] = Field(
        (0.2, 0.8), description="range of the shares of rounds in which clients are available"
    )
    steps: tuple[Positive, Positive] = Field((2, 10), description="local steps: short, long")
    batch: Positive = 10
    step: Variance = Field(0.03, description="local learning rate")
    rounds: Positive = 40
    every: Positive = Field(1, description="rounds between evaluations")
    problem_seed: Seed = Field(0, description="draws the clients: the same for all seeds")

    def simulate(
        self, data: str, seeds: Sequence[int], where: Where, progress: Progress = lambda _: None
    ) -> Simulated:
        """Train the sampler and MD in each cell.

        Returns
        -------
        Simulated
            ``at`` is the cell's index in :data:`CELLS`.  Metrics: ``rounds``, ``bits`` and
            ``seconds``, logarithms of MD's cost over the sampler's, averaged over the targets;
            ``met``, the fraction of targets reached; and ``final``, the difference to MD's final
            accuracy.  Cells whose clients a sampler rejects are missing.
        """
        import pandas as pd

        rows: list[list[tuple[int, str, float]]] = [[] for _ in seeds]
        where = replace(where, checkpoint=NEVER)  # a cell takes less than a second
        for index, cell in enumerate(CELLS):
            if cell[-1] != "always" and not self.sampler.intermittent:
                continue
            try:
                runs = self._courses(cell, self.sampler, seeds, where)
            except InputError:
                continue
            reference = self._reference(cell, seeds, where)
            for run, (table, md) in enumerate(zip(runs, reference, strict=True)):
                rows[run] += [(index, *row) for row in compared(table, md).items()]
            progress((index + 1) * self.rounds // len(CELLS))
        columns = ["at", "metric", "value"]
        return Simulated([pd.DataFrame(rows_of_run, columns=columns) for rows_of_run in rows])

    def training(self, cell: tuple[str, ...], sampler: Scheme) -> tuple[FederatedDataset, Training]:
        """Return the clients and the training settings of a cell."""
        level = dict(zip(FACTORS, cell, strict=True))
        place = {name: FACTORS[name].index(cell_level) for name, cell_level in level.items()}
        steps = self.steps[place["work"]]
        away = {"name": "markov", "rate": self.rate, "persistence": 0.8}
        by = {"always": None, "random": away, "label": {**away, "by": "label"}}
        settings: dict[str, Any] = {
            "inputs": "raw",
            "model": {"name": "softmax"},
            "work": {"steps": steps, "batch": self.batch, "step": self.step},
            "sampler": self._sized(sampler, self.m[place["clients"]]),
            "rounds": self.rounds,
            "evaluation": {"every": self.every, "training_loss": False, "thin": True},
            "problem_seed": self.problem_seed,
            "delays": {"name": "synthetic", "computation": self.computation[place["delays"]]},
            "request": "passes",
            "availability": by[level["presence"]],
        }
        return self.clients(place["labels"], place["sizes"]), Training(**settings)

    def clients(self, labels: int, sizes: int) -> FederatedDataset:
        """Draw the clients of all cells with these levels of label and size skew."""
        n, classes = self.n, self.classes
        rng = stream(self.problem_seed, "factors")  # levels share their random numbers
        centres = self.separation * rng.normal(size=(classes, self.features))
        sizes_log = self.spread * sizes * rng.normal(size=n)
        share = np.exp(sizes_log) / np.exp(sizes_log).sum()
        count = np.maximum(np.rint(share * n * self.samples), 2).astype(np.int64)
        mixture = rng.dirichlet(np.full(classes, self.alpha[labels]), size=n)
        y = np.concatenate(
            [rng.choice(classes, k, p=q) for k, q in zip(count, mixture, strict=True)]
        )
        x = centres[y] + rng.normal(size=(len(y), self.features))
        y_test = np.arange(self.tests) % classes
        x_test = centres[y_test] + rng.normal(size=(self.tests, self.features))
        return FederatedDataset(
            "factors",
            x.astype(np.float32),
            y.astype(np.int64),
            np.concatenate([[0], np.cumsum(count)]),
            count / count.sum(),
            x_test.astype(np.float32),
            y_test.astype(np.int64),
            classes=classes,
        )

    def _sized(self, sampler: Scheme, m: int) -> Scheme:
        """Return the sampler with the cell's number of clients and the settings derived from it."""
        sizes = {"m": m, "d": 2 * m, "available": 3 * m, "first": m}
        fields = type(sampler).model_fields
        changes = {key: min(value, self.n) for key, value in sizes.items() if key in fields}
        return type(sampler)(**{**sampler.model_dump(), **changes})

    def _reference(
        self, cell: tuple[str, ...], seeds: Sequence[int], where: Where
    ) -> list["pd.DataFrame"]:
        """Return MD's measurements in a cell, which all samplers of a process share."""
        key = self.model_dump_json(exclude={"sampler"}), cell, *seeds
        if key not in _MD:
            _MD[key] = self._courses(cell, scheme("md", m=1), seeds, where)
        return _MD[key]

    def _courses(
        self, cell: tuple[str, ...], sampler: Scheme, seeds: Sequence[int], where: Where
    ) -> list["pd.DataFrame"]:
        """Train in a cell; return each seed's measurements, see :func:`course`."""
        problem, training = self.training(cell, sampler)
        return [course(table) for table in training.on(problem, "generated", seeds, where)]


def course(table: "pd.DataFrame") -> "pd.DataFrame":
    """Return a run's ``score``, ``smooth`` (over WINDOW), ``rounds``, ``bits``, ``seconds``."""
    import pandas as pd

    wide = table[table["at"] >= 0].pivot(index="at", columns="metric", values="value")
    spent = {
        name: wide.reindex(columns=list(parts)).fillna(0.0).sum(axis=1).cumsum()
        for name, parts in (("bits", BITS), ("seconds", SECONDS))
    }
    score = wide["accuracy"].fillna(0.0)  # NaN after a run has diverged
    smooth = score.rolling(WINDOW).mean()
    rounds = wide.index.to_numpy(np.float64)
    return pd.DataFrame({"score": score, "smooth": smooth, "rounds": rounds, **spent})


def compared(table: "pd.DataFrame", md: "pd.DataFrame") -> dict[str, float]:
    """Compare a run with MD's of the same cell and seed; see :meth:`Factors.simulate`."""
    start, final = float(md["score"].iloc[0]), _final(md)
    logs: dict[str, list[float]] = {"rounds": [], "bits": [], "seconds": []}
    met = []
    for part in TARGETS:
        goal = start + part * (final - start)
        first = [run[run["smooth"] >= goal] for run in (table, md)]
        met.append(float(len(first[0]) > 0))
        for name, values in logs.items():
            cost = [
                float(hit[name].iloc[0]) if len(hit) else PENALTY * float(run[name].iloc[-1])
                for hit, run in zip(first, (table, md), strict=True)
            ]
            values.append(float(np.log(cost[1] / cost[0])))
    ratios = {name: float(np.mean(values)) for name, values in logs.items()}
    return {**ratios, "met": float(np.mean(met)), "final": _final(table) - final}


def _final(table: "pd.DataFrame") -> float:
    """Return the mean score of the last quarter of the rounds."""
    late = table["rounds"] > 0.75 * table["rounds"].max()
    return float(table.loc[late, "score"].mean())
