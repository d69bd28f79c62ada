"""The decision map and its regret as a table; :mod:`.decision_map` computes them."""

from collections.abc import Mapping

import pandas as pd

from fedsampling.evidence.numbers import listed, show, show_interval
from fedsampling.experiments.cross_matrix import MEASURES
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from .bench import costs_by_dataset, family_of, log_relative_costs
from .decision_map import (
    CHOOSING_SEEDS,
    INFORMATION,
    MIN_DATASETS,
    dataset_answers,
    decision_map,
    information_needs,
    is_usable,
    regrets_against_other_seeds,
)
from .presentation import label, requires_benchmark


@requires_benchmark
def bench_map(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate which sampler to use, by the answers to the questions, and its regret."""
    costs = costs_by_dataset(summaries)
    if len({family_of(name) for name in costs}) < MIN_DATASETS:
        reason = f"A map is learned from at least {MIN_DATASETS} datasets of different origin."
        nothing = pd.DataFrame({"scheme": []})
        return Artefact(nothing, table=pd.DataFrame({"": [reason]}), notes=(reason,))
    answers, needs = dataset_answers(paper.folder), information_needs(summaries)
    table = decision_map(costs, answers, needs)
    table["label"] = table["scheme"].map(label)
    table["advice_label"] = table["advice"].map(label)
    return Artefact(
        table,
        table=_shown_map(table),
        notes=(_where_advice_beats_md(table), *_regret_notes(table, costs, answers, needs)),
    )


def _shown_map(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each measure and information, for clients that are always available."""
    part = table[~table["away"] & ~table["unequal"] & ~table["skewed"]]
    information = part[list(INFORMATION)].replace({True: "known", False: "–"})
    numbers = part[
        ["mean_map", "mean_always", "mean_md", "mean_fedavg", "mean_nested", "worst_always"]
    ]
    ends = part[["unseen_family", "unseen_family_low", "unseen_family_high"]].to_numpy()
    unseen = pd.Series([show_interval(*numbers) for numbers in ends], part.index)
    return pd.concat(
        [
            part[["measure"]],
            information,
            part[["always"]].map(label).rename(columns={"always": "best single sampler"}),
            numbers.map(show).rename(columns=lambda name: f"regret, {name.replace('_', ' ')}"),
            unseen.rename("speed-up over MD on a new family"),
        ],
        axis=1,
    ).reset_index(drop=True)


def _regret_notes(
    table: pd.DataFrame,
    costs: Mapping[str, pd.DataFrame],
    answers: pd.DataFrame,
    needs: Mapping[str, frozenset[str]],
) -> list[str]:
    """Write the regret of each rule if everything is known, and how optimistic it is."""
    notes = []
    everything = dict.fromkeys(INFORMATION, True)
    is_all_known = table[list(INFORMATION)].all(axis=1) & ~table["away"]
    for measure in MEASURES:
        row = table[is_all_known & (table["measure"] == measure)].iloc[0]
        rule = "the map" if row["rule"] == "map" else f"always {label(row['advice'])}"
        notes.append(
            f"In {measure}, everything known: mean regret (worst) of the map "
            f"{show(row['mean_map'])} ({show(row['worst_map'])}), of always the best sampler of "
            f"the other datasets {show(row['mean_always'])} ({show(row['worst_always'])}), of "
            f"always MD {show(row['mean_md'])} ({show(row['worst_md'])}), of always FedAvg "
            f"{show(row['mean_fedavg'])} ({show(row['worst_fedavg'])}). Advised: {rule}."
        )
        samplers = map(str, log_relative_costs(costs, measure).dropna(axis=1))
        usable = [name for name in samplers if is_usable(name, needs[name], everything)]
        regret = regrets_against_other_seeds(costs, answers, measure, usable)
        notes.append(
            f"In {measure}, everything known, if the rule, too, is chosen without the dataset: "
            f"{show(row['mean_nested'])} ({show(row['worst_nested'])}). Against the best sampler "
            f"of {CHOOSING_SEEDS} seeds, measured on the others: the map {show(regret['map'])}, "
            f"always the best {show(regret['always'])}, MD {show(regret['md'])}, FedAvg "
            f"{show(regret['fedavg'])}."
        )
    return notes


def _where_advice_beats_md(table: pd.DataFrame) -> str:
    """List the situations in which the advice beats always MD on a new family of datasets."""
    part = table[~table["away"] & ~table["unequal"] & ~table["skewed"]]
    better = part[part["unseen_family_low"] > 1]
    texts = []
    for _, row in better.iterrows():
        information = listed([name for name in INFORMATION if row[name]]) or "nothing"
        texts.append(f"{row['measure']} with {information} known ({show(row['unseen_family'])})")
    return (
        f"Speed-up of the advice over always MD on a family of datasets that it never saw: the "
        f"interval over families is above 1 in {len(better)} of {len(part)} situations: "
        f"{'; '.join(texts) or 'none'}."
    )
