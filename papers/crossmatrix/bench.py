"""The benchmark: costs to two targets, their aggregates, and the decision map learned from them.

A cost is never missing: a run that misses a target costs twice what it cost as a whole (PAR2).
Costs of a sampler on a dataset are means over seeds, then geometric means over the two targets.

References
----------
Demšar: Statistical Comparisons of Classifiers over Multiple Data Sets. JMLR 2006.
Dolan, Moré: Benchmarking optimization software with performance profiles. Mathematical Programming
2002.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd

from fedsampling.base.records import check
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.cross_matrix import BENCH, MEASURES, REFERENCE, TUNING
from fedsampling.report.drawing.artefacts import Summaries
from fedsampling.samplers.scheme import Scheme

from .runs import courses, grid_scores

TARGETS = {"half": 0.5, "late": 0.95}  # parts of the way to MD's final score
PENALTY = 2.0  # cost of a miss, in units of the whole run
DEFAULT = "default"  # case of the settings as published
CONVERGED = {"accuracy": 0.01, "test_loss": 0.1}  # largest gain of the last quarter
UNEQUAL = 3.0  # largest importance, in units of 1/n, from which sizes are unequal
SKEWED = 2.0  # largest share of a label on a client, in units of that of all data

# Information that a user may or may not have, by the needs that it allows.
ALLOWS = {
    "delays": frozenset({"delays"}),
    "losses": frozenset({"losses", "batch_losses", "work_losses"}),
    "updates": frozenset({"updates", "update_norms", "bias_updates", "gradients", "heterogeneity"}),
}
# Datasets that share a generator or images, and so are no independent evidence.
FAMILIES = {
    "bench_synthetic_00": "synthetic",
    "bench_synthetic_11": "synthetic",
    "bench_synthetic_half": "synthetic",
    "bench_synthetic_iid": "synthetic",
    "bench_digit": "mnist",
    "bench_writer": "mnist",
}
FEWEST_SETS = 3  # datasets on which a rule can be chosen without the one that it is judged on
NEVER = "full"  # trains everybody: no choice of clients


def bench_sets(summaries: Summaries, away: bool = False) -> list[str]:
    """Name the benchmark's datasets with runs and tuning; those where clients come and go apart."""
    return [
        name
        for name in summaries
        if name.startswith(BENCH) and TUNING + name in summaries and ("away" in name) == away
    ]


def scored(evaluation: Summary, tuning: Summary, which: str) -> pd.DataFrame:
    """Return courses of the runs at each sampler's best trial, or at its defaults.

    Parameters
    ----------
    which : {"tuned", "default"}
    """
    course = courses(evaluation)
    if which == DEFAULT:
        return course[course["case"] == DEFAULT]
    grid = grid_scores(tuning)
    best = grid[grid["chosen"]].set_index("sampler")["case"]
    return course[course["case"] == course["sampler"].map(best)]


@dataclass(frozen=True)
class Goals:
    """What MD reaches on a dataset: score of the first model, of the end, and the last gain."""

    start: float
    final: float
    gain: float

    def target(self, name: str) -> float:
        """Return a target's score."""
        return self.start + TARGETS[name] * (self.final - self.start)


def goals(course: pd.DataFrame) -> Goals:
    """Return the goals that MD's runs set."""
    reference = course[course["sampler"] == REFERENCE]
    quarter = np.ceil(4 * reference["at"] / reference["at"].max())
    means = reference.groupby(quarter)["score"].mean()
    return Goals(float(means[0]), float(means[4]), float(means[4] - means[3]))


def converged(name: str, goal: Goals) -> bool:
    """Whether MD's last quarter gains less than :data:`CONVERGED` on a dataset."""
    return goal.gain < CONVERGED["test_loss" if "quadratic" in name else "accuracy"]


def costs(course: pd.DataFrame, goal: Goals) -> pd.DataFrame:
    """Return what each run cost until it met each target.

    Returns
    -------
    DataFrame
        Columns ``sampler``, ``seed``, ``target``, ``met``, and MEASURES.
    """
    run, measures = ["sampler", "seed"], list(MEASURES)
    missed = course.groupby(run)[measures].max() * PENALTY
    parts = []
    for name in TARGETS:
        after = course[course["smooth"] >= goal.target(name)]
        spent = after.drop_duplicates(run).set_index(run)[measures].reindex(missed.index)
        met = spent["rounds"].notna()
        parts.append(spent.where(met, missed, axis=0).assign(target=name, met=met))
    table = pd.concat(parts).sort_index(kind="stable").reset_index()
    return table[[*run, "target", "met", *measures]]


def by_seed(table: pd.DataFrame, measure: str, samplers: Sequence[str]) -> np.ndarray:
    """Return costs, shape (targets, samplers, seeds); NaN for a sampler that was not run."""
    table = table[table["sampler"].isin(samplers)]
    axes = [list(TARGETS), list(samplers), sorted(table["seed"].unique())]
    places = [
        pd.Index(names).get_indexer(table[column])
        for names, column in zip(axes, ("target", "sampler", "seed"), strict=True)
    ]
    by_seed = np.full([len(names) for names in axes], np.nan)
    by_seed[tuple(places)] = table[measure]
    return by_seed


def overall(costs_by_seed: np.ndarray) -> np.ndarray:
    """Average over seeds, then geometrically over targets, (targets, samplers, ..., seeds)."""
    mean: np.ndarray = np.exp(np.log(costs_by_seed.mean(-1)).mean(0))
    return mean


def needs(summaries: Summaries) -> dict[str, frozenset[str]]:
    """Return the information that each sampler needs, with the settings it was run with."""
    records = {
        str(name): record
        for summary in summaries.values()
        for name, record in summary.settings["samplers"].items()
    }
    return {name: check(Scheme, record, "").needs for name, record in records.items()}


def allowed(sampler: str, needed: frozenset[str], known: frozenset[str]) -> bool:
    """Whether a server that has some information (keys of ALLOWS) can use a sampler."""
    has = frozenset().union(*(ALLOWS[name] for name in known))
    return sampler != NEVER and needed <= has


def stays(sampler: str) -> bool:
    """Whether a sampler works only if all clients are always there."""
    member = Scheme.members().get(sampler)
    return member is None or not member.intermittent


def facts(folder: Path) -> pd.DataFrame:
    """Return the answers of each dataset: ``unequal`` and ``skewed``, by set."""
    table = pd.read_csv(folder / "datasets.csv").set_index("set")
    return pd.DataFrame(
        {"unequal": table["largest"] >= UNEQUAL, "skewed": table["skew"].fillna(0) >= SKEWED}
    )


def learn(table: pd.DataFrame, answers: pd.DataFrame, like: pd.Series) -> str:
    """Name the sampler with the least geometric mean cost on the datasets with the same answers.

    Parameters
    ----------
    table : DataFrame
        Logarithms of costs in units of MD's: rows are datasets, columns samplers.
    answers : DataFrame
        Of the same datasets.
    like : Series
        The answers asked for; if no dataset has them, all datasets count.
    """
    same = (answers.loc[table.index] == like).all(axis=1)
    part = table[same] if same.any() else table
    return str(part.mean().idxmin())


def choices(table: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Name the samplers that two rules take on each dataset, without having seen it.

    Parameters
    ----------
    table, answers
        As in :func:`learn`; all of `table`'s samplers ran on all of its datasets.

    Returns
    -------
    DataFrame
        Rows are datasets; columns ``map``, and ``always``, the best single sampler of the others.
    """
    names = {}
    for name in table.index:
        others = table.drop(index=name)
        names[name] = {
            "map": learn(others, answers, answers.loc[name]),
            "always": str(others.mean().idxmin()),
        }
    return pd.DataFrame(names).T


def regrets(table: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Return regrets of rules that never saw the dataset that they are judged on.

    Parameters
    ----------
    table, answers
        As in :func:`choices`.

    Returns
    -------
    DataFrame
        Rows are datasets; columns those of :func:`choices`, and the names of samplers, for always
        taking that one.  A regret is the cost of the sampler taken, divided by that of the best
        one.
    """
    named = choices(table, answers)
    rows, names = np.arange(len(table)), list(table)
    taken = {
        rule: table.to_numpy()[rows, [names.index(name) for name in named[rule]]] for rule in named
    }
    costs_taken = pd.DataFrame(taken, table.index).join(table)
    return costs_taken.sub(table.min(axis=1), axis=0).map(np.exp)


def nested_regrets(
    table: pd.DataFrame,
    answers: pd.DataFrame,
    rules: Mapping[str, str],
    families: Mapping[str, str] = MappingProxyType({}),
) -> pd.Series:
    """Return regrets of the best rule, if the rule, too, is chosen without the dataset.

    On each dataset the rule is taken that has the smallest mean regret on the others, each left out
    in turn.

    Parameters
    ----------
    table, answers
        As in :func:`learn`.
    rules : mapping
        By rule, ``"map"``, ``"always"``, or a column of `table`, as :func:`regrets` names them.
    families : mapping
        Families of related datasets, such as :data:`FAMILIES`, which are left out together.

    Returns
    -------
    Series
        By dataset; NaN if there are fewer than three: then no rule can be chosen on the others.
    """
    if len(table) < FEWEST_SETS:
        return pd.Series(np.nan, table.index)
    values, names = table.to_numpy(), list(table)
    family = np.array([families.get(name, name) for name in table.index])
    known = answers.loc[table.index].to_numpy()
    same = (known[:, None] == known[None]).all(-1)
    fixed = [names.index(column) for column in rules.values() if column in names]

    def taken(at: int, rows: np.ndarray) -> np.ndarray:
        """Return each rule's regret on a dataset, learned from some rows."""
        like = rows & same[at]
        by_map = values[like if like.any() else rows].mean(0).argmin()
        places = [by_map, values[rows].mean(0).argmin(), *fixed]
        regret: np.ndarray = np.exp(values[at, places] - values[at].min())
        return regret

    found = []
    for at in range(len(table)):
        others = family != family[at]
        inner = [
            taken(int(each), others & (family != family[each])) for each in np.flatnonzero(others)
        ]
        found.append(taken(at, others)[np.mean(inner, axis=0).argmin()])
    return pd.Series(found, table.index)


def relative(costs_by_set: Mapping[str, pd.DataFrame], measure: str) -> pd.DataFrame:
    """Return logarithms of costs in units of MD's: rows are datasets, columns samplers."""
    samplers = sorted({str(name) for table in costs_by_set.values() for name in table["sampler"]})
    rows = {}
    for name, table in costs_by_set.items():
        cost = pd.Series(overall(by_seed(table, measure, samplers)), samplers)
        rows[name] = np.log(cost / cost[REFERENCE])
    return pd.DataFrame(rows).T
