"""Populations of agents with other noise, covariances or draws, and the gaps of c1 and c4 there."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from fedsampling.base.text import plural
from fedsampling.evidence.summaries import Summary
from fedsampling.report.drawing.artefacts import Summaries

from .levels import Run, gap
from .lines import STANDARD, TRACKED, TRUE

# Comparisons made in every population, the sampler with the higher MSD first.
GAPS = {
    "FedAvg over true": (STANDARD, TRUE),
    "FedAvg over tracked": (STANDARD, TRACKED),
    "FedAvg divided by E_k over true": ("fedavg", TRUE),
    "tracked over true": (TRACKED, TRUE),
}
# Experiments over populations, each with the experiment and the name of its standard FedAvg.
BASELINES = {"sensitivity": ("uncorrected", "fedavg"), "few": ("few_standard", "standard")}


def sensitivity_populations(summaries: Summaries) -> Iterator[tuple[str, Summary, Run]]:
    """Yield the sensitivity experiments with the run of standard FedAvg in each population."""
    for experiment, (baseline, sampler) in BASELINES.items():
        if {experiment, baseline} <= summaries.keys():
            for case in summaries[experiment].settings["cases"]:
                yield experiment, summaries[experiment], (summaries[baseline], sampler, case)


def populations(summaries: Summaries) -> pd.DataFrame:
    """Estimate the gaps of c1 and c4 in every population of the sensitivity experiments.

    Returns columns ``experiment``, ``case``, ``comparison`` (a name of :data:`GAPS`), ``gap_db``,
    ``low``, ``high``, ``seeds``.
    """
    rows = []
    for experiment, panel, standard in sensitivity_populations(summaries):
        case = standard[2]
        for comparison, (upper, lower) in GAPS.items():
            above = standard if upper == STANDARD else (panel, upper, case)
            estimate = gap(above, (panel, lower, case))
            values = (estimate.value, estimate.low, estimate.high, estimate.n)
            rows.append((experiment, case, comparison, *values))
    columns = ["experiment", "case", "comparison", "gap_db", "low", "high", "seeds"]
    return pd.DataFrame(rows, columns=columns)


def population_in_words(experiment: str, summary: Summary, case: str) -> str:
    """Write how a case's population differs, such as ``4 agents 10⁴ times noisier; draw 1``."""
    changes = summary.settings["cases"].get(case) or {}
    dataset, draw = changes.get("dataset", {}), changes.get("problem_seed", 0)
    noise, eigenvalues = dataset.get("noise"), dataset.get("eigenvalues")
    if isinstance(noise, Mapping):
        return (
            f"{plural(noise['few'], 'agent')} {_power(noise['factor'])} times noisier; draw {draw}"
        )
    if eigenvalues:
        return f"eigenvalues of covariances from {eigenvalues[0]:g} to {eigenvalues[1]:g}"
    if noise and noise[0] < noise[1]:
        return f"noise variances that differ by up to {_power(noise[1] / noise[0])}"
    if noise:
        return "equal noise variances"
    if draw:
        return f"draw {draw} of the population"
    return f"the chosen population with the seeds of {experiment}"


def _power(number: float) -> str:
    """Write a power of ten, such as 10⁴."""
    digits = str(round(np.log10(number)))
    return "10" + digits.translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
