"""Ranks of samplers by a metric, with significant differences.

Seeds are paired, because a seed has the same initial model and the same batches under every
sampler.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np

from fedsampling.base.arrays import Array
from fedsampling.base.errors import InputError, nearest
from fedsampling.evidence.directions import is_larger_better, of_histories
from fedsampling.evidence.fairness import bounds_of, clipped
from fedsampling.evidence.histories import Histories, by_label, diverged_runs
from fedsampling.evidence.scores import last_values
from fedsampling.evidence.statistics import ROUNDING, Estimate, difference, holm, mean

if TYPE_CHECKING:
    import pandas as pd


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
            estimate = clipped(mean(values), bounds)
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


SIGNIFICANCE = {1: "better", 0: "no", -1: "worse"}
NO_ESTIMATE = Estimate(np.nan, np.nan, np.nan, 0)


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
