"""The measurements and costs of a job's runs, and the tables that they become."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
from fedsampling.learning.training.costs import COMPARED_COSTS
from fedsampling.learning.training.selections import METRICS as SELECTED
from fedsampling.learning.training.selections import RunSelections, Selections

# Metrics of training a network; a paper's own run kinds may have more.
METRICS = {
    "loss": "training loss, mean over clients weighted by importance",
    "loss_std": "standard deviation of the training loss over clients",
    "accuracy": "share of correctly classified test samples",
    "accuracy_std": "standard deviation of the accuracy over clients; if clients have test samples",
    "accuracy_worst": "mean accuracy of the worst tenth of clients; with evaluation.clients",
    "accuracy_q10": "10 % quantile of the clients' accuracies; also accuracy_q50 and accuracy_q90",
    "test_loss": "mean loss on the test samples; for regressions",
    "train_loss": "loss on the mini-batches of a round, mean over the clients that trained; 0 if "
    "none did",
    "clients": "number of clients whose models were averaged in a round",
    "reports": "number of clients that reported to the server in a round",
    "labels": "number of different labels among the clients of a round",
    "model_bits": "bits of models that clients sent in a round",
    "norm_bits": "bits of update norms that clients sent in a round",
    "down_bits": "bits that the server sent in a round",
    "seconds": "simulated duration of a round; with delays",
    "failed": "number of selected clients that did not report in a round; with failures",
    "wasted_bits": "bits of models that these clients received in a round",
    "wasted_seconds": "seconds that these clients trained in a round, summed; with delays",
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
    "selected_client": "a selected client; with evaluation.selections, in the order of selection",
    "selected_weight": "its weight ω in the round, zero if it did not report",
    "selected_reported": "whether it reported, 1 or 0",
    "selected_seconds": "seconds that its update takes; NaN without delays",
    "diverged_at": "round after which the model is no longer finite; −1 if it stays finite",
}

Rows = list[tuple[int, str, Array]]  # (round, metric, values of shape (runs,))
# Costs of each round, their means over all rounds, or the sums of bits and seconds since the
# previous measurement.
Costs = Literal["each", "mean", "since measurement"]
# Facts about clients, which are known even if the model diverges.
FACTS = frozenset({"client_samples", "client_importance", "client_tests", "client_offered"})
ONCE = -1  # round of values that belong to no round


@dataclass
class JobHistory:
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
    selections: Selections | None = field(init=False, default=None)  # taken at the end

    def __post_init__(self) -> None:
        self.ended_at = np.full(len(self.diverged_at), -1)

    @classmethod
    def empty(cls, runs: int) -> "JobHistory":
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
        ends = np.where(self.ended_at < 0, rounds, self.ended_at)
        diverged_at = np.where(self.diverged_at > ends, -1.0, self.diverged_at)
        rows = [*self.measured, *charged, (ONCE, "diverged_at", diverged_at)]
        client_rows = [
            (client, name, value if name in FACTS else np.where(self.diverged, np.nan, value))
            for name, values in self.by_client.items()
            for client, value in enumerate(values.T)
        ]
        recorded = self.selections
        return [
            _table(rows, run, end, client_rows, recorded.of_run(run, end) if recorded else None)
            for run, end in enumerate(ends.tolist())
        ]


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


def _table(
    rows: Rows,
    run: int,
    end: int,
    client_rows: Rows | None = None,
    selected: RunSelections | None = None,
) -> "pd.DataFrame":
    """Build a run's table from its rows up to its end, and the rows of its clients."""
    import pandas as pd

    rows = [*(row for row in rows if row[0] <= end), *(client_rows or [])]
    at = np.array([at for at, _, _ in rows], np.int64)
    metric: Any = pd.Categorical([name for _, name, _ in rows])
    value = np.array([values[run] for _, _, values in rows], np.float64)
    if selected is not None:
        metric = _extended(metric, len(selected.at))
        at = np.append(at, np.tile(selected.at, len(SELECTED)))
        value = np.append(value, selected.values)
    return pd.DataFrame({"at": at, "metric": metric, "value": value})


def _extended(metric: Any, slots: int) -> Any:
    """Append each metric of selections, once for each slot."""
    import pandas as pd

    known = metric.categories
    codes = np.repeat(np.arange(len(SELECTED)) + len(known), slots)
    categories = known.append(pd.Index(SELECTED))
    return pd.Categorical.from_codes(np.append(metric.codes, codes), categories)
