"""The measurements and costs of a job's runs, and the tables that they become."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.errors import InputError
from fedsampling.base.streams import Draws
from fedsampling.clients.delays import Delays
from fedsampling.data.federated import FederatedDataset
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.slots import Slots

if TYPE_CHECKING:
    import pandas as pd

# Metrics of training a network; a paper's own run kinds may have more.
METRICS = {
    "loss": "training loss, mean over clients weighted by importance",
    "loss_std": "standard deviation of the training loss over clients",
    "accuracy": "share of correctly classified test samples",
    "accuracy_std": "standard deviation of the accuracy over clients; if clients have test samples",
    "accuracy_worst": "mean accuracy of the worst tenth of clients; with evaluation.clients",
    "accuracy_q10": "10 % quantile of the clients' accuracies; also accuracy_q50 and accuracy_q90",
    "test_loss": "mean loss on the test samples; for regressions",
    "train_loss": "loss on the mini-batches of a round, mean over the clients that trained",
    "clients": "number of clients whose models were averaged in a round",
    "reports": "number of clients that reported to the server in a round",
    "labels": "number of different labels among the clients of a round",
    "model_bits": "bits of models that clients sent in a round",
    "norm_bits": "bits of update norms that clients sent in a round",
    "down_bits": "bits that the server sent in a round",
    "seconds": "simulated duration of a round; with delays",
    "gradients": "number of sample gradients computed in a round",
    "client_rounds": "rounds in which a client's update was used; with evaluation.by_client, whose "
    "metrics have the client in the column at",
    "client_weight": "sum of a client's weights over the rounds",
    "client_accuracy": "accuracy of the final model on a client's own test samples; on its "
    "training samples if it has none",
    "client_loss": "loss of the final model on the same samples",
    "client_tests": "number of a client's own test samples",
    "client_samples": "number of a client's training samples",
    "client_importance": "a client's importance p",
    "client_offered": "rounds in which a client was available",
    "diverged_at": "round after which the model is no longer finite; −1 if it stays finite",
}
# Costs of a run that comparisons use: bits sent by clients, and time.
COMPARED_COSTS = frozenset(
    {"model_bits", "norm_bits", "exchange_bits", "observation_bits", "seconds", "asking_seconds"}
)
FORWARD_SHARE = 1 / 3  # cost of a forward pass, in units of forward and backward pass together
# What a sampler's `needs` cost.
INFORMATION_COSTS = {
    "batch_losses": "32 bits from every client that is asked (by default, all available clients) "
    "in every round, which waits for their forward pass over a mini-batch",
    "batch_gradients": "from the clients that train; not charged",
    "bias_updates": "no cost: clients send them with their updates",
    "client_gradients": "from every client in every round; not charged",
    "delays": "no cost: the server knows the expected seconds",
    "gradients": "as many bits as a model, from every client before the first round, which waits "
    "for the slowest client; then from each client that trained",
    "heterogeneity": "the features of a batch, from every client before the first round, which "
    "waits for the slowest client; then from each client that trained",
    "label_counts": "32 bits for each label from every client before the first round",
    "labels": "no cost, but no practical server has them",
    "losses": "32 bits from every client that is asked (by default, all available clients) in "
    "every round, which waits for them",
    "mean_norms": "from every client in every round; not charged",
    "optimum": "not available to any practical server; not charged",
    "sample_norms": "from the clients that train; not charged",
    "update_norms": "32 bits from each slot that trained",
    "updates": "no cost: clients send them anyway",
    "work_losses": "32 bits from each slot that trained, with its update",
}
EVERY_ROUND = frozenset({"losses", "batch_losses"})  # requested before every selection
FIRST_ROUND = frozenset({"heterogeneity", "gradients"})  # requested from all clients before round 0


def participation(
    slots: Slots, omega: Array, labels: Ints | None, runs: int
) -> Mapping[str, Array]:
    """Count the participants of each run.

    Returns shape (runs,): ``clients``: distinct clients that trained; ``reports``: slots whose
    update is used; ``labels``, if clients have labels: distinct values among the participants'
    labels.
    """
    counts = {
        "clients": _distinct(slots.run, slots.client, runs),
        "reports": np.bincount(slots.run[omega != 0], minlength=runs).astype(np.float64),
    }
    if labels is not None:
        counts["labels"] = _distinct(slots.run, labels[slots.client], runs)
    return counts


def evenness(counts: Array) -> Mapping[str, Array]:
    """Measure how evenly the clients have taken part so far.

    `counts`, shape (runs, n): number of rounds in which each client's update was used. Returns
    shape (runs,): ``entropy`` of the clients' shares of all participations, divided by log n;
    ``jain``, Jain's index (Σ k)² / (n Σ k²) of the counts k; ``met``, the fraction of clients that
    have taken part.  All are 1 if all clients took part equally often, and 0 if no client took
    part.

    References: Jain, Chiu, Hawe: A quantitative measure of fairness and discrimination. DEC report
    1984.
    """
    n, total = counts.shape[1], counts.sum(1)
    share = counts / np.maximum(total, 1)[:, None]
    terms = share * np.log(share, out=np.zeros_like(share), where=share > 0)
    return {
        "entropy": -terms.sum(1) / np.log(max(n, 2)),
        "jain": total**2 / np.maximum(n * (counts**2).sum(1), 1),
        "met": (counts > 0).mean(1),
    }


def bits(
    sampler: Scheme, slots: Slots, omega: Array, dimension: int, runs: int
) -> Mapping[str, Array]:
    """Count the bits that were sent.

    Returns shape (runs,): ``model_bits``: 32 per parameter of each report; ``norm_bits``: 32 for
    each client that sends its update's norm; ``exchange_bits`` of the sampler's own protocol, if it
    has one; ``down_bits``: the model, to each client that trains.
    """
    model = 32.0 * dimension
    reports = np.bincount(slots.run[omega != 0], minlength=runs)
    trained = np.bincount(slots.run, minlength=runs)
    counted: dict[str, Array] = {
        "model_bits": (model * reports).astype(np.float64),
        "norm_bits": (32.0 * trained * ("update_norms" in sampler.needs)).astype(np.float64),
        "down_bits": model * _distinct(slots.run, slots.client, runs),
    }
    if (exchanged := sampler.exchange_bits()) is not None:
        counted["exchange_bits"] = exchanged
    return counted


def request_shares(
    needs: frozenset[str], n_samples: Ints, trained: Ints, batch: int, mini_batch: int = 1
) -> Array:
    """Compute the cost of a request for each client, relative to its local training, shape (n,).

    Local training takes a forward and a backward pass over the samples of its batches.  A request
    for losses takes a forward pass over all of a client's samples, or over a mini-batch; a request
    for gradients also takes the backward pass; a request for features takes a forward pass over a
    batch.

    `trained`, shape (n,): samples in the batches of local training, with repetitions. `batch`:
    samples whose features are sent. `mini_batch`: samples of a mini-batch in local training.

    References: Kaplan et al.: Scaling Laws for Neural Language Models. arXiv 2001.08361, section
    2.1: a backward pass costs about twice as much as a forward pass.
    """
    passes = {
        "losses": FORWARD_SHARE * n_samples,
        "batch_losses": FORWARD_SHARE * np.minimum(n_samples, mini_batch),
        "gradients": 1.0 * n_samples,
        "heterogeneity": FORWARD_SHARE * np.minimum(n_samples, batch),
    }
    needed = [cost for name, cost in passes.items() if name in needs]
    return sum(needed, np.zeros(len(n_samples))) / trained


def seconds(
    sampler: Scheme,
    slots: Slots,
    delays: Delays,
    offered: Ints,
    rng: Draws,
    shares: Array | None = None,
) -> Mapping[str, Array]:
    """Compute the duration of the round.

    `shares`, shape (n,): fraction of its delay that a request takes each client; one by default.
    Returns shape (runs,): ``seconds``: the largest delay of the clients that train.
    ``asking_seconds``: the largest delay of the clients that had to compute something before the
    selection.  These are the clients that the sampler names; otherwise all available clients in
    every round if it needs losses, and all clients before the first round if it needs features or
    gradients.
    """
    duration = delays.round_seconds(rng.seeds[:, None], rng.round, np.arange(len(delays.base)))
    trained = np.zeros(duration.shape, np.bool_)
    trained[slots.run, slots.client] = True
    requested = sampler.asked()
    if requested is None:
        requested = np.full(duration.shape, rng.round == 0 and bool(FIRST_ROUND & sampler.needs))
        requested[:, offered] |= bool(EVERY_ROUND & sampler.needs)
    requests = duration if shares is None else duration * shares
    return {
        "seconds": np.where(trained, duration, 0.0).max(1),
        "asking_seconds": np.where(requested, requests, 0.0).max(1),
    }


def _distinct(run: Ints, value: Ints, runs: int) -> Array:
    pairs = np.unique(np.stack([run, value]), axis=1)
    return np.bincount(pairs[0], minlength=runs).astype(np.float64)


# Counts of each client's participation over all rounds.


@dataclass
class Participation:
    """How often each client has taken part.

    `evenness`: whether each round records it. `by_client`: whether :meth:`by_client_metrics` is
    called at the end, which needs `weights`: sums by client, shape (runs, n), of weights as of
    rounds.
    """

    evenness: bool = False
    by_client: bool = False
    rounds: Array = field(default_factory=lambda: np.empty((0, 0)))
    weights: Array = field(default_factory=lambda: np.empty((0, 0)))

    def start(self, runs: int, clients: int) -> None:
        """Begin with no participation."""
        if self.evenness or self.by_client:
            self.rounds = np.zeros((runs, clients))
        if self.by_client:
            self.weights = np.zeros((runs, clients))

    def count(self, slots: Slots, omega: Array) -> Mapping[str, Array]:
        """Count a round; return its evenness if it is recorded, each of shape (runs,)."""
        if not (self.evenness or self.by_client):
            return {}
        used = np.zeros(self.rounds.shape, np.bool_)
        used[slots.run[omega != 0], slots.client[omega != 0]] = True
        self.rounds += used
        if self.by_client:
            np.add.at(self.weights, (slots.run, slots.client), omega)
        return evenness(self.rounds) if self.evenness else {}

    def by_client_metrics(self, data: FederatedDataset, offered: Array) -> Mapping[str, Array]:
        """Return each client's participation so far, in `offered` rounds, shape (runs, n).

        ``client_rounds``: rounds in which its update was used; ``client_weight``: Σ_t ω_i(t),
        without updates that a sampler remembers and adds later.
        """
        client_values = {
            "client_samples": data.n_samples,
            "client_importance": data.p,
            "client_offered": offered,
        }
        metrics = {
            name: np.tile(np.asarray(values, np.float64), (len(self.rounds), 1))
            for name, values in client_values.items()
        }
        return {**metrics, "client_rounds": self.rounds, "client_weight": self.weights}

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the counts, as arrays for a checkpoint."""
        return {"rounds": self.rounds, "weights": self.weights}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of :meth:`state`."""
        self.rounds, self.weights = state["rounds"], state["weights"]


Rows = list[tuple[int, str, Array]]  # (round, metric, values of shape (runs,))
# Costs of each round, their means over all rounds, or the sums of bits and seconds since the
# previous measurement.
Costs = Literal["each", "mean", "since measurement"]

# Facts about clients, which are known even if the model diverges.
FACTS = frozenset({"client_samples", "client_importance", "client_tests", "client_offered"})
ONCE = -1  # round of values that belong to no round


@dataclass
class History:
    """Rows of the runs' tables."""

    measured: Rows  # measurements of the global models; values have shape (runs,)
    charged: Rows  # costs of the rounds; the first round is 1
    # shape (runs,): round in which a run's model was no longer finite; -1 if it is
    diverged_at: Ints
    # shape (runs,): round in which a run met its condition to end; -1 if it continues.  While other
    # runs of the job continue, its later rows are dropped, so that it does not depend on them.
    ended_at: Ints = field(init=False)
    # shape (runs, n): values of single clients by metric, taken at the end
    by_client: Mapping[str, Array] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.ended_at = np.full(len(self.diverged_at), -1)

    @classmethod
    def empty(cls, runs: int) -> "History":
        """Return the history of runs that have not begun."""
        return cls([], [], np.full(runs, -1))

    @property
    def diverged(self) -> Bools:
        """Which runs have diverged, shape (runs,)."""
        return self.diverged_at >= 0

    def measure(self, round: int, values: Mapping[str, Array]) -> None:
        """Add the measurements before a round; those of diverged runs are NaN."""
        for name, value in values.items():
            self.measured.append((round, name, np.where(self.diverged, np.nan, value)))

    def charge(self, round: int, costs: Mapping[str, Array]) -> None:
        """Add the costs of a round, counted from 1."""
        self.charged.extend((round, name, cost) for name, cost in costs.items())

    def check_names(self) -> None:
        """Raise an error if two numbers of the first round have the same name."""
        names = ["diverged_at"]
        for rows in (self.measured, self.charged):
            names += [name for at, name, _ in rows if at == rows[0][0]]
        for name in names:
            if names.count(name) > 1:
                raise InputError(
                    f"metrics: the history already has {name!r}; use another name in metrics, or "
                    "in the sampler's method measured"
                )

    def mark_diverged(self, round: int, lost: Bools) -> None:
        """Note which runs lost their model in a round, counted from 1."""
        self.diverged_at[~self.diverged & lost] = round

    def tables_so_far(self, round: int) -> list["pd.DataFrame"]:
        """Return each run's table before a round, with the costs of each round."""
        rows = [*self.measured, *self.charged]
        return [_table(rows, run, round) for run in range(len(self.diverged_at))]

    def tables(self, costs: Costs = "mean") -> list["pd.DataFrame"]:
        """Return each run's table: columns ``at`` (round, or client), ``metric``, ``value``.

        `costs`: whether to return the costs of each round; their means, as ``…_per_round``; or bits
        and seconds summed between measurements, and no other cost.  Means need runs of one length.
        ``diverged_at`` is the round in which a run diverged, or −1; of such a run's values of
        clients, only :data:`FACTS` are kept.
        """
        rounds = self.charged[-1][0] if self.charged else 0
        charged = self.charged
        if costs == "mean":
            charged = _means(self.charged, rounds)
        elif costs == "since measurement":
            charged = _sums(self.charged, sorted({at for at, _, _ in self.measured}))
        rows = [*self.measured, *charged, (ONCE, "diverged_at", self.diverged_at.astype(float))]
        client_rows = [
            (client, name, value if name in FACTS else np.where(self.diverged, np.nan, value))
            for name, values in self.by_client.items()
            for client, value in enumerate(values.T)
        ]
        ends = np.where(self.ended_at < 0, rounds, self.ended_at)
        return [_table(rows, run, end, client_rows) for run, end in enumerate(ends.tolist())]


def _means(charged: Rows, rounds: int) -> Rows:
    """Average the costs over the rounds."""
    totals: dict[str, Array] = {}
    for _, name, cost in charged:
        totals[name] = totals.get(name, 0.0) + cost / rounds
    return [(ONCE, f"{name}_per_round", total) for name, total in totals.items()]


def _sums(charged: Rows, measured: Sequence[int]) -> Rows:
    """Sum bits and seconds over the rounds since the previous measurement."""
    sums: dict[tuple[int, str], Array] = {}
    for at, name, cost in charged:
        end = bisect_left(measured, at)
        if name in COMPARED_COSTS and end < len(measured):
            key = measured[end], name
            sums[key] = sums.get(key, 0.0) + cost
    return [(at, name, total) for (at, name), total in sums.items()]


def _table(rows: Rows, run: int, end: int, client_rows: Rows | None = None) -> "pd.DataFrame":
    """Build a run's table from its rows up to its end, and the rows of its clients."""
    import pandas as pd

    rows = [*(row for row in rows if row[0] <= end), *(client_rows or [])]
    return pd.DataFrame(
        {
            "at": np.array([at for at, _, _ in rows], np.int64),
            "metric": pd.Categorical([name for _, name, _ in rows]),
            "value": np.array([values[run] for _, _, values in rows], np.float64),
        }
    )
