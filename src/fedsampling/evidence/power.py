"""Power: the number of seeds that would decide an undecided claim.

The standard deviation over seeds follows from the interval.  A claim is decided when the interval
of its estimate contains no bound of the claim's rule.

References
----------
Cohen: Statistical power analysis for the behavioral sciences. 2nd edition, 1988, chapter 2.
"""

from collections.abc import Iterable
from math import inf, log, nan, sqrt

from scipy.special import stdtrit
from scipy.stats import nct

from fedsampling.evidence.statistics import show
from fedsampling.evidence.verdicts import Interval

POWER = 0.8
MAX_SEEDS = 1000  # more seeds are not practical
FEW_SEEDS = 5  # fewer seeds give only a rough estimate of the standard deviation
WITHOUT_INTERVAL = "Without intervals there is no forecast of the seeds that would decide it."


def open_intervals(drawn: Iterable[Interval]) -> list[Interval]:
    """Return the intervals that contain a bound of their claim's rule."""
    return [
        interval
        for interval in drawn
        if any(
            bound is not None and interval.low <= bound <= interval.high
            for bound in (interval.least, interval.most)
        )
    ]


def seeds_needed(interval: Interval, effect: float | None = None) -> float:
    """Compute the number of seeds for a t-interval to exclude the nearest bound with 80 % power.

    `interval`: an interval with its bounds, in its unit; ratios are compared by their logarithms.
    `effect`: assumed true value; the observed value by default. Returns an integer ≥ 2; infinite
    beyond :data:`MAX_SEEDS`, and if the interval's number of seeds is unknown.
    """
    scale = log if interval.unit.startswith("times") and interval.low > 0 else float
    value = scale(interval.value if effect is None else effect)
    bounds = [scale(bound) for bound in (interval.least, interval.most) if bound]
    bounds += [0.0 for bound in (interval.least, interval.most) if bound == 0 and scale is float]
    if interval.seeds < 2 or not bounds:
        return inf
    # Holm-corrected intervals keep their level; fewer seeds may do, as Holm's steps relax it.
    quantile = stdtrit(interval.seeds - 1, (1 + interval.level) / 2)
    deviation = (scale(interval.high) - scale(interval.low)) / 2 * sqrt(interval.seeds) / quantile
    distance = min(abs(value - bound) for bound in bounds)
    if deviation == 0:
        return 2
    for seeds in range(2, MAX_SEEDS + 1):
        critical = stdtrit(seeds - 1, (1 + interval.level) / 2)
        if nct.sf(critical, seeds - 1, distance / deviation * sqrt(seeds)) >= POWER:
            return seeds
    return inf


def sentence(drawn: Iterable[Interval], seconds: float = nan) -> str:
    """Write the number of seeds that would decide a claim, and their cost; empty if decided.

    `seconds`: processor time of the runs behind the claim.
    """
    drawn = list(drawn)
    if not drawn:
        return WITHOUT_INTERVAL
    undecided = open_intervals(drawn)
    if not undecided:
        return ""
    seeds = min(interval.seeds for interval in undecided)
    seconds_per_seed = seconds / seeds if seeds else nan
    counts = {"if the effect is as observed": max(map(seeds_needed, undecided))}
    counts_for_paper = [
        seeds_needed(interval, effect)
        for interval in undecided
        if (effect := interval.paper if interval.effect is None else interval.effect) is not None
    ]
    if counts_for_paper:
        counts["if it is the paper's"] = max(counts_for_paper)
    parts = [
        f"{_number(count)} {effect}{_cost((count - seeds) * seconds_per_seed)}"
        for effect, count in counts.items()
    ]
    rough = ", so this is a rough estimate" if seeds < FEW_SEEDS else ""
    return f"Seeds needed for 80 % power: {', '.join(parts)}; it has {seeds}{rough}."


def _number(seeds: float) -> str:
    return f"{seeds:.0f}" if seeds < inf else f"more than {MAX_SEEDS:,}"


def _cost(seconds: float) -> str:
    """Write the processor time of additional seeds; empty if unknown or zero."""
    if not 0 < seconds < inf:
        return ""
    return f" ({show(max(seconds / 3600, 0.1), 2)} core-hours more)"
