"""The server loop, the same for every sampler and every model.

    θ ← θ + η_g Σ_i ω_i (θ_i − θ)

:func:`train` runs all rounds and collects the measurements; :func:`play_round` is one round.  Runs
(seeds) are stacked and never mix.  Local training and the server's update are the learner's task:
:class:`fedsampling.learning.training.convex.ConvexLearner` or
:class:`fedsampling.learning.training.learner.NetworkLearner`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.records import Positive, Strict, Variance, hashed_if_set
from fedsampling.base.streams import Draws
from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.training.checkpoint import NEVER, Checkpoint, Progress
from fedsampling.learning.training.history import History
from fedsampling.samplers.checks.validation import Checked
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.slots import Slots, View

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor


Measure = Callable[[Any, Any], Mapping[str, Array]]
Watch = Callable[[list["pd.DataFrame"]], bool]


@dataclass(frozen=True, eq=False)
class Moment:
    """The state of a job between two rounds, as callbacks see it."""

    round: int  # number of finished rounds
    ending: bool  # whether it is the last moment, as far as known before this callback
    theta: Any
    sampler: Scheme
    history: History


# Called before the first round and after each round; a true result ends the job.
Callback = Callable[[Moment], bool | None]


def measuring(period: int, measure: Measure, each_until: int = 0) -> Callback:
    """Measure every `period` rounds, after the last one, and in each round up to `each_until`.

    `measure(theta, sampler)` returns named arrays of shape (runs,).
    """

    def callback(moment: Moment) -> None:
        if moment.round % period == 0 or moment.round <= each_until or moment.ending:
            moment.history.measure(moment.round, measure(moment.theta, moment.sampler))

    return callback


def watching(watch: Watch) -> Callback:
    """End the job when `watch`, a function of the runs' tables so far, returns True."""
    return lambda m: not m.ending and watch(m.history.tables_so_far(m.round))


def train(
    learner: "Learner",
    sampler: Scheme,
    seeds: Sequence[int],
    rounds: int,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint = NEVER,
) -> History:
    """Train all seeds of a job together.

    `callbacks` are called in order between the rounds; they measure, report progress, or end the
    job early. A stopped job resumes from `checkpoint`, bit for bit. A run whose model is no longer
    finite has *diverged*: later values are NaN.
    """
    seed_array = np.asarray(seeds, np.int64)
    if saved := checkpoint.load():
        first, history = saved.round, saved.history
        theta = learner.restore(saved.learner)
        sampler.restore(saved.sampler)
    else:
        first, history = 0, History.empty(len(seeds))
        theta = learner.start(seed_array)
    checked = Checked(sampler, len(seeds), learner.finite)
    for t in range(first, rounds + 1):
        if checkpoint.due():
            checkpoint.save(Progress(t, history, learner.state(theta), sampler.state()))
        ending = t == rounds
        for callback in callbacks:
            ending |= bool(callback(Moment(t, ending, theta, sampler, history)))
        if ending:
            break
        checked.live = ~history.diverged
        theta, charges = play_round(learner, checked, theta, Draws(seed_array, t))
        history.charge(t + 1, charges)
        history.mark_diverged(t + 1, ~learner.finite(theta))
        theta = learner.reset(theta, history.diverged)
    checked.check_last_sums()
    return history


def play_round(
    learner: "Learner", checked: Checked, theta: Any, rng: Draws
) -> tuple[Any, Mapping[str, Array]]:
    """Play a round: select, train, weigh, update; return the new models and the round's costs."""
    sampler = checked.sampler
    with checked.blaming(rng.round):
        offered = learner.offered(rng.round)
        observed = learner.observe(sampler.needs, theta, offered)
        view = View(learner.n_samples, learner.p, rng.round, len(rng.seeds), observed)
        view = view.restricted_to(offered)
        slots = checked.select(view, rng, theta)

        # The clients' step: U_i = θ_i − θ.
        updates = learner.work(theta, slots, sampler, rng)

        view = replace(view, observed={**observed, **learner.report(sampler.needs, updates)})
        omega = checked.weigh(slots, view, rng, theta, updates)

        # The server's step: θ + η_g Σ_i ω_i U_i.
        moved = learner.advance(theta, updates, slots, omega, checked.addition(rng.round))
        costs = learner.charge(sampler, slots, omega, rng)
        return moved, {name: checked.per_run(name, cost, view) for name, cost in costs.items()}


class Learner(Protocol):
    """Models and data as the loop uses them; the type of θ is up to the learner."""

    data: FederatedDataset

    @cached_property
    def n_samples(self) -> Ints:
        """Samples of each client, shape (n,)."""
        return self.data.n_samples

    @property
    def p(self) -> Array:
        """Importance of each client, shape (n,)."""
        return self.data.p

    def start(self, seeds: Ints) -> Any:
        """Return the initial global model of each run."""

    def offered(self, round: int) -> Ints:
        """Return the clients that are available in a round, ascending; all by default."""
        return np.arange(len(self.p))

    def observe(
        self, needs: frozenset[str], theta: Any, offered: Ints | None = None
    ) -> Mapping[str, Any]:
        """Compute the observations that a sampler needs before it selects."""

    def work(self, theta: Any, slots: Slots, sampler: Scheme, rng: Draws) -> Any:
        """Run the local training of a round; return the updates, one row per slot."""

    def report(self, needs: frozenset[str], updates: Any) -> Mapping[str, Any]:
        """Compute the observations of the updates that a sampler needs before it weighs."""
        return {}

    def advance(
        self,
        theta: Any,
        updates: Any,
        slots: Slots,
        omega: Array,
        added: NDArray[np.float32] | None = None,
    ) -> Any:
        """Return θ after the server's step; `added`, shape (runs, d), is the sampler's addition."""

    def finite(self, theta: Any) -> Bools:
        """Return which runs have a finite model, shape (runs,); for updates, which slots."""

    def reset(self, theta: Any, lost: Bools) -> Any:
        """Set the models of diverged runs to zero, so that they cause no warnings."""

    def charge(
        self, sampler: Scheme, slots: Slots, omega: Array, rng: Draws
    ) -> Mapping[str, Array]:
        """Count costs and participants of the round, each of shape (runs,)."""

    def state(self, theta: Any) -> Mapping[str, NDArray[Any]]:
        """Return everything that later rounds depend on, including θ, as arrays."""
        return {"theta": theta}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Any:
        """Restore a state, and return its θ."""
        return state["theta"]


# The condition that ends a run before its last round.


class Until(Strict):
    """Condition that ends a run before its last round: a target, or a duration."""

    metric: Literal["accuracy", "test_loss"] = "accuracy"
    target: Variance | None = Field(None, description="accuracy to reach, or loss to fall to")
    in_a_row: Positive = Field(3, description="measurements that meet the target")
    seconds: Variance | None = Field(None, description="that the clock passes")
    rounds: Positive | None = hashed_if_set(None, "number of rounds that are played in any case")

    def end(self, moment: Moment) -> bool:
        """End the runs that meet the condition, as a callback of the training loop."""
        moment.history.ended_at = self.ended_at(moment.history)
        return bool((moment.history.ended_at >= 0).all())

    def ended_at(self, history: History) -> Ints:
        """Return the round in which each run ended, shape (runs,); −1 if it continues."""
        ended_at = np.full(len(history.diverged_at), -1)
        in_a_row = np.zeros(len(ended_at), np.int64)  # measurements that meet the target
        spent = [(at, cost) for at, name, cost in history.charged if name == "seconds"]
        clocks = np.cumsum([np.zeros(len(ended_at)), *(cost for _, cost in spent)], axis=0)
        charged = np.array([at for at, _ in spent])
        for at, name, value in history.measured:
            if name != self.metric:
                continue
            if self.target is not None:
                meets = value >= self.target if name == "accuracy" else value <= self.target
                in_a_row = np.where(meets, in_a_row + 1, 0)
            clock = clocks[np.searchsorted(charged, at, side="right")]
            late = (clock >= (self.seconds or np.inf)) & (at >= (self.rounds or 0))
            ended_at[(ended_at < 0) & ((in_a_row >= self.in_a_row) | late)] = at
        return ended_at


# Server optimisers, which turn the weighted sum of updates into the server's step.
#
# References: Hsu, Qi, Brown: Measuring the effects of non-identical data distribution for federated
# visual classification. arXiv 1909.06335 (FedAvgM). Reddi et al.: Adaptive federated optimization.
# ICLR 2021, algorithm 2 (FedAdam, FedYogi).


Decay = Annotated[float, Field(ge=0, lt=1)]


class Server(Strict):
    """A server optimiser; the server's step η_g is its learning rate."""

    name: Literal["fedavgm", "fedadam", "fedyogi"]
    momentum: Decay = Field(0.9, description="β₁, of the sum of updates")
    memory: Decay = Field(0.99, description="β₂, of its squares; not in fedavgm")
    tau: Variance = Field(1e-3, description="τ, added to the root; not in fedavgm")

    def start(self, theta: "Tensor") -> "tuple[Tensor, Tensor]":
        """Return the initial m and v, each with the shape of θ."""
        return theta.new_zeros(theta.shape), theta.new_full(theta.shape, self.tau**2)

    def step(self, change: "Tensor", m: "Tensor", v: "Tensor") -> "Tensor":
        """Update m and v in place with Δ = Σ ω_i (θ_i − θ); return the step divided by η_g."""
        if self.name == "fedavgm":
            m.mul_(self.momentum).add_(change)
            return m
        square = change.square()
        m.mul_(self.momentum).add_(change, alpha=1 - self.momentum)
        if self.name == "fedadam":
            v.mul_(self.memory).add_(square, alpha=1 - self.memory)
        else:
            v.sub_((v - square).sign().mul_(square), alpha=1 - self.memory)
        return m / (v.sqrt() + self.tau)
