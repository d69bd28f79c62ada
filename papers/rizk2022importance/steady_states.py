"""Exact steady states of FedAvg and of the true probabilities, in every population that was run."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from fedsampling.base.nested import merge
from fedsampling.experiments.simulations.federated import Federated
from fedsampling.report.drawing.artefacts import Summaries

from .levels import Run
from .lines import STANDARD, TRUE
from .populations import population_in_words, sensitivity_populations
from .theory import Recursion, recursion

OURS = "the chosen population"
LENGTH = {"rounds", "every"}  # settings of a run that its recursion does not depend on
SETTLED_DB = 0.05  # a curve has settled once it stays this close to its limit


@dataclass(frozen=True)
class SteadyStates:
    """A population, and the recursions of standard FedAvg and of the true probabilities in it.

    `experiment`, `case`: of its longest runs, `runs`, of both samplers.
    """

    population: str  # in words
    runs: tuple[Run, Run]
    experiment: str
    case: str
    fedavg: Recursion
    true: Recursion


def every_population(summaries: Summaries) -> list[SteadyStates]:
    """Return the steady states in each population once, the chosen one first."""
    names: dict[tuple[str, ...], str] = {}
    longest: dict[tuple[str, ...], tuple[str, tuple[Run, Run]]] = {}
    for experiment, name, runs in _populations(summaries):
        key = tuple(_settings(run) for run in runs)
        names.setdefault(key, name)
        if key not in longest or _rounds(longest[key][1]) < _rounds(runs):
            longest[key] = experiment, runs
    return [
        SteadyStates(names[key], runs, experiment, runs[1][2], *(exact(run) for run in runs))
        for key, (experiment, runs) in longest.items()
    ]


def exact(run: Run) -> Recursion:
    """Return the recursion of a sampler's runs."""
    return _recursion(_settings(run))


def standard_beside(run: Run) -> Recursion:
    """Return the recursion of standard FedAvg in the population of a run of ISFedAvg."""
    settings = json.loads(_settings(run))
    settings["work"]["correct"] = False
    settings["sampler"] = {"name": "uniform", "m": settings["sampler"]["m"]}
    return _recursion(json.dumps(settings, sort_keys=True))


def exact_gap(above: Recursion, below: Recursion) -> float:
    """Return by how many dB one steady state is above another; NaN if one of them has none."""
    if max(above.growth, below.growth) >= 1:
        return np.nan
    return float(10 * np.log10(above.steady_msd() / below.steady_msd()))


def table(states: list[SteadyStates], rounds: int) -> pd.DataFrame:
    """Tabulate the steady states of populations.

    Returns columns ``experiment``, ``case``, ``population``; ``fedavg_db``, ``true_db`` and
    ``gap_db``, NaN without a steady state; ``growth``, the larger of both; and ``settled_after``,
    the first of `rounds` iterations from which both curves stay within :data:`SETTLED_DB` of their
    limits, NaN if there is none.
    """
    rows = []
    for state in states:
        both = state.fedavg, state.true
        levels = [10 * np.log10(of.steady_msd()) if of.growth < 1 else np.nan for of in both]
        growth = max(of.growth for of in both)
        settled = np.max([_settled_after(of, rounds) for of in both])
        named = state.experiment, state.case, state.population
        rows.append((*named, *levels, exact_gap(*both), growth, settled))
    levels_and_gap = ["fedavg_db", "true_db", "gap_db", "growth", "settled_after"]
    return pd.DataFrame(rows, columns=["experiment", "case", "population", *levels_and_gap])


def _populations(summaries: Summaries) -> Iterator[tuple[str, str, tuple[Run, Run]]]:
    """Yield experiment, population, and the runs of both samplers; some populations twice."""
    standard = summaries["steady_standard"], STANDARD, "base"
    yield "steady", OURS, (standard, (summaries["steady"], TRUE, "base"))
    for experiment, panel, standard in sensitivity_populations(summaries):
        case = standard[2]
        name = population_in_words(experiment, panel, case)
        yield experiment, name, (standard, (panel, TRUE, case))
    if {"few_steady", "few_steady_standard"} <= summaries.keys():
        panel = summaries["few_steady"]
        for case in panel.settings["cases"]:
            standard = summaries["few_steady_standard"], STANDARD, case
            name = population_in_words("few_steady", panel, case)
            yield "few_steady", name, (standard, (panel, TRUE, case))


def _rounds(runs: tuple[Run, Run]) -> int:
    summary, _, case = runs[0]
    return int(summary.setting("rounds", case))


def _settings(run: Run) -> str:
    """Write the settings that a run's recursion depends on, in a fixed order."""
    summary, sampler, case = run
    settings = merge(summary.settings["settings"], summary.settings["cases"][case])
    settings = {"problem_seed": 0} | {key: settings[key] for key in settings.keys() - LENGTH}
    settings["sampler"] = summary.settings["samplers"][sampler]
    return json.dumps(settings, sort_keys=True)


@cache  # a claim, its alternatives and figures use the same populations
def _recursion(settings: str) -> Recursion:
    return recursion(Federated(**json.loads(settings), **dict.fromkeys(LENGTH, 1)))


def _settled_after(of: Recursion, rounds: int) -> float:
    if of.growth >= 1:
        return np.nan
    decibels = 10 * np.log10(of.course(rounds) / of.steady_msd())
    last = np.flatnonzero(np.abs(decibels) > SETTLED_DB)
    return float(last.max(initial=-1) + 1) if last.max(initial=-1) < rounds else np.nan
