"""The fall of the MSD before its steady state: which sampler is lowest meanwhile, for c3."""

from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd

from fedsampling.evidence.rules import above
from fedsampling.evidence.statistics import difference, first_reached, holm
from fedsampling.evidence.summaries import Summary
from fedsampling.report.drawing.artefacts import Summaries

from .levels import Run, steady_since
from .lines import APPROXIMATE, STANDARD, TRACKED, TRUE
from .populations import BASELINES, sensitivity_populations

BASELINE_NAMES = ("standard", "divided by E_k")  # FedAvg's steps
WINDOWS = ("FedAvg falls", "(49)–(50) fall")
CELL = ["experiment", "case", "baseline", "window"]  # the combinations over which c3 is judged
OTHERS = {TRUE: "optimal", TRACKED: "tracked"}  # ISFedAvg's other probabilities


def fastest(summaries: Summaries) -> pd.DataFrame:
    """Compare the approximate probabilities with all other samplers while the MSDs fall.

    Returns a row for each population (``experiment`` and ``case``), ``baseline`` of
    :data:`BASELINE_NAMES`, ``window`` of :data:`WINDOWS` and ``other`` sampler: ``higher_db``, its
    mean difference from (49)–(50) in dB, with ``low`` and ``high``, Holm-corrected over the others;
    ``until``, the last round of the window; ``seeds``; and ``part``: "holds" if all others are
    higher, "fails" if any is lower, otherwise "open".
    """
    used = {"regression", "standard", *BASELINES, *(standard for standard, _ in BASELINES.values())}
    return _fastest(tuple((name, summaries[name]) for name in sorted(used & set(summaries)))).copy()


@cache  # a figure, its alternatives and a claim read these thousands of bootstrap intervals
def _fastest(summaries: tuple[tuple[str, Summary], ...]) -> pd.DataFrame:
    rows = []
    for experiment, case, panel, baselines in _populations(dict(summaries)):
        approximate = panel, APPROXIMATE, case
        for name, baseline in zip(BASELINE_NAMES, baselines, strict=True):
            rivals = {"FedAvg": baseline}
            rivals |= {label: (panel, sampler, case) for sampler, label in OTHERS.items()}
            for window, falling in zip(WINDOWS, (baseline, approximate), strict=True):
                until = _falls_until(*falling)
                lowest = _mean_decibels(*approximate, until)
                pairs = {
                    rival: (_mean_decibels(*run, until).loc[lowest.index], lowest)
                    for rival, run in rivals.items()
                }
                higher = holm(pairs, difference)
                parts = [above(gain, 0.0) for gain in higher.values()]
                part = "fails" if "fails" in parts else "open" if "open" in parts else "holds"
                cell = (experiment, case, name, window)
                rows += [
                    (*cell, rival, gain.value, gain.low, gain.high, until, gain.n, part)
                    for rival, gain in higher.items()
                ]
    columns = ["other", "higher_db", "low", "high", "until", "seeds", "part"]
    return pd.DataFrame(rows, columns=[*CELL, *columns])


def _populations(summaries: Summaries) -> Iterator[tuple[str, str, Summary, tuple[Run, Run]]]:
    """Yield every population once, with both baselines: standard, and divided by E_k."""
    panel, base = summaries["regression"], "base"
    standard = summaries["standard"], STANDARD, base
    yield "regression", base, panel, (standard, (panel, "fedavg", base))
    for experiment, panel, baseline in sensitivity_populations(summaries):
        case = baseline[2]
        if panel.settings["cases"][case]:  # without changes it is the regression's population
            yield experiment, case, panel, (baseline, (panel, "fedavg", case))


def _falls_until(summary: Summary, sampler: str, case: str) -> float:
    """Return the first measured round after the start at which the mean MSD is steady."""
    rows = summary.select(sampler, "msd", case)
    curve = rows.groupby("at")["value"].mean()
    level = float(summary.per_seed(sampler, "msd", case, steady_since(summary, case)).mean())
    first_measured = float(curve.index[curve.index > 0].min())
    return max(first_reached(curve.index, curve, level), first_measured)


@cache  # the approximate probabilities are compared twice in each window
def _mean_decibels(summary: Summary, sampler: str, case: str, until: float) -> pd.Series:
    """Average each seed's MSD in dB over the rounds after the first, up to `until`."""
    values = summary.values(sampler, "msd", case, since=1, until=until)
    decibels = pd.Series(10 * np.log10(values.to_numpy()), values.index)
    return decibels.groupby(level="seed").mean()
