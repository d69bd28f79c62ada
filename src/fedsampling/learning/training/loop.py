"""The server loop, the same for every sampler and every model.

    θ ← θ + η_g Σ_i ω_i (θ_i − θ)

:func:`train` runs all rounds and collects the measurements; :func:`play_round` is one round.  Runs
(seeds) are stacked and never mix.  Local training and the server's update are the learner's task:
:class:`fedsampling.learning.training.convex.ConvexLearner` or
:class:`fedsampling.learning.training.learner.NetworkLearner`.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.streams import Draws
from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.training.checkpoint import NEVER, Checkpoint, Snapshot
from fedsampling.learning.training.history import JobHistory
from fedsampling.samplers.checks.validation import Checked
from fedsampling.samplers.protocol.prepared import Prepared
from fedsampling.samplers.protocol.slots import Reports, Slots, View

if TYPE_CHECKING:
    import pandas as pd


Measure = Callable[[Any, Any], Mapping[str, Array]]
Watch = Callable[[list["pd.DataFrame"]], bool]


@dataclass(frozen=True, eq=False)
class Moment:
    """The state of a job between two rounds, as callbacks see it."""

    round: int  # number of finished rounds
    ending: bool  # whether the job ends here; a later callback may still end it
    theta: Any
    sampler: Prepared
    history: JobHistory


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


def ended_by(watch: Watch) -> Callback:
    """End the job when `watch`, a function of the runs' tables so far, returns True."""
    return lambda moment: watch(moment.history.tables_so_far(moment.round))


def train(
    learner: "Learner",
    sampler: Prepared,
    seeds: Sequence[int],
    rounds: int,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint = NEVER,
) -> JobHistory:
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
        first, history = 0, JobHistory.empty(len(seeds))
        theta = learner.start(seed_array)
    checked = Checked(sampler, len(seeds), learner.finite)
    for t in range(first, rounds + 1):
        if checkpoint.due():
            checkpoint.save(Snapshot(t, history, learner.state(theta), sampler.saved()))
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
    """Play a round: select, train, weigh, update; return the new models and the round's costs.

    Only clients that report are trained and weighed: what the others do has no effect.
    """
    sampler = checked.sampler
    with checked.blaming(rng.round):
        offered = learner.offered(rng.round)
        observed = learner.observe(sampler.needs, theta, offered)
        view = View(learner.n_samples, learner.p, rng.round, len(rng.seeds), observed)
        view = view.restricted_to(offered)
        slots = checked.select(view, rng, theta)
        if reports := learner.awaited(slots, rng):
            slots, view = slots.at(reports.reported), replace(view, reports=reports)

        # The clients' step: U_i = θ_i − θ.
        updates = learner.work(theta, slots, sampler, rng)

        view = replace(view, observed={**observed, **learner.report(sampler.needs, updates)})
        omega = checked.weigh(slots, view, rng, theta, updates)

        # The server's step: θ + η_g Σ_i ω_i U_i.
        moved = learner.advance(theta, updates, slots, omega, sampler.addition())
        costs = learner.charge(sampler, slots, omega, rng)
        sampler.learn()
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
        self, needs: Set[str], theta: Any, offered: Ints | None = None
    ) -> Mapping[str, Any]:
        """Compute the observations that a sampler needs before it selects."""

    def awaited(self, slots: Slots, rng: Draws) -> Reports | None:
        """Return which of the selected slots report; None, the default, if clients never fail."""
        return None

    def work(self, theta: Any, slots: Slots, sampler: Prepared, rng: Draws) -> Any:
        """Run the local training of a round; return the updates, one row per slot."""

    def report(self, needs: Set[str], updates: Any) -> Mapping[str, Any]:
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
        self, sampler: Prepared, slots: Slots, omega: Array, rng: Draws
    ) -> Mapping[str, Array]:
        """Count costs and participants of the round, each of shape (runs,)."""

    def state(self, theta: Any) -> Mapping[str, NDArray[Any]]:
        """Return everything that later rounds depend on, including θ, as arrays."""
        return {"theta": theta}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Any:
        """Restore a state, and return its θ."""
        return state["theta"]
