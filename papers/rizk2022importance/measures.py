"""What figures and claims of rizk2022importance share: its schemes, its gaps in dB, its noise."""

import numpy as np
import pandas as pd

from fedsampling.drawing.artefacts import Summaries
from fedsampling.drawing.style import SCHEMES as COLOURS
from fedsampling.drawing.style import Line
from fedsampling.evidence.statistics import Estimate, compare, decibels, difference, mean
from fedsampling.evidence.summaries import Summary

STEADY = 0.8  # steady state: the last fifth of the rounds

# What is compared in every population, the higher MSD first.
GAPS = {
    "FedAvg over true": ("standard", "isfedavg-optimal"),
    "FedAvg over tracked": ("standard", "isfedavg-tracked"),
    "FedAvg divided by E_k over true": ("fedavg", "isfedavg-optimal"),
    "tracked over true": ("isfedavg-tracked", "isfedavg-optimal"),
}
# Experiments over populations, each with that of standard FedAvg and this one's name in it.
BASELINES = {"sensitivity": ("uncorrected", "fedavg"), "few": ("few_standard", "standard")}

SCHEMES = {
    "fedavg": Line("FedAvg", COLOURS["uniform"]),
    "isfedavg-optimal": Line("ISFedAvg, true (44), (48)", COLOURS["isfedavg_optimal"]),
    "isfedavg-approximate": Line(
        "ISFedAvg, approximate (49), (50)", COLOURS["isfedavg_approximate"]
    ),
    "isfedavg-tracked": Line("ISFedAvg, tracked (52), (53)", COLOURS["isfedavg_tracked"]),
}
# The regression's baseline: FedAvg as the paper calls standard, whose steps are not divided by E_k.
STANDARD = "standard"
TRACKED = "isfedavg-tracked"
BALANCED = "balanced"  # the case of the classification with as many positives as negatives
# A variant that a server could run.
ESTIMATED = "isfedavg-tracked-estimated"
LINES = {
    STANDARD: SCHEMES["fedavg"],
    **{name: line for name, line in SCHEMES.items() if name != "fedavg"},
    ESTIMATED: Line(
        r"tracked, $\sigma^2_{s,k}$ estimated", COLOURS["isfedavg_tracked"], variant=True
    ),
    "fedavg": Line("FedAvg, steps divided by $E_k$", COLOURS["uniform"], variant=True),
}


def steady_since(summary: Summary, case: str = "base") -> float:
    """Return the round from which on a run counts as being at its steady state."""
    return STEADY * float(summary.setting("rounds", case))


def gap(
    summary: Summary,
    above: str,
    below: str,
    case: str = "base",
    baseline: Summary | None = None,
    level: float = 0.95,
) -> Estimate:
    """Compare the steady-state MSD of two schemes, in dB, paired by seed.

    Parameters
    ----------
    summary : Summary
        With the scheme `below`, and `above` unless `baseline` is given.
    above, below : str
        Samplers: the gap is that of the first over the second.
    case : str
    baseline : Summary, optional
        Where `above` is found.
    level : float
        Of the interval.
    """
    upper = baseline or summary
    first = upper.per_seed(above, "msd", case, steady_since(upper, case))
    second = summary.per_seed(below, "msd", case, steady_since(summary, case))
    return compare(first, second.loc[first.index], decibels, level)


def populations(summaries: Summaries) -> pd.DataFrame:
    """Gaps of c1 and c4 in every population that the sensitivity experiments tried.

    Returns
    -------
    DataFrame
        A row for each experiment, case and comparison: columns ``experiment``, ``case``,
        ``comparison`` (a name of :data:`GAPS`), ``gap_db``, ``low``, ``high``, ``seeds``.
    """
    rows = []
    for experiment, (other, sampler) in BASELINES.items():
        if experiment not in summaries or other not in summaries:
            continue
        panel, standard = summaries[experiment], summaries[other]
        for case in panel.settings["cases"]:
            for comparison, (above, below) in GAPS.items():
                baseline = standard if above == STANDARD else panel
                name = sampler if above == STANDARD else above
                found = gap(panel, name, below, case, baseline)
                values = (found.value, found.low, found.high, found.n)
                rows.append((experiment, case, comparison, *values))
    columns = ["experiment", "case", "comparison", "gap_db", "low", "high", "seeds"]
    return pd.DataFrame(rows, columns=columns)


def error_levels(summary: Summary, case: str = "base") -> tuple[Estimate, Estimate, Estimate]:
    """Mean testing errors over the last fifth, FedAvg's and ISFedAvg's, and what it gains: %."""
    since = steady_since(summary, case)
    fedavg, tracked = (
        100 * summary.per_seed(name, "error", case, since) for name in ("fedavg", TRACKED)
    )
    return mean(fedavg), mean(tracked), compare(fedavg, tracked, difference)


def gradient_deviations(summary: Summary) -> pd.DataFrame:
    """Compare the mean estimate with the exact gradient, by point and scheme.

    Returns
    -------
    DataFrame
        Columns ``case``, ``sampler``, ``coordinates``, ``largest_z``, ``noise``, ``noise_se``.
    """
    rows = []
    for (case, sampler), group in summary.rows.groupby(["case", "sampler"], sort=False):
        values = {name: part["value"].to_numpy() for name, part in group.groupby("metric")}
        z = (values["mean"] - values["exact"]) / values["se"]
        noise, se = float(values["noise"].mean()), float(values["noise_se"].mean())
        rows.append((case, sampler, len(z), float(np.abs(z).max()), noise, se))
    columns = ["case", "sampler", "coordinates", "largest_z", "noise", "noise_se"]
    return pd.DataFrame(rows, columns=columns)
