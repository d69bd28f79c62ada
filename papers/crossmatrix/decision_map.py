"""The decision map: which sampler to use in a situation, and the regret of following the advice.

A situation is a measure of cost, the information that the server has, whether clients come and go,
and two answers about the data: whether clients have unequal sizes and skewed labels.  In every
situation each of four rules names a sampler among the usable ones (:func:`is_usable`):

- ``map``: the cheapest on datasets with the same answers;
- ``always``: the cheapest on all datasets;
- ``md`` and ``fedavg``: always MD sampling, always FedAvg.

The regret of a rule on a dataset is the cost of the sampler that it names, divided by the cost of
the best usable one.  The rules learn from the other datasets only (:func:`regrets`).  The advice
follows the rule with the smallest mean regret (:func:`advice_by_answers`).  That choice has seen
all datasets; :func:`nested_regrets` chooses the rule, too, without the dataset.  If this is no
better than always MD sampling, the advice is MD sampling, which needs no learning.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsampling.base.records import check
from fedsampling.base.streams import stream
from fedsampling.experiments.cross_matrix import FULL, MEASURES, REFERENCE
from fedsampling.report.drawing.artefacts import Summaries
from fedsampling.samplers.scheme import Scheme

from .bench import (
    cost_array,
    family_of,
    interval_over_datasets,
    log_relative_costs,
    mean_costs,
)

UNEQUAL_FROM = 3.0  # largest importance of a client, in units of 1/n
SKEWED_FROM = 2.0  # largest share of a label on a client, in units of its share in all data
MIN_DATASETS = 3  # fewer leave no dataset to learn a rule from and another one to choose it on
CHOOSING_SEEDS = 2  # of five, which choose the best sampler; the others measure it

# Information that a server may have, and the samplers' needs that it satisfies.
INFORMATION = {
    "delays": frozenset({"delays"}),
    "losses": frozenset({"losses", "batch_losses", "work_losses"}),
    "updates": frozenset({"updates", "update_norms", "bias_updates", "gradients", "heterogeneity"}),
}
# Rules that always name the same sampler; FedAvg as most run it.
FIXED_RULES = {"md": REFERENCE, "fedavg": "fedavg_normalised"}
RULES = ("map", "always", *FIXED_RULES)


def decision_map(
    costs: Mapping[str, pd.DataFrame],
    answers: pd.DataFrame,
    needs: Mapping[str, frozenset[str]],
) -> pd.DataFrame:
    """Return the advice and its regret in every situation.

    Parameters
    ----------
    costs : mapping of str to DataFrame
        By dataset, from :func:`~.bench.costs_to_targets`.
    answers : DataFrame
        From :func:`dataset_answers`.
    needs : mapping of str to frozenset of str
        From :func:`information_needs`.

    Returns
    -------
    DataFrame
        A row for each situation: ``measure``, ``away``, a column for each of INFORMATION, and those
        of :func:`advice_by_answers`.
    """
    rows = []
    for measure in MEASURES:
        log_costs = log_relative_costs(costs, measure).dropna(axis=1)
        for away, *is_known in product((False, True), repeat=1 + len(INFORMATION)):
            information = dict(zip(INFORMATION, is_known, strict=True))
            usable = [
                sampler
                for sampler in map(str, log_costs)
                if is_usable(sampler, needs[sampler], information)
                and not (away and needs_all_clients(sampler))
            ]
            rows += [
                {"measure": measure, "away": away, **information, **row}
                for row in advice_by_answers(log_costs[usable], answers)
            ]
    return pd.DataFrame(rows)


def information_needs(summaries: Summaries) -> dict[str, frozenset[str]]:
    """Return the information that each sampler needs, with the settings it was run with."""
    records = {
        str(name): record
        for summary in summaries.values()
        for name, record in summary.settings["samplers"].items()
    }
    return {name: check(Scheme, record, "").needs for name, record in records.items()}


def is_usable(sampler: str, needs: frozenset[str], information: Mapping[str, bool]) -> bool:
    """Whether a sampler selects clients, and a server with some information can use it."""
    satisfied = {need for name in information if information[name] for need in INFORMATION[name]}
    return sampler != FULL and needs <= satisfied


def needs_all_clients(sampler: str) -> bool:
    """Whether a sampler works only if all clients are always available."""
    member = Scheme.members().get(sampler)
    return member is None or not member.intermittent


def dataset_answers(folder: Path) -> pd.DataFrame:
    """Read the answers about each dataset, its row: columns ``unequal`` and ``skewed``."""
    table = pd.read_csv(folder / "datasets.csv").set_index("set")
    return pd.DataFrame(
        {
            "unequal": table["largest"] >= UNEQUAL_FROM,
            "skewed": table["skew"].fillna(0) >= SKEWED_FROM,
        }
    )


def advice_by_answers(log_costs: pd.DataFrame, answers: pd.DataFrame) -> list[dict[str, object]]:
    """Return the advice for each pair of answers about sizes and labels.

    Parameters
    ----------
    log_costs : DataFrame
        Logarithms of costs in units of MD's; rows are datasets, columns the usable samplers, all of
        which were run on all datasets.
    answers : DataFrame
        Of these datasets and possibly others.

    Returns
    -------
    list of dict
        ``unequal`` and ``skewed``, the answers; ``scheme``, named by the map; ``always``, named by
        that rule; ``rule``, which the advice follows; ``advice``, the sampler that it
        names, and its ``speed_up`` on the ``sets`` datasets with these answers (on all if there are
        none).  Equal in all rows: ``mean_<rule>`` and ``worst_<rule>``, the regrets;
        ``mean_nested`` and ``worst_nested``; and the speed-up over MD on a dataset (``unseen``) or
        on a family of datasets (``unseen_family``) that played no part, with its interval.
    """
    by_rule = regrets(log_costs, answers)
    nested = nested_regrets(log_costs, answers)
    nested_by_family = nested_regrets(log_costs, answers, family_of)
    learned = nested.mean() < by_rule["md"].mean() or nested.isna().any()
    rule = str(by_rule.mean().idxmin()) if learned else "md"
    summary = {
        **{f"mean_{name}": float(by_rule[name].mean()) for name in RULES},
        "mean_nested": float(nested.mean()),
        **speed_up_on_families(by_rule["md"], nested, "unseen"),
        **speed_up_on_families(by_rule["md"], nested_by_family, "unseen_family"),
        **{f"worst_{name}": float(by_rule[name].max()) for name in RULES},
        "worst_nested": float(nested.max()),
    }
    always = str(log_costs.mean().idxmin())
    answers = answers.loc[log_costs.index]
    rows = []
    for unequal, skewed in product((False, True), repeat=2):
        same_answers = (answers["unequal"] == unequal) & (answers["skewed"] == skewed)
        relevant = log_costs[same_answers] if same_answers.any() else log_costs
        by_map = str(relevant.mean().idxmin())
        advice = {"map": by_map, "always": always, **FIXED_RULES}[rule]
        rows.append(
            {
                "unequal": unequal,
                "skewed": skewed,
                "scheme": by_map,
                "always": always,
                "advice": advice,
                "rule": rule,
                "speed_up": float(np.exp(-relevant[advice].mean())),
                "sets": int(same_answers.sum()),
                **summary,
            }
        )
    return rows


class _Rules:
    """The samplers that the rules name for a dataset, learned from some of the other datasets.

    Datasets and samplers are numbered as the rows and columns of the costs.
    """

    def __init__(self, log_costs: pd.DataFrame, answers: pd.DataFrame) -> None:
        self._log_costs = log_costs.to_numpy()
        answer_rows = answers.loc[log_costs.index].to_numpy()
        self._same_answers = (answer_rows[:, None] == answer_rows).all(-1)
        self._fixed = [list(log_costs).index(sampler) for sampler in FIXED_RULES.values()]

    def samplers(self, dataset: int, learned_from: NDArray[np.bool_]) -> list[int]:
        """Return the sampler that each of RULES names.

        If no dataset that the map learns from has the same answers, it learns from all of these.
        """
        matching = learned_from & self._same_answers[dataset]
        by_map = self._log_costs[matching if matching.any() else learned_from].mean(0).argmin()
        always = self._log_costs[learned_from].mean(0).argmin()
        return [int(by_map), int(always), *self._fixed]

    def regrets(self, dataset: int, learned_from: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the regret of each of RULES."""
        cost = self._log_costs[dataset]
        regret: NDArray[np.float64] = np.exp(
            cost[self.samplers(dataset, learned_from)] - cost.min()
        )
        return regret


def named_samplers(log_costs: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Return the samplers that RULES (columns) name for each dataset without having seen it."""
    rules, other_datasets = _Rules(log_costs, answers), ~np.eye(len(log_costs), dtype=bool)
    choices = [
        rules.samplers(dataset, other_datasets[dataset]) for dataset in range(len(log_costs))
    ]
    return pd.DataFrame(log_costs.columns.to_numpy()[choices], log_costs.index, RULES)


def regrets(log_costs: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Return the regrets of RULES (columns) on each dataset, learned without the dataset."""
    rules, other_datasets = _Rules(log_costs, answers), ~np.eye(len(log_costs), dtype=bool)
    rows = [rules.regrets(dataset, other_datasets[dataset]) for dataset in range(len(log_costs))]
    return pd.DataFrame(rows, log_costs.index, RULES)


def nested_regrets(
    log_costs: pd.DataFrame,
    answers: pd.DataFrame,
    family: Callable[[str], str] = lambda dataset: dataset,
) -> pd.Series:
    """Return the regret of the best rule on each dataset, if the rule is chosen without it, too.

    On each dataset the rule is followed that has the smallest mean regret on the others, each of
    which is left out in turn when the rule learns.

    Parameters
    ----------
    family : callable
        Returns the family of a dataset.  Datasets of a family are left out together.

    Returns
    -------
    Series
        By dataset; NaN for fewer than :data:`MIN_DATASETS`.
    """
    if len(log_costs) < MIN_DATASETS:
        return pd.Series(np.nan, log_costs.index)
    rules = _Rules(log_costs, answers)
    families = np.array([family(str(name)) for name in log_costs.index])
    nested = []
    for dataset in range(len(log_costs)):
        other_datasets = families != families[dataset]
        regrets_on_others = [
            rules.regrets(int(inner), other_datasets & (families != families[inner]))
            for inner in np.flatnonzero(other_datasets)
        ]
        best_rule = np.mean(regrets_on_others, axis=0).argmin()
        nested.append(rules.regrets(dataset, other_datasets)[best_rule])
    return pd.Series(nested, log_costs.index)


def speed_up_on_families(regret_of_md: pd.Series, regret: pd.Series, name: str) -> dict[str, float]:
    """Return a rule's speed-up over MD, from their regrets, and its interval over families.

    Datasets of a family count once.  The keys are `name`, ``<name>_low`` and ``<name>_high``.
    """
    logs = np.log(regret_of_md) - np.log(regret)
    by_family = logs.groupby([family_of(str(dataset)) for dataset in logs.index]).mean().to_numpy()
    low, high = np.exp(interval_over_datasets(by_family, stream(0, "crossmatrix map")))
    return {
        name: float(np.exp(by_family.mean())),
        f"{name}_low": float(low),
        f"{name}_high": float(high),
    }


def regrets_against_other_seeds(
    costs: Mapping[str, pd.DataFrame], answers: pd.DataFrame, measure: str, usable: Sequence[str]
) -> dict[str, float]:
    """Return the mean regret of each rule against a best sampler that was chosen on other seeds.

    The best of many samplers in hindsight owes part of its lead to its seeds, so regrets against it
    are too large for every rule.
    """
    log_costs = log_relative_costs(costs, measure)[list(usable)]
    choices = named_samplers(log_costs, answers)
    ratios: dict[str, list[float]] = {rule: [] for rule in RULES}
    for dataset, table in costs.items():
        array = cost_array(table, measure, usable)
        seeds = range(array.shape[-1])
        for choosing in combinations(seeds, CHOOSING_SEEDS):
            measuring = [seed for seed in seeds if seed not in choosing]
            best = mean_costs(array[..., list(choosing)]).argmin()
            cost = mean_costs(array[..., measuring])
            for rule in RULES:
                sampler = usable.index(str(choices.loc[dataset, rule]))
                ratios[rule].append(float(cost[sampler] / cost[best]))
    return {rule: float(np.mean(values)) for rule, values in ratios.items()}
