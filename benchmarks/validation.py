"""Time what validating a sampler's answers adds to a round of training.

``python benchmarks/validation.py``: rounds of the papers' smallest models and of an MLP, on
generated data, in turn with as many validations of the sampler's answer in one of these rounds.
Prints the share of validation in a round, measured within one process.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import timing

import fedsampling as fs
from fedsampling.base.streams import Draws
from fedsampling.data.datasets.regression import Regression
from fedsampling.experiments.networks import training
from fedsampling.experiments.networks.settings import Training
from fedsampling.experiments.simulations import federated
from fedsampling.experiments.simulations.simulation import RunContext
from fedsampling.learning.training.convex import ConvexWork
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.loop import play_round
from fedsampling.samplers.checks.validation import Checked
from fedsampling.samplers.protocol.prepared import Prepared
from fedsampling.samplers.protocol.slots import View

ROUNDS = 20


@dataclass
class Game:
    """A learner and its sampler, both initialised."""

    learner: Any
    sampler: Prepared
    seeds: Any

    def rounds(self) -> Callable[[], object]:
        """Return a function that runs `ROUNDS` rounds."""
        start, checked = self.learner.start(self.seeds), Checked(self.sampler, len(self.seeds))

        def play() -> None:
            theta = start
            for t in range(ROUNDS):
                theta, _ = play_round(self.learner, checked, theta, Draws(self.seeds, t))

        return play

    def validations(self) -> Callable[[], object]:
        """Return a function that validates one answer `ROUNDS` times."""
        sampler, seeds, rng = self.sampler, self.seeds, Draws(self.seeds, 0)
        view = View(self.learner.n_samples, self.learner.p, 0, len(seeds))
        slots = sampler.select(view, rng)
        omega = sampler.weigh(slots, view, rng)
        answers = copy(sampler)  # answers the same in every round, in no time
        object.__setattr__(answers, "select", lambda *_: slots)
        object.__setattr__(answers, "weigh", lambda *_: omega)
        checked = Checked(answers, len(seeds))
        costs = {name: np.zeros(len(seeds)) for name in map(str, range(10))}

        def validate() -> None:
            for _ in range(ROUNDS):
                checked.weigh(checked.select(view, rng), view, rng)
                for name, cost in costs.items():
                    checked.per_run(name, cost, view)

        return validate


def convex(runs: int) -> Game:
    """Return rizk2022importance's regression: of 300 agents 6 take part."""
    drawn = {
        "agents": 300,
        "samples": 100,
        "dimension": 2,
        "eigenvalues": (1, 2),
        "noise": (0.01, 1),
    }
    data = Regression(**drawn).load("embedded", 0, Path(), None)
    model = federated.ConvexModel(name="linear", rho=0.001)
    work = ConvexWork(step=0.01, epochs=(1, 5), batch=(1, 10))
    learner = federated.build_learner(model, work, data, 0)
    sampler = federated.build_sampler(fs.scheme("uniform", m=6), learner, runs, {})
    return Game(learner, sampler, np.arange(runs))


def mlp(runs: int) -> Game:
    """Return an MLP on images of ten clients out of a hundred, five steps each."""
    data = fs.load("mnist", "by_digit", data="embedded")
    settings = Training(
        inputs="unit",
        model={"name": "mlp"},
        sampler={"name": "md", "m": 10},
        work=LocalWork(steps=5, batch=10, step=0.01),
        rounds=ROUNDS,
        evaluation={"every": ROUNDS},
    )
    learner = training.build_learner(settings, data, "embedded", RunContext(Path(), None))
    sampler = training.build_sampler(settings, learner, list(range(runs)))
    return Game(learner, sampler, np.arange(runs))


def main() -> None:
    """Print the share of validation in a round for each game."""
    arguments = timing.arguments(__doc__, repetitions=11)
    games = {
        "convex, 1 run": convex(1),
        "convex, 100 runs": convex(100),
        "MLP, 1 run": mlp(1),
        "MLP, 5 runs": mlp(5),
    }
    for name, game in games.items():
        parts = {
            "rounds": timing.seconds(game.rounds()),
            "validation": timing.seconds(game.validations()),
        }
        times = timing.take_turns(parts, arguments.repetitions)
        share = np.median(np.divide(times["validation"], times["rounds"]))
        round_ms, validation_us = (1e3 * np.median(times[part]) / ROUNDS for part in parts)
        print(
            f"{name:18} {round_ms:9.3f} ms per round, {1e3 * validation_us:6.1f} µs to validate: "
            f"{100 * share:.2f} %"
        )


if __name__ == "__main__":
    main()
