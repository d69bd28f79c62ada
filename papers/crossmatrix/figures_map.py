"""The decision map: which sampler to take, by what is known, and the regret of the choice."""

from collections.abc import Mapping
from itertools import combinations, product

import numpy as np
import pandas as pd

from fedsampling.base.streams import stream
from fedsampling.evidence.numbers import listed, show
from fedsampling.evidence.statistics import RESAMPLES
from fedsampling.experiments.cross_matrix import MEASURES, REFERENCE
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from .bench import (
    ALLOWS,
    FAMILIES,
    FEWEST_SETS,
    allowed,
    by_seed,
    choices,
    facts,
    needs,
    nested_regrets,
    overall,
    regrets,
    relative,
    stays,
)
from .figures import label
from .figures_bench import TAILS, costs_by_set, once_run

STANDARD = "fedavg_normalised"  # FedAvg as most run it
RULES = {"map": "map", "always": "always", "md": REFERENCE, "fedavg": STANDARD}
CHOOSING_SEEDS = 2  # of five, that name the best sampler; the others measure it


@once_run
def bench_map(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate which sampler to take, by the answers to the questions, and its regret."""
    by_set = costs_by_set(summaries)
    if len({FAMILIES.get(name, name) for name in by_set}) < FEWEST_SETS:
        why = f"A map is learned from at least {FEWEST_SETS} datasets of different origin."
        return Artefact(pd.DataFrame({"scheme": []}), table=pd.DataFrame({"": [why]}), notes=(why,))
    answers, needed = facts(paper.folder), needs(summaries)
    rows = []
    for measure in MEASURES:
        logs = relative(by_set, measure).dropna(axis=1)
        for known in product((False, True), repeat=len(ALLOWS) + 1):
            away, info = known[0], dict(zip(ALLOWS, known[1:], strict=True))
            names = frozenset(name for name, yes in info.items() if yes)
            each = map(str, logs.columns)
            usable = [n for n in each if allowed(n, needed[n], names) and not (away and stays(n))]
            rows += [
                {"measure": measure, "away": away, **info, **row}
                for row in _cells(logs[usable], answers)
            ]
    table = pd.DataFrame(rows)
    table["label"] = table["scheme"].map(label)
    table["advice_label"] = table["advice"].map(label)
    return Artefact(
        table, table=_shown_map(table), notes=_regret_notes(table, by_set, answers, needed)
    )


def _cells(logs: pd.DataFrame, answers: pd.DataFrame) -> list[dict[str, object]]:
    """Return a row for each answer about sizes and labels, with the regrets of all rules."""
    regret = regrets(logs, answers)
    always = str(logs.mean().idxmin())
    mean = {f"mean_{rule}": float(regret[column].mean()) for rule, column in RULES.items()}
    worst = {f"worst_{rule}": float(regret[column].max()) for rule, column in RULES.items()}
    rule = min(RULES, key=lambda each: mean[f"mean_{each}"])
    honest = nested_regrets(logs, answers, RULES)
    mean["mean_nested"], worst["worst_nested"] = float(honest.mean()), float(honest.max())
    mean |= _unseen_speed_up(regret[REFERENCE], honest, "unseen")
    apart = nested_regrets(logs, answers, RULES, FAMILIES)
    mean |= _unseen_speed_up(regret[REFERENCE], apart, "unseen_family")
    rows = []
    known = answers.loc[logs.index]
    for unequal, skewed in product((False, True), repeat=2):
        same = (known["unequal"] == unequal) & (known["skewed"] == skewed)
        part = logs[same] if same.any() else logs
        scheme = str(part.mean().idxmin())
        advice = {"map": scheme, "always": always, "md": REFERENCE, "fedavg": STANDARD}[rule]
        rows.append(
            {
                "unequal": unequal,
                "skewed": skewed,
                "scheme": scheme,
                "always": always,
                "advice": advice,
                "rule": rule,
                "speed_up": float(np.exp(-part[advice].mean())),
                "sets": int(same.sum()),
                **mean,
                **worst,
            }
        )
    return rows


def _unseen_speed_up(md: pd.Series, rule: pd.Series, name: str) -> dict[str, float]:
    """Return the speed-up over MD of a rule on datasets that it never saw, from their regrets.

    Datasets of a family count once.  The interval is over families.
    """
    family = [FAMILIES.get(str(each), str(each)) for each in md.index]
    logs = (np.log(md) - np.log(rule)).groupby(family).mean().to_numpy()
    picked = stream(0, "crossmatrix map").integers(len(logs), size=(RESAMPLES, len(logs)))
    low, high = np.exp(np.quantile(logs[picked].mean(1), TAILS))
    return {
        name: float(np.exp(logs.mean())),
        f"{name}_low": float(low),
        f"{name}_high": float(high),
    }


def _shown_map(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows for clients that are always there, without what follows from others."""
    part = table[~table["away"] & ~table["unequal"] & ~table["skewed"]]
    yes = part[list(ALLOWS)].replace({True: "known", False: "–"})
    numbers = part[
        ["mean_map", "mean_always", "mean_md", "mean_fedavg", "mean_nested", "worst_always"]
    ]
    unseen = part.apply(
        lambda row: (
            f"{show(row['unseen_family'])} [{show(row['unseen_family_low'])}, "
            f"{show(row['unseen_family_high'])}]"
        ),
        axis=1,
    )
    return pd.concat(
        [
            part[["measure"]],
            yes,
            part[["always"]].map(label).rename(columns={"always": "best single sampler"}),
            numbers.map(show).rename(columns=lambda name: f"regret, {name.replace('_', ' ')}"),
            unseen.rename("speed-up over MD on a new family"),
        ],
        axis=1,
    ).reset_index(drop=True)


def _regret_notes(
    table: pd.DataFrame,
    by_set: Mapping[str, pd.DataFrame],
    answers: pd.DataFrame,
    needed: Mapping[str, frozenset[str]],
) -> tuple[str, ...]:
    """Say, for all information, what each rule regrets, and how optimistic these numbers are."""
    notes = [_worth(table)]
    all_known = table["delays"] & table["losses"] & table["updates"] & ~table["away"]
    for measure in MEASURES:
        row = table[all_known & (table["measure"] == measure)].iloc[0]
        rule = "the map" if row["rule"] == "map" else f"always {label(row['advice'])}"
        notes.append(
            f"In {measure}, everything known: mean regret (worst) of the map "
            f"{show(row['mean_map'])} ({show(row['worst_map'])}), of always the best sampler of "
            f"the other datasets {show(row['mean_always'])} ({show(row['worst_always'])}), of "
            f"always MD {show(row['mean_md'])} ({show(row['worst_md'])}), of always FedAvg "
            f"{show(row['mean_fedavg'])} ({show(row['worst_fedavg'])}). Advised: {rule}."
        )
        fair = unseen_regrets(by_set, measure, answers, needed)
        notes.append(
            f"In {measure}, everything known, if the rule, too, is chosen without the dataset: "
            f"{show(row['mean_nested'])} ({show(row['worst_nested'])}). Against the best sampler "
            f"of {CHOOSING_SEEDS} seeds, measured on the others: the map {show(fair['map'])}, "
            f"always the best {show(fair['always'])}, MD {show(fair['md'])}, FedAvg "
            f"{show(fair['fedavg'])}."
        )
    return tuple(notes)


def _worth(table: pd.DataFrame) -> str:
    """Say in which situations the advice beats always MD on datasets of other families."""
    part = table[~table["away"] & ~table["unequal"] & ~table["skewed"]]
    better = part[part["unseen_family_low"] > 1]
    named = [
        f"{row['measure']} with {listed([name for name in ALLOWS if row[name]] or ['nothing'])} "
        f"known ({show(row['unseen_family'])})"
        for _, row in better.iterrows()
    ]
    return (
        f"Speed-up of the advice over always MD on a family of datasets that it never saw: the "
        f"interval over families is above 1 in {len(better)} of {len(part)} situations: "
        f"{'; '.join(named) or 'none'}."
    )


def unseen_regrets(
    by_set: Mapping[str, pd.DataFrame],
    measure: str,
    answers: pd.DataFrame,
    needed: Mapping[str, frozenset[str]],
) -> dict[str, float]:
    """Return the rules' mean regrets against a best sampler that was chosen on other seeds.

    The best of many samplers in hindsight owes part of its lead to its seeds, so that regrets
    against it are too large for every rule.  Everything is known to the server.
    """
    logs = relative(by_set, measure).dropna(axis=1)
    usable = [str(n) for n in logs if allowed(str(n), needed[str(n)], frozenset(ALLOWS))]
    named = choices(logs[usable], answers).assign(md=REFERENCE, fedavg=STANDARD)
    ratios: dict[str, list[float]] = {rule: [] for rule in RULES}
    for name, table in by_set.items():
        parts = by_seed(table, measure, usable)
        seeds = range(parts.shape[-1])
        for chosen in combinations(seeds, CHOOSING_SEEDS):
            rest = [seed for seed in seeds if seed not in chosen]
            best = overall(parts[..., list(chosen)]).argmin()
            cost = overall(parts[..., rest])
            for rule in RULES:
                own = cost[usable.index(str(named.loc[name, rule]))]
                ratios[rule].append(float(own / cost[best]))
    return {rule: float(np.mean(values)) for rule, values in ratios.items()}
