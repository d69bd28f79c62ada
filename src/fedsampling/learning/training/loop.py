"""The server loop, the same for every sampler and every model.

    θ ← θ + η_g Σ_i ω_i (θ_i − θ)

:func:`train` runs all rounds and collects the measurements; :func:`play_round` is one round.  Runs
(seeds) are stacked and never mix.  Local training and the server's update are the learner's task:
:class:`fedsampling.learning.training.convex.Convex` or
:class:`fedsampling.learning.training.network.learner.Stacked`.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.blame import blaming
from fedsampling.base.records import Positive, Strict, Variance
from fedsampling.base.streams import Draws
from fedsampling.learning.training.charges import SPENT
from fedsampling.learning.training.checkpoint import NEVER, Array, Checkpoint, Progress, Rows
from fedsampling.samplers.scheme import Scheme, Slots, View
from fedsampling.samplers.validation import Validator

if TYPE_CHECKING:
    import pandas as pd

Models = NDArray[np.floating]
Measure = Callable[[Any, Any], Mapping[str, Array]]
ByClient = Callable[[Any, int], Mapping[str, Array]]
Watch = Callable[[list["pd.DataFrame"]], bool]


def train(
    learner: "Learner",
    sampler: Scheme,
    seeds: Sequence[int],
    rounds: int,
    measures: Sequence[tuple[int, Measure]],
    progress: Callable[[int], None] = lambda done: None,
    itemise: bool = False,
    checkpoint: Checkpoint = NEVER,
    until: "Until | None" = None,
    watch: "Watch | None" = None,
    thin: bool = False,
    by_client: ByClient | None = None,
) -> list["pd.DataFrame"]:
    """Train all seeds of a job together.

    Parameters
    ----------
    seeds : sequence of int
        One run for each seed.
    measures : sequence of (period, measure)
        `measure(theta, sampler)` returns named arrays of shape (runs,).  It is called before the
        first round, after every `period` rounds, and after the last round.
    progress : callable, optional
        Called with the number of finished rounds.
    itemise : bool
        Whether to return the costs of each round, or their means as ``…_per_round``.
    checkpoint : Checkpoint, optional
        File from which a stopped job resumes, bit for bit.
    until : Until, optional
        Condition that ends a run early; requires `itemise`.  If other runs of the job continue,
        measurements after a run's end are dropped, so that a run does not depend on its neighbours.
    watch : callable, optional
        Called before the first round and after each round with the tables so far; returning True
        ends the job.
    thin : bool
        With `itemise`: return bits and seconds summed between measurements, and no other cost.
    by_client : callable, optional
        `by_client(theta, rounds)` returns named arrays of shape (runs, n).  It is called after the
        last round.

    Returns
    -------
    list of DataFrame, one per seed
        Columns ``at`` (round; the client for metrics of `by_client`), ``metric``, ``value``.  A run
        whose model is no longer finite has *diverged*: later values are NaN, and ``diverged_at`` is
        the round.

    Raises
    ------
    InputError
        If a result of the sampler is invalid, or a user's sampler raises an error.
    """
    seeds_array = np.asarray(seeds, np.int64)
    if saved := checkpoint.load():
        now = saved
        theta = learner.restore(saved.learner)
        sampler.restore(saved.sampler)
    else:
        now = Progress(0, [], [], np.full(len(seeds), -1), {}, {})
        theta = learner.start(seeds_array)
    diverged_at = now.diverged_at
    validator = Validator(sampler, len(seeds))
    for t in range(now.round, rounds + 1):
        if checkpoint.due():
            saved_state = learner.state(theta), sampler.state()
            checkpoint.save(replace(now, round=t, learner=saved_state[0], sampler=saved_state[1]))
        for period, measure in measures:
            if t % period == 0 or t == rounds:
                for name, value in measure(theta, sampler).items():
                    now.measured.append((t, name, np.where(diverged_at < 0, value, np.nan)))
        progress(t)
        ended = (until.ended(now) >= 0) if until else np.zeros(len(seeds), bool)
        if t == rounds or ended.all() or (watch and watch(_so_far(now, t))):
            break
        validator.live = diverged_at < 0
        theta, costs = play_round(learner, sampler, theta, Draws(seeds_array, t), validator)
        now.charged.extend((t + 1, name, cost) for name, cost in costs.items())
        diverged_at[(diverged_at < 0) & ~learner.finite(theta)] = t + 1
        theta = learner.reset(theta, diverged_at >= 0)
    validator.check_last_sums()
    charged = now.charged if itemise else _means(now.charged, rounds)
    if thin:
        charged = _sums(now.charged, sorted({at for at, _, _ in now.measured}))
    rows = [*now.measured, *charged, (-1, "diverged_at", diverged_at.astype(np.float64))]
    ends = until.ended(now) if until else np.full(len(seeds), -1)
    each_client = by_client(theta, t).items() if by_client else ()
    finals = [
        (client, name, np.where(diverged_at < 0, value, np.nan))
        for name, values in each_client
        for client, value in enumerate(values.T)
    ]
    return [_tidy(rows, run, end if end >= 0 else rounds, finals) for run, end in enumerate(ends)]


def play_round(
    learner: "Learner",
    sampler: Scheme,
    theta: Any,
    rng: Draws,
    validator: Validator | None = None,
) -> tuple[Any, Mapping[str, Array]]:
    """Run one round: select clients, train them, weigh their updates, and update the models.

    Parameters
    ----------
    validator : Validator, optional
        Validates the sampler's results; by default a new object that treats all runs as live.

    Returns
    -------
    theta
        The new global models.
    costs : mapping of float arrays, shape (runs,)

    Raises
    ------
    InputError
        As :func:`train`.
    """
    validator = validator or Validator(sampler, len(rng.seeds))
    with blaming(type(sampler).__module__, f"sampler {sampler.named}, round {rng.round}"):
        offered = learner.offered(rng.round)
        observed = learner.observe(sampler.needs, theta, offered)
        view = View(
            learner.n_samples, learner.p, rng.round, len(rng.seeds), observed
        ).restricted_to(offered)
        diverging = partial(_diverging, learner, theta)
        slots = validator.checked_slots(sampler.select(view, rng), view, partial(diverging, view))

        start, base = _local_models(learner, sampler, theta, slots, view)
        updates = learner.work(theta, slots, sampler, rng, *start)  # the clients' step: θ_i − θ

        view = replace(view, observed={**observed, **learner.report(sampler.needs, updates)})
        omega = sampler.weigh(slots, view, rng)
        omega = validator.checked_weights(
            omega, slots, view, partial(diverging, view, slots, updates)
        )
        added = sampler.addition()
        moved = learner.advance(theta, updates, slots, omega, added, *base)  # the server's step
        costs = learner.charge(sampler, slots, omega, rng)
        for name, cost in costs.items():
            validator.check_per_run(name, cost, view)
    return moved, costs


class Until(Strict):
    """Condition that ends a run before its last round: a target, or a duration."""

    metric: Literal["accuracy", "test_loss"] = "accuracy"
    target: Variance | None = Field(None, description="accuracy to reach, or loss to fall to")
    in_a_row: Positive = Field(3, description="measurements that meet the target")
    seconds: Variance | None = Field(None, description="that the clock passes")
    rounds: Positive | None = Field(
        None,
        description="number of rounds that are played in any case",
        exclude_if=lambda rounds: rounds is None,  # keeps the hashes of runs that do not name it
    )

    def ended(self, progress: Progress) -> NDArray[np.int64]:
        """Return the round in which each run ended, shape (runs,); −1 if it continues."""
        reached_at = np.full(len(progress.diverged_at), -1)
        met = np.zeros(len(reached_at), np.int64)  # consecutive measurements that meet the target
        spent = [(at, cost) for at, name, cost in progress.charged if name == "seconds"]
        clocks = np.cumsum([np.zeros(len(reached_at)), *(cost for _, cost in spent)], axis=0)
        charged = np.array([at for at, _ in spent])
        for at, name, value in progress.measured:
            if name != self.metric:
                continue
            clock = clocks[np.searchsorted(charged, at, side="right")]
            if self.target is not None:
                meets = value >= self.target if name == "accuracy" else value <= self.target
                met = np.where(meets, met + 1, 0)
            late = (clock >= (self.seconds or np.inf)) & (at >= (self.rounds or 0))
            over = (met >= self.in_a_row) | late
            reached_at[(reached_at < 0) & over] = at
        return reached_at


class Learner(Protocol):
    """Models and data as the loop uses them; the type of θ is up to the learner."""

    @property
    def n_samples(self) -> NDArray[np.int64]:
        """Samples of each client, shape (n,)."""

    @property
    def p(self) -> Array:
        """Importance of each client, shape (n,)."""

    def start(self, seeds: NDArray[np.int64]) -> Any:
        """Return the initial global model of each run."""

    def offered(self, round: int) -> NDArray[np.int64]:
        """Return the clients that are available in a round, ascending."""

    def observe(
        self, needs: frozenset[str], theta: Any, offered: NDArray[np.int64] | None = None
    ) -> Mapping[str, Any]:
        """Compute the observations that a sampler needs before it selects."""

    def work(
        self, theta: Any, slots: Slots, sampler: Scheme, rng: Draws, start: Models | None = None
    ) -> Any:
        """Run the local training of a round; return the updates, one row per slot.

        Slots train the models `start`, shape (slots, d); by default their run's θ.
        """

    def report(self, needs: frozenset[str], updates: Any) -> Mapping[str, Any]:
        """Compute the observations of the updates that a sampler needs before it weighs."""

    def advance(
        self,
        theta: Any,
        updates: Any,
        slots: Slots,
        omega: Array,
        added: NDArray[np.float32] | None = None,
        base: Models | None = None,
    ) -> Any:
        """Return θ after the server's step.

        Parameters
        ----------
        added : float array, shape (runs, d), optional
            The sampler's addition to the updates.
        base : float array, shape (runs, d), optional
            The models to which the step is added; by default θ.
        """

    def finite(self, theta: Any) -> NDArray[np.bool_]:
        """Return which runs have a finite model, shape (runs,); for updates, which slots."""

    def reset(self, theta: Any, lost: NDArray[np.bool_]) -> Any:
        """Set the models of diverged runs to zero, so that they cause no warnings."""

    def charge(
        self, sampler: Scheme, slots: Slots, omega: Array, rng: Draws
    ) -> Mapping[str, Array]:
        """Count costs and participants of the round, each of shape (runs,)."""

    def state(self, theta: Any) -> Mapping[str, NDArray[Any]]:
        """Return everything that later rounds depend on, including θ, as arrays."""

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Any:
        """Restore a state, and return its θ."""


def _local_models(
    learner: Learner, sampler: Scheme, theta: Any, slots: Slots, view: View
) -> tuple[tuple[Models, ...], tuple[Models, ...]]:
    """Return the models to train and the models to step from; empty if the sampler has neither."""
    if getattr(sampler.local_models, "__func__", None) is Scheme.local_models:
        return (), ()
    models = sampler.local_models(slots, view, learner.state(theta)["theta"])
    return ((), ()) if models is None else ((models[0],), (models[1],))


def _diverging(
    learner: Learner, theta: Any, view: View, slots: Slots | None = None, updates: Any = None
) -> NDArray[np.bool_]:
    """Return the runs whose observations are not finite, or soon will not be.

    The sampler's result may then be infinite or NaN.  Squares are tested, since norms and losses
    that the sampler remembers overflow before the model does.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        lost = ~learner.finite(theta**2)
        for value in view.observed.values():
            values = np.asarray(value, np.float64)
            if values.shape[:2] == (view.runs, len(view.p)):
                values = values[:, view.offered].reshape(view.runs, -1)
                lost |= ~np.isfinite(values**2).all(axis=1)
            elif slots is not None and values.shape == slots.run.shape:
                lost[slots.run[~np.isfinite(values**2)]] = True
        if slots is not None and len(slots):
            lost[slots.run[~learner.finite(updates**2)]] = True
    return lost


def _so_far(now: Progress, round: int) -> list["pd.DataFrame"]:
    """Return the tables of an unfinished job."""
    rows = [*now.measured, *now.charged]
    return [_tidy(rows, run, round) for run in range(len(now.diverged_at))]


def _means(charged: Rows, rounds: int) -> Rows:
    """Average the costs over the rounds."""
    totals: dict[str, Array] = {}
    for _, name, cost in charged:
        totals[name] = totals.get(name, 0.0) + cost / rounds
    return [(-1, f"{name}_per_round", total) for name, total in totals.items()]


def _sums(charged: Rows, measured: Sequence[int]) -> Rows:
    """Sum bits and seconds over the rounds since the previous measurement."""
    sums: dict[tuple[int, str], Array] = {}
    for at, name, cost in charged:
        end = bisect_left(measured, at)
        if name in SPENT and end < len(measured):
            key = measured[end], name
            sums[key] = sums.get(key, 0.0) + cost
    return [(at, name, total) for (at, name), total in sums.items()]


def _tidy(
    rows: Rows, run: int, end: int, finals: Sequence[tuple[int, str, Array]] = ()
) -> "pd.DataFrame":
    """Build a run's table from its rows up to its end and its clients' rows."""
    import pandas as pd

    rows = [*(row for row in rows if row[0] <= end), *finals]
    return pd.DataFrame(
        {
            "at": np.array([at for at, _, _ in rows], np.int64),
            "metric": pd.Categorical([name for _, name, _ in rows]),
            "value": np.array([values[run] for _, _, values in rows], np.float64),
        }
    )
