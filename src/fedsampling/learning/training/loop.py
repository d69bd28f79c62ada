"""The server loop, the same for every sampler and every model.

    θ ← θ + η_g Σ_i ω_i (θ_i − θ)

:func:`train` runs all rounds and collects the measurements; :func:`play_round` is one round.  Runs
(seeds) are stacked and never mix.  Local training and the server's update are the learner's task:
:class:`fedsampling.learning.training.convex.ConvexLearner` or
:class:`fedsampling.learning.training.network.learner.NetworkLearner`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.errors import InputError
from fedsampling.base.streams import Draws
from fedsampling.learning.training.checkpoint import NEVER, Checkpoint, Progress
from fedsampling.learning.training.history import Costs, History
from fedsampling.learning.training.until import Until
from fedsampling.samplers.checking.validation import Validator, call
from fedsampling.samplers.interface.guest import is_user
from fedsampling.samplers.interface.one_run import guest_of
from fedsampling.samplers.scheme import Scheme, Slots, View

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
    costs: Costs = "mean",
    checkpoint: Checkpoint = NEVER,
    until: Until | None = None,
    watch: "Watch | None" = None,
    by_client: ByClient | None = None,
    each_until: int = 0,
) -> list["pd.DataFrame"]:
    """Train all seeds of a job together.

    `seeds`: one run for each seed. `measures`: `measure(theta, sampler)` returns named arrays of
    shape (runs,).  It is called before the first round, after every `period` rounds, and after the
    last round. `progress`: called with the number of finished rounds. `costs`: whether to return
    the costs of each round; their means, as ``…_per_round``; or bits and seconds summed between
    measurements, and no other cost. `checkpoint`: file from which a stopped job resumes, bit for
    bit. `until`: condition that ends a run early; excludes the mean of costs.  If other runs of the
    job continue, rows after a run's end are dropped, so that a run does not depend on its
    neighbours. `watch`: called before the first round and after each round with the tables so far;
    returning True ends the job. `by_client`: `by_client(theta, rounds)` returns named arrays of
    shape (runs, n).  It is called after the last round. `each_until`: all measures are also taken
    in each round up to this one. Returns columns ``at`` (round; the client for metrics of
    `by_client`), ``metric``, ``value``.  A run whose model is no longer finite has *diverged*:
    later values are NaN, and ``diverged_at`` is the round.
    """
    seed_array = np.asarray(seeds, np.int64)
    if saved := checkpoint.load():
        first, history = saved.round, saved.history
        theta = learner.restore(saved.learner)
        sampler.restore(saved.sampler)
    else:
        first, history = 0, History.empty(len(seeds))
        theta = learner.start(seed_array)
    validator = Validator(sampler, len(seeds))
    for t in range(first, rounds + 1):
        if checkpoint.due():
            checkpoint.save(Progress(t, history, learner.state(theta), sampler.state()))
        for period, measure in measures:
            if t % period == 0 or t <= each_until or t == rounds:
                history.measure(t, measure(theta, sampler))
        progress(t)
        ended = until is not None and bool((until.ended_at(history) >= 0).all())
        if t == rounds or ended or (watch and watch(history.tables_so_far(t))):
            break
        validator.live = ~history.diverged
        theta, charges = play_round(learner, sampler, theta, Draws(seed_array, t), validator)
        if t == first:
            _check_names(sampler, history, charges)
        history.charge(t + 1, charges)
        history.mark_diverged(t + 1, ~learner.finite(theta))
        theta = learner.reset(theta, history.diverged)
    validator.check_last_sums()
    ends = until.ended_at(history) if until else np.full(len(seeds), -1)
    client_values = by_client(theta, t) if by_client else {}
    return history.tables(np.where(ends < 0, rounds, ends).tolist(), costs, client_values)


def _check_names(sampler: Scheme, history: History, charges: Mapping[str, Array]) -> None:
    """Raise InputError if a quantity that a user's sampler measured has the name of a metric."""
    clash = sorted({name for _, name, _ in history.measured} & charges.keys())
    if clash and is_user(type(sampler)):
        raise InputError(
            f"sampler {sampler.named}: measured returns {clash[0]!r}, which is a metric; "
            "use another name"
        )


def play_round(
    learner: "Learner",
    sampler: Scheme,
    theta: Any,
    rng: Draws,
    validator: Validator | None = None,
) -> tuple[Any, Mapping[str, Array]]:
    """Run one round: select clients, train them, weigh their updates, and update the models.

    `validator`: validates the sampler's results; by default a new object that treats all runs as
    live. Returns the new global models; `costs`, shape (runs,).
    """
    validator = validator or Validator(sampler, len(rng.seeds))
    diverging = partial(_diverging, learner, theta)
    with guest_of(sampler).blaming(rng.round):
        offered = learner.offered(rng.round)
        observed = learner.observe(sampler.needs, theta, offered)
        view = View(learner.n_samples, learner.p, rng.round, len(rng.seeds), observed)
        view = view.restricted_to(offered)
        slots = call(sampler, "select", rng.round, view, rng)
        slots = validator.checked_slots(slots, view, partial(diverging, view))

        # The clients' step: U_i = θ_i − θ.
        updates = learner.work(theta, slots, sampler, rng)

        view = replace(view, observed={**observed, **learner.report(sampler.needs, updates)})
        omega = call(sampler, "weigh", rng.round, slots, view, rng)
        omega = validator.checked_weights(
            omega, slots, view, partial(diverging, view, slots, updates)
        )

        # The server's step: θ + η_g Σ_i ω_i U_i.
        added = call(sampler, "addition", rng.round)
        moved = learner.advance(theta, updates, slots, omega, added)
        costs = learner.charge(sampler, slots, omega, rng)
        costs = {name: validator.checked_per_run(name, cost, view) for name, cost in costs.items()}
    return moved, costs


def _diverging(
    learner: "Learner", theta: Any, view: View, slots: Slots | None = None, updates: Any = None
) -> Bools:
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


class Learner(Protocol):
    """Models and data as the loop uses them; the type of θ is up to the learner."""

    @property
    def n_samples(self) -> Ints:
        """Samples of each client, shape (n,)."""

    @property
    def p(self) -> Array:
        """Importance of each client, shape (n,)."""

    def start(self, seeds: Ints) -> Any:
        """Return the initial global model of each run."""

    def offered(self, round: int) -> Ints:
        """Return the clients that are available in a round, ascending."""

    def observe(
        self, needs: frozenset[str], theta: Any, offered: Ints | None = None
    ) -> Mapping[str, Any]:
        """Compute the observations that a sampler needs before it selects."""

    def work(self, theta: Any, slots: Slots, sampler: Scheme, rng: Draws) -> Any:
        """Run the local training of a round; return the updates, one row per slot."""

    def report(self, needs: frozenset[str], updates: Any) -> Mapping[str, Any]:
        """Compute the observations of the updates that a sampler needs before it weighs."""

    def advance(
        self,
        theta: Any,
        updates: Any,
        slots: Slots,
        omega: Array,
        added: NDArray[np.float32] | None = None,
    ) -> Any:
        """Return θ after the server's step.

        `added`, shape (runs, d): the sampler's addition to the updates.
        """

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

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Any:
        """Restore a state, and return its θ."""
