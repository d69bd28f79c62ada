"""How many seeds would decide an open claim, from the power of t-tests."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf, log, nan, sqrt

from scipy.special import nctdtr, stdtrit

from fedsampling.base.text import show
from fedsampling.evidence.verdicts import Interval, Part, Reading

POWER = 0.8
MAX_SEEDS = 1000  # more seeds are not practical
FEW_SEEDS = 5  # fewer seeds give only a rough estimate of the standard deviation
WITHOUT_INTERVAL = "Without intervals there is no forecast of the seeds that would decide it."


def deciding(
    drawn: Iterable[Interval], parts: Mapping[str, Part], readings: Sequence[Reading] = ()
) -> list[Interval]:
    """Return the intervals that may still decide a part of a claim, in each of its readings.

    Intervals of parts that are decided are left out.
    """
    undecided = {name for name, part in parts.items() if part == "open"}
    sources: list[tuple[Iterable[Interval], Mapping[str, Part]]]
    sources = [(row.drawn, row.parts) for row in readings] or [(drawn, parts)]
    return [
        interval
        for of_source, of_parts in sources
        for interval in of_source
        if not interval.part
        or (interval.part in undecided and of_parts.get(interval.part, "open") == "open")
    ]


def open_intervals(drawn: Iterable[Interval]) -> list[Interval]:
    """Return the intervals that contain a bound of their claim's rule."""
    return [
        row
        for row in drawn
        if any(row.low <= bound <= row.high for bound in (row.least, row.most) if bound is not None)
    ]


def seeds_needed(interval: Interval, effect: float | None = None) -> float:
    """Compute the number of seeds for a t-interval to exclude the nearest bound with 80 % power.

    `effect`: assumed true value, by default the observed one.  Ratios are compared by logarithms.
    It is infinite beyond :data:`MAX_SEEDS`, and if the interval has no bound or fewer than 2 seeds.
    """
    scale = log if interval.unit.startswith("times") and interval.low > 0 else float
    value = scale(interval.value if effect is None else effect)
    stated = [bound for bound in (interval.least, interval.most) if bound is not None]
    bounds = [scale(bound) for bound in stated if bound or scale is float]
    if interval.seeds < 2 or not bounds:
        return inf
    # Holm-corrected intervals keep their level; fewer seeds may do, as Holm's steps relax it.
    level = interval.look_level or interval.level
    quantile = stdtrit(interval.seeds - 1, (1 + level) / 2)
    deviation = (scale(interval.high) - scale(interval.low)) / 2 * sqrt(interval.seeds) / quantile
    distance = min(abs(value - bound) for bound in bounds)
    if deviation == 0:
        return 2
    for seeds in range(2, MAX_SEEDS + 1):
        critical = stdtrit(seeds - 1, (1 + level) / 2)
        # scipy.stats, which has the same distribution, takes half a second to import.
        if 1 - nctdtr(seeds - 1, distance / deviation * sqrt(seeds), critical) >= POWER:
            return seeds
    return inf


def seeds_sentence(drawn: Iterable[Interval], seconds: float = nan) -> str:
    """Write the number of seeds that would decide a claim, and their cost; empty if decided."""
    drawn = list(drawn)
    if not drawn:
        return WITHOUT_INTERVAL
    undecided = open_intervals(drawn)
    if not undecided:
        return ""
    seeds = min(interval.seeds for interval in undecided)
    seconds_per_seed = seconds / seeds if seeds else nan
    counts = {"if the effect is as observed": max(map(seeds_needed, undecided))}
    effects = [row.paper if row.effect is None else row.effect for row in undecided]
    if all(
        effect is not None and effect not in (row.least, row.most)
        for row, effect in zip(undecided, effects, strict=True)
    ):
        counts["if it is the paper's"] = max(map(seeds_needed, undecided, effects))
    parts = []
    for effect, count in counts.items():
        number = f"{count:.0f}" if count < inf else f"more than {MAX_SEEDS:,}"
        parts.append(f"{number} {effect}{_cost((count - seeds) * seconds_per_seed)}")
    rough = ", so this is a rough estimate" if seeds < FEW_SEEDS else ""
    return f"Seeds needed for 80 % power: {', '.join(parts)}; it has {seeds}{rough}."


def _cost(seconds: float) -> str:
    """Write the processor time of additional seeds; empty if unknown or zero."""
    if not 0 < seconds < inf:
        return ""
    return f" ({show(max(seconds / 3600, 0.1), 2)} core-hours more)"
