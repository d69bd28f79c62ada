"""Comparison of training histories: estimates over seeds, ranks and significant differences.

A history is the result of :func:`fedsampling.train`: rows of ``seed``, ``at``, ``metric`` and
``value``.  Seeds are paired, because a seed has the same initial model and the same batches under
every sampler.
"""

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import combinations, pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from fedsampling.base.arrays import Array
from fedsampling.base.errors import InputError, naming, nearest
from fedsampling.evidence.directions import is_larger_better, of_histories
from fedsampling.evidence.statistics import ROUNDING, Estimate, difference, holm, mean
from fedsampling.learning.training.participation import evenness

if TYPE_CHECKING:
    import pandas as pd

# What a client's score is measured on: its test samples or, if no client has any, its training
# samples, which the name says.
SCORES = ("accuracy", "training_accuracy", "loss", "training_loss")
SUMMARIES = ("mean_{}", "median_{}", "worst_{}", "best_{}", "{}_deviation", "{}_gap")
MEASURES = (
    "never_selected",
    "least_weight",
    "jain",
    *(summary.format(score) for score in SCORES for summary in SUMMARIES),
)
NAMES = "client names"  # of a history's ``attrs``
PREFIX = "client_"  # of the metrics of single clients; their rows have the client in ``at``
MISSING = "the history has no values of single clients; train with by_client=True"


def by_client(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Return a row for each run and client.

    Parameters
    ----------
    rows : DataFrame
        Columns ``at``, ``metric``, ``value``, and those that identify a run, such as ``seed``.

    Returns
    -------
    DataFrame
        The columns of the run; ``client``, by name if the clients have names; ``samples``,
        ``importance``, ``tests``, ``offered``, ``rounds`` and ``weight``, as they were recorded;
        ``loss`` and, for classification, ``accuracy`` on the client's test samples (NaN if it has
        none), or ``training_loss`` and ``training_accuracy`` if no client has test samples;
        ``participation``, the number of rounds in which the client takes part, divided by the
        number of rounds in which it is available; and ``relative_weight``, its share of all weights
        divided by its importance, which is 1 in expectation for unbiased samplers.

    Raises
    ------
    InputError
        If there are no values of single clients.

    Examples
    --------
    >>> import fedsampling as fs
    >>> data = fs.load("mnist", "by_digit", data="embedded")
    >>> work = {"model": "mlp", "steps": 2, "batch": 5, "step": 0.1, "rounds": 2}
    >>> history = fs.train(data, fs.scheme("md", m=5), by_client=True, **work)
    >>> len(fs.by_client(history))
    100
    """
    if not {"at", "metric", "value"} <= {*getattr(rows, "columns", ())}:
        raise InputError("history: must be a result of fedsampling.train")
    names = rows.attrs.get(NAMES)
    rows = rows[rows["metric"].astype(str).str.startswith(PREFIX)]
    if rows.empty:
        raise InputError(MISSING)
    run = [name for name in rows.columns if name not in ("at", "metric", "value")]
    rows = rows.assign(metric=rows["metric"].astype(str).str.removeprefix(PREFIX))
    wide = rows.pivot(index=[*run, "at"], columns="metric", values="value")
    wide = wide.rename_axis(columns=None).reset_index().rename(columns={"at": "client"})
    scores = [score for score in ("accuracy", "loss") if score in wide]
    if (wide["tests"] == 0).all():
        wide = wide.rename(columns={score: f"training_{score}" for score in scores})
    else:
        wide[scores] = wide[scores].where(wide["tests"] > 0)
    if names is not None:
        wide["client"] = np.array(names, object)[wide["client"]]
    total = wide.groupby(run)["weight"].transform("sum") if run else wide["weight"].sum()
    return wide.assign(
        participation=(wide["rounds"] / wide["offered"]).where(wide["offered"] > 0),
        relative_weight=(wide["weight"] / total / wide["importance"]).where(wide["importance"] > 0),
    )


def fairness(table: "pd.DataFrame") -> "pd.DataFrame":
    """Summarise the clients of each run.

    `table`: result of :func:`by_client`. Returns a row for each run, indexed by its columns:
    ``never_selected``, the share of the clients that take part in no round; ``least_weight``, the
    smallest relative weight; ``jain``, Jain's index of the numbers of rounds; and, with equal
    weights of all clients, ``mean_accuracy``, ``median_accuracy``, ``worst_accuracy`` and
    ``best_accuracy`` (means of the worst and of the best tenth), ``accuracy_deviation`` (standard
    deviation), and ``accuracy_gap`` between mean and worst tenth.  For regression ``loss`` takes
    the place of ``accuracy``; if no client has test samples, ``training_accuracy`` or
    ``training_loss`` does.
    """
    import pandas as pd

    score = next(score for score in SCORES if score in table)
    recorded = (
        "client", "samples", "importance", "tests", "offered", "rounds", "weight", *SCORES,
        "participation", "relative_weight",
    )  # fmt: skip
    run = [name for name in table.columns if name not in recorded]
    rows = {
        key: {
            "never_selected": float((part["rounds"] == 0).where(part["rounds"].notna()).mean()),
            "least_weight": float(part["relative_weight"].min()),
            "jain": float(evenness(part["rounds"].to_numpy()[None])["jain"][0]),
            **_spread(_measured(part, score), score),
        }
        for key, part in table.groupby(run)
    }
    return pd.DataFrame([*rows.values()], pd.MultiIndex.from_tuples(rows, names=run))


def over_seeds(measures: "pd.DataFrame") -> dict[str, float]:
    """Return each measure's mean over runs, and the ends of its 95 % interval."""
    row: dict[str, float] = {}
    for name in map(str, measures):
        values = measures[name].to_numpy()
        estimate = _clipped(mean(values), bounds_of(name, values))
        row |= estimate.columns(name, f"{name}_")
    return row


def _measured(part: "pd.DataFrame", score: str) -> Array:
    """Return the scores of the clients with test samples; of all clients if none has any."""
    has_tests = part["tests"].to_numpy() > 0
    measured: Array = part[score].to_numpy()
    return measured[has_tests] if has_tests.any() else measured


def _spread(values: Array, score: str) -> dict[str, float]:
    """Summarise the clients' scores; large losses are the worst ones."""
    tenth = -(-len(values) // 10)
    ordered = np.sort(values) if "accuracy" in score else -np.sort(-values)
    if np.isnan(values).any():
        ordered = np.full_like(values, np.nan)
    average, worst = float(ordered.mean()), float(ordered[:tenth].mean())
    return {
        f"mean_{score}": average,
        f"median_{score}": float(np.median(ordered)),
        f"worst_{score}": worst,
        f"best_{score}": float(ordered[-tenth:].mean()),
        f"{score}_deviation": float(ordered.std()),
        f"{score}_gap": abs(average - worst),
    }


Histories = Mapping[str, "pd.DataFrame"]

# Sums of metrics that a round charges.
COSTS = {
    "bits": ("model_bits", "norm_bits", "exchange_bits", "observation_bits"),
    "seconds": ("seconds", "asking_seconds"),
}
AXES = ("rounds", *COSTS)
SIGNIFICANCE = {1: "better", 0: "no", -1: "worse"}
NO_ESTIMATE = Estimate(np.nan, np.nan, np.nan, 0)
COLUMNS = frozenset({"seed", "at", "metric", "value"})  # of a history


def ranking(
    histories: Histories, metric: str, reference: str, larger: bool | None = None
) -> "pd.DataFrame":
    """Rank samplers by a metric after the last round.

    `histories`: by the sampler's label; all of the same seeds. `reference`: label that the others
    are compared with. `larger`: whether larger is better; if None, see :mod:`.directions`.

    Returns a row per sampler, the best first.  Columns: ``sampler``; ``value`` with its 95 %
    interval ``low``, ``high`` over ``seeds`` seeds, of which ``diverged`` diverged; ``rank`` with
    ``rank_low`` and ``rank_high``, from the numbers of significantly better and worse samplers
    among all pairs (Holm); ``difference`` from the reference with its interval, paired by seed,
    Holm-corrected over all samplers; ``significance``: better, worse or no.  ``attrs`` has metric,
    reference and direction.

    Values that differ only by rounding have one rank, and seeds with equal differences give no
    interval: their spread is unknown.  A sampler with a diverged run, or a value that is not
    finite, has no value and the last rank; its ``significance`` is the reason.  The other samplers
    are compared without it.
    """
    import pandas as pd

    if reference not in histories:
        raise InputError(f"reference: {reference!r} is unknown; {nearest(reference, histories)}")
    if not isinstance(metric, str):
        raise InputError(f"metric: {metric!r} is invalid; must be a name")
    histories = by_label(histories)
    all_values = _paired(histories, metric, reference)
    larger = is_larger_better(metric, larger, of_histories(histories.values()))
    bounds = bounds_of(metric, np.concatenate([*all_values.values()]))
    diverged = {label: diverged_runs(history) for label, history in histories.items()}
    reasons = {
        label: "diverged" if diverged[label] else "not finite"
        for label, values in all_values.items()
        if diverged[label] or not np.isfinite(values).all()
    }
    ranked = {label: values for label, values in all_values.items() if label not in reasons}
    pairs = {
        label: (values, ranked[reference])
        for label, values in ranked.items()
        if reference in ranked and label != reference
    }
    if reference in reasons:
        reasons = dict.fromkeys(ranked, f"reference {reasons[reference]}") | reasons
    gaps = holm(pairs, difference)
    sides = _sides(ranked)
    sign = 1 if larger else -1
    rows = []
    for label, values in all_values.items():
        estimate, gap = NO_ESTIMATE, gaps.get(label, NO_ESTIMATE)
        rank_low, rank_high = 1 + len(ranked), len(all_values)
        if label in ranked:
            estimate = _clipped(mean(values), bounds)
            better = [sign * side for side in sides[label].values()]
            rank_low, rank_high = 1 + better.count(-1), len(ranked) - better.count(1)
        rows.append(
            {
                "sampler": label,
                **estimate.columns("value"),
                "seeds": len(values),
                "diverged": diverged[label],
                "rank": 0,
                "rank_low": rank_low,
                "rank_high": rank_high,
                **_without_rounding(gap, estimate).columns("difference", "difference_"),
                "significance": reasons.get(label, SIGNIFICANCE[sign * _side(gap)]),
            }
        )
    table = pd.DataFrame(rows)
    ordered = _equal_up_to_rounding(table["value"])
    table["rank"] = ordered.rank(ascending=not larger, na_option="bottom", method="min").astype(int)
    table = table.sort_values("rank", kind="stable", ignore_index=True)
    table.attrs = {"metric": metric, "reference": reference, "larger": larger}
    return table


def left_out(histories: "pd.DataFrame | Histories") -> "pd.DataFrame":
    """Tabulate how fairly each sampler treats the clients: participation, weights, accuracies.

    Parameters
    ----------
    histories : DataFrame, or mapping of str to DataFrame
        Result of :func:`fedsampling.train` with ``by_client=True``, or several results by label.

    Returns
    -------
    DataFrame
        A row for each sampler: the number of ``diverged`` runs, and the measures of
        :func:`fedsampling.evidence.histories.fairness`, means over seeds; each with the ends
        ``<measure>_low`` and ``<measure>_high`` of its 95 % interval.  Measures are NaN if a run
        diverged.

    Raises
    ------
    InputError
        If a history has no values of single clients.

    Examples
    --------
    >>> import fedsampling as fs
    >>> data = fs.load("mnist", "by_digit", data="embedded")
    >>> work = {"model": "mlp", "steps": 2, "batch": 5, "step": 0.1, "rounds": 2}
    >>> history = fs.train(data, fs.scheme("md", m=5), by_client=True, **work)
    >>> fs.left_out({"md": history})["never_selected"].round(2).tolist()
    [0.9]
    """
    import pandas as pd

    rows = []
    for label, table in by_label(histories).items():
        with naming(label) if label else nullcontext():
            averages = over_seeds(fairness(by_client(table)))
        rows.append({"sampler": label, "diverged": diverged_runs(table), **averages})
    return pd.DataFrame(rows)


def last_values(history: "pd.DataFrame", metric: str) -> "pd.Series":
    """Return a metric after the last round, by seed; or a summary of the clients."""
    if metric in MEASURES and metric not in set(history["metric"]):
        measures = fairness(by_client(history))
        if metric in measures:
            return measures[metric].droplevel([*range(measures.index.nlevels - 1)])
        if (training := _on_training(metric)) in measures:
            raise InputError(
                f"metric: clients have no test samples for {metric!r}; make some (test_share=0.2, "
                f"or tests of each client), or compare {training!r}"
            )
    rows = _rows_of(history, metric)
    return rows.sort_values("at", kind="stable").groupby("seed")["value"].last(skipna=False)


def scores(history: "pd.DataFrame", metric: str) -> "pd.DataFrame":
    """Return a metric as ``score`` in each measured round ``at``; a summary of the clients once."""
    if metric in MEASURES and metric not in set(history["metric"]):
        return last_values(history, metric).rename("score").to_frame().assign(at=0)
    rows = _rows_of(history, metric).rename(columns={"value": "score"})
    if diverged_runs(history):
        rows["score"] = np.nan
    return rows[["at", "score"]]


def score_trials(runs: "pd.DataFrame", keys: list[str]) -> "pd.DataFrame":
    """Score each trial of each sampler, larger being better, as all tuning does.

    The score is the mean over seeds and the second half of the rounds, −∞ if a run diverged. The
    best trial is ``chosen``, the first in case of a tie; published runs are rounded, so scores that
    are equal to six decimals are a tie.
    """
    late = runs[runs["at"] >= runs["at"].max() / 2].groupby(keys)
    means = late["score"].agg(lambda values: values.mean(skipna=False))
    table: pd.DataFrame = means.fillna(-np.inf).rename("score").reset_index()
    best = table["score"].round(6).groupby(table["sampler"]).transform("idxmax")
    table["chosen"] = table.index == best
    return table


def is_at_edge(value: Any, grid: Iterable[Any]) -> bool:
    """Whether a value is the smallest or largest number of a grid with several."""
    numbers = {value for value in grid if isinstance(value, Real)}
    return len(numbers) > 1 and value in (min(numbers), max(numbers))


def curve(history: "pd.DataFrame", x: str, y: str) -> "pd.DataFrame":
    """Return a metric against rounds or cumulative costs, a row per measurement.

    Bits and seconds are summed up to each; the mean over seeds has its 95 % interval, NaN for one.
    """
    import pandas as pd

    if x not in AXES:
        raise InputError(f"x: {x!r} is unknown; {nearest(x, AXES)}")
    values = _rows_of(history, y).pivot(index="at", columns="seed", values="value")
    bounds = bounds_of(y, values.to_numpy(np.float64))
    table = pd.DataFrame(
        [_clipped(mean(row), bounds).columns("mean") for row in values.to_numpy(np.float64)]
    )
    at = values.index
    table.insert(0, "x", at if x == "rounds" else _cumulative_cost(history, x, at))
    return table


def by_label(history: "pd.DataFrame | Histories") -> Histories:
    """Return histories by label; a single one has an empty label."""
    histories = history if isinstance(history, Mapping) else {"": history}
    for label, table in histories.items():
        name = f"history {label!r}" if label else "history"
        is_history = {*getattr(table, "columns", ())} >= COLUMNS
        if not is_history or {table[key].dtype.kind for key in ("at", "value")} - {*"iuf"}:
            raise InputError(f"{name}: must be a result of fedsampling.train")
        if table.duplicated(["seed", "at", "metric"]).any():
            raise InputError(f"{name}: duplicate rows; pass one history, with each seed once")
    return histories


def diverged_runs(history: "pd.DataFrame") -> int:
    """Count the runs that diverged."""
    return int((history["value"][history["metric"] == "diverged_at"] >= 0).sum())


def _on_training(metric: str) -> str:
    """Return the name that a measure of the clients has if it is on training samples."""
    for score in ("accuracy", "loss"):
        metric = metric.replace(score, f"training_{score}")
    return metric


def bounds_of(metric: str, values: Array) -> tuple[float, float]:
    """Return the bounds of a metric; none if some values are beyond, as accuracies in per cent."""
    from fedsampling.evidence.summaries import bounds_of  # pandas takes long to import

    if metric in MEASURES:
        return bounds_of("loss" if "loss" in metric else "accuracy", values)
    return bounds_of(metric, values)


def _clipped(estimate: Estimate, bounds: tuple[float, float]) -> Estimate:
    """Return an estimate with its interval clipped to the bounds of its metric."""
    low, high = np.clip([estimate.low, estimate.high], *bounds)
    return replace(estimate, low=float(low), high=float(high))


def _equal_up_to_rounding(values: "pd.Series") -> "pd.Series":
    """Return numbers of which those that differ only by rounding are equal."""
    numbers = values.to_numpy(np.float64).copy()
    order = np.argsort(numbers, kind="stable")
    tolerance = ROUNDING * np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)
    for previous, current in pairwise(order):
        if numbers[current] - numbers[previous] <= tolerance:
            numbers[current] = numbers[previous]
    return values.mask(values.notna(), numbers)


def _without_rounding(gap: Estimate, estimate: Estimate) -> Estimate:
    """Return a difference, 0 if it comes from rounding alone."""
    is_rounding = abs(gap.value) <= ROUNDING * abs(estimate.value)
    return replace(gap, value=0.0) if is_rounding else gap


def _cumulative_cost(history: "pd.DataFrame", cost: str, at: "pd.Index") -> np.ndarray:
    """Sum a cost up to each round, mean over seeds."""
    rows = history[history["metric"].isin(COSTS[cost])]
    if rows.empty:
        fix = "train with delays, such as 'synthetic'" if cost == "seconds" else "train again"
        raise InputError(f"x: the history has no {cost}; {fix}")
    per_round = rows.groupby(["at", "seed"])["value"].sum().groupby("at").mean()
    spent = per_round.sort_index().cumsum()
    return spent.reindex(spent.index.union(at)).ffill().fillna(0.0).loc[at].to_numpy()


def _rows_of(history: "pd.DataFrame", metric: str) -> "pd.DataFrame":
    """Return the rows of a metric that was measured in rounds."""
    in_rounds = (history["at"] >= 0) & ~history["metric"].astype(str).str.startswith(PREFIX)
    rows = history[(history["metric"] == metric) & in_rounds]
    if rows.empty:
        metrics = sorted(set(history.loc[in_rounds, "metric"].astype(str)))
        if metric == "accuracy":
            fix = "give the data test samples (x_test or test_share)"
        else:
            fix = nearest(metric, metrics)
        raise InputError(f"metric: the history has no {metric!r}; {fix}")
    return rows


def _paired(histories: Histories, metric: str, reference: str) -> dict[str, Array]:
    """Return each sampler's values after the last round, in a common order of seeds."""
    last = {label: last_values(history, metric) for label, history in histories.items()}
    seeds = last[reference].index
    for label, series in last.items():
        if not series.index.equals(seeds):
            raise InputError(
                f"{label}: its seeds differ from {reference}'s; train with equal seeds"
            )
    return {label: series.to_numpy(np.float64) for label, series in last.items()}


def _sides(values: Mapping[str, Array]) -> dict[str, dict[str, int]]:
    """Return for each pair 1 or −1 if the first is significantly larger or smaller (Holm)."""
    pairs = {f"{a}\0{b}": (a, b) for a, b in combinations(values, 2)}
    gaps = holm({key: (values[a], values[b]) for key, (a, b) in pairs.items()}, difference)
    sides: dict[str, dict[str, int]] = {label: {} for label in values}
    for key, (a, b) in pairs.items():
        sides[a][b], sides[b][a] = _side(gaps[key]), -_side(gaps[key])
    return sides


def _side(gap: Estimate) -> int:
    """Return the sign of an interval that excludes zero; otherwise 0."""
    return int(gap.low > 0) - int(gap.high < 0)
