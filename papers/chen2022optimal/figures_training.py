"""Figures 1 to 4 of Chen et al. 2022, their counterparts on other data, and tuned local steps.

Training curves show accuracy and loss against rounds and against bits sent.
"""

from collections.abc import Iterator
from functools import partial
from math import inf
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedsampling.base.text import show
from fedsampling.evidence.summaries import BOUNDS, FEWEST_SEEDS
from fedsampling.evidence.verdicts import Finding
from fedsampling.experiments.papers import Paper, judge_function
from fedsampling.report.drawing.artefacts import (
    Alternative,
    Artefact,
    Summaries,
    by_reason,
    tabulate,
    with_margin,
)
from fedsampling.report.drawing.curves import band, divergences
from fedsampling.report.drawing.style import BLUE, legend_below, panels, printed_point

from . import claims
from .runs import BITS, LINES, chosen, course, mean_course, scores, set_number, title

LABELS = {
    "accuracy": "validation accuracy",
    "train_loss": "local training loss",
    "best": "best validation accuracy",
}
Across = Literal["at", "bits"]
ACROSS: tuple[Across, ...] = ("at", "bits")
BINS = 30  # of Figure 1, from 0 to the largest client of all datasets


def sets(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 1: a histogram of the samples per client for each dataset, of the first seed."""
    (summary,) = summaries.values()
    table = summary.select(metric="samples").sort_values(["case", "seed", "at"])
    cases, notes = sorted(table["case"].unique()), []
    first = table[table["seed"] == table["seed"].min()]
    edges = np.linspace(0, first["value"].max(), BINS + 1).tolist()
    with panels(1, len(cases), width=2.7 * len(cases), height=2.7) as (figure, axes):
        for panel, case in zip(axes, cases, strict=True):
            samples = first.loc[first["case"] == case, "value"].to_numpy(np.int64)
            panel.hist(samples, edges, color=BLUE, edgecolor="white", linewidth=0.4)
            name, number = title(summary, case), set_number(summary, case)
            panel.set(title=name, xlabel="samples per client", yscale="log")
            panel.set_ylim(bottom=0.7)
            panel.grid(False, axis="x")
            panel.yaxis.set_major_formatter("{x:,.0f}")
            top = paper.reported(f"clients_{number}")
            draws = table[table["case"] == case].groupby("seed")["value"]
            share = np.mean([held(draw.to_numpy(), top / 100) for _, draw in draws])
            notes.append(
                f"{name}: the largest {top:.0f} % of the clients hold {100 * share:.1f} % "
                f"(published: about {paper.reported(f'share_{number}'):.0f} %)"
            )
        axes[0].set_ylabel("number of clients")
    data = first.rename(columns={"case": "dataset", "at": "client", "value": "samples"})
    return Artefact(
        data[["dataset", "client", "samples"]].astype({"samples": int}).reset_index(drop=True),
        figure,
        alt="Histograms of the number of samples per client: many small clients, some large ones.",
        notes=(f"{'; '.join(notes)}.", "The number of clients is on a logarithmic scale."),
    )


def training(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the panels of Figures 2 to 4 for every case: a column for each of several cases."""
    (summary,) = summaries.values()
    n = len(summary.settings["cases"])
    columns, rows = max(n, 2), 2 if n == 1 else 4
    width, height = 3.4 * columns, 2.4 * rows + 0.6
    return _draw_training(
        summaries, paper, columns=columns, by_case=True, width=width, height=height
    )


def steps(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the score on the holdout against the local step η_l, one panel per dataset."""
    (summary,) = summaries.values()
    scored, picked = scores(summary), chosen(summary)
    keys = ["set", "sampler", "step"]
    grouped = scored.groupby(keys, observed=True)["accuracy"]
    table = grouped.agg(["mean", "std", "size"]).reset_index()
    table["se"] = (table.pop("std") / np.sqrt(table["size"])).where(table["size"] >= FEWEST_SEEDS)
    names = sorted(table["set"].unique())
    width = max(3.0 * len(names), 4.6)
    with panels(1, len(names), width, height=3.4) as (figure, axes):
        for panel, name in zip(axes, names, strict=True):
            for sampler, line in LINES.items():
                rows = table[(table["set"] == name) & (table["sampler"] == sampler)]
                if rows.empty:
                    continue
                panel.errorbar(
                    rows["step"], rows["mean"], rows["se"].fillna(0), fmt="o-", markersize=4,
                    capsize=2, color=line.colour, label=line.label,
                )  # fmt: skip
            panel.set_xscale("log", base=2)
            panel.set(title=name, xlabel=r"local step $\eta_l$")
        axes[0].set_ylabel("accuracy on the holdout")
        legend_below(figure, axes)
    data = table.merge(picked[keys].assign(chosen=True), on=keys, how="left")
    return Artefact(
        data.assign(chosen=data["chosen"].eq(True)),
        figure,
        alt="Accuracy on the holdout in the second half of the rounds, against the local step.",
        notes=(_best_steps(picked), *divergences(summary, LINES)),
    )


def held(samples: np.ndarray, top: float) -> float:
    """Return the share of all samples held by the largest fraction `top` of the clients."""
    ordered = np.sort(samples)[::-1]
    return float(ordered[: max(round(top * len(ordered)), 1)].sum() / ordered.sum())


def _draw_training(
    summaries: Summaries,
    paper: Paper,
    metrics: tuple[str, ...] = ("accuracy", "train_loss"),
    columns: int = 2,
    by_case: bool = False,
    **size: float,
) -> Artefact:
    """Draw metrics against rounds, then against bits, row by row; of one or of every case."""
    (summary,) = summaries.values()
    cases = list(summary.settings["cases"]) if by_case else ["base"]
    tables = {case: mean_course(course(summary, case)) for case in cases}
    views = [(across, metric, case) for across in ACROSS for metric in metrics for case in cases]
    with panels(len(views) // columns, columns, **size) as (figure, axes):
        for panel, (across, metric, case) in zip(axes, views, strict=True):
            _draw(panel, tables[case], metric, across)
            _draw_printed(panel, paper, metric, across, set_number(summary, case))
            if by_case:
                panel.set_title(title(summary, case))
        legend_below(figure, axes)
    data = pd.concat([table.assign(case=case) for case, table in tables.items()], ignore_index=True)
    names = ", ".join(LABELS[metric] for metric in metrics)
    return Artefact(
        data if by_case else data.drop(columns="case"),
        figure,
        f"{names[0].upper()}{names[1:]} against rounds and against bits sent, by sampler.",
        ("Lines are means over runs, bands standard errors.", *divergences(summary, LINES)),
    )


# Each artefact has one experiment, which ``paper.yaml`` names.
figure1 = figure1_writers = sets
figure2 = figure3 = figure4 = partial(_draw_training, width=8.0, height=5.8)
# the appendix's versions
figure2_best = figure3_best = figure4_best = partial(
    _draw_training, metrics=("best",), width=8.0, height=3.3
)
writers_training = digits_training = shakespeare = cifar100 = training
tuning = tuning_writers = steps


def _draw(axis: Axes, table: pd.DataFrame, metric: str, across: Across) -> None:
    """Draw the mean of a metric and its standard error for each sampler that has runs."""
    for sampler, line in LINES.items():
        rows = table[(table["sampler"] == sampler) & table[metric].notna()]
        rows = rows[rows["bits"] > 0] if across == "bits" else rows
        if rows.empty:
            continue
        x = rows["at"].to_numpy(np.float64) if across == "at" else rows["bits"].to_numpy() / BITS
        mean, error = rows[metric].to_numpy(), rows[f"{metric}_se"].fillna(0).to_numpy()
        dashes = "--" if line.variant else "-"
        axis.plot(x, mean, dashes, color=line.colour, label=line.label)
        if line.variant:
            continue
        ends = BOUNDS["loss" if metric == "train_loss" else "accuracy"]
        low, high = np.clip(mean - error, *ends), np.clip(mean + error, *ends)
        band(axis, x, low, high, line.label, line.colour)
    axis.set_ylabel(LABELS[metric])
    if across == "at":
        axis.set_xlabel("communication round")
    else:
        axis.set_xscale("log", base=2)
        axis.set_xlabel("bits sent by clients, in $10^8$")


def _draw_printed(
    axis: Axes, paper: Paper, metric: str, across: Across, dataset: int | None
) -> None:
    """Mark the accuracies that the paper prints for a number of bits on Dataset 1."""
    if dataset != 1 or across != "bits" or metric == "train_loss":
        return
    budget = paper.reported("budget")
    marks = {"accuracy": ("*", "paper: optimal"), "accuracy_of_others": ("v", "paper: others")}
    for name, (marker, label) in marks.items():
        height = paper.reported(name) / 100
        printed_point(axis, budget, height, label, marker=marker)


def _best_steps(picked: pd.DataFrame) -> str:
    parts = []
    for name, rows in picked.groupby("set"):
        steps = rows.set_index("sampler")["step"]
        texts = [f"{LINES[s].label} {show(float(steps[s]))}" for s in LINES if s in steps.index]
        parts.append(f"{name}: {', '.join(texts)}")
    return f"Best steps. {'; '.join(parts)}."


# Choices that could change the verdicts of Chen et al. 2022.


NARROWER = 0.005  # margin of c1, instead of 0.05
HALF = 0.5  # of the paper's budget


def alternatives(summaries: Summaries, paper: Paper) -> Artefact:
    """Judge c1 and c2 on all their data with other steps, margins, rounds and budgets."""
    varied = {"c1_writers": _of_order, "c2_writers": _of_budget, "c1": _of_order, "c2": _of_budget}
    judged: dict[str, Finding] = {}
    rows: list[Alternative] = []
    for name, vary in varied.items():
        spec = paper.claims[name]
        if summaries.keys() >= set(spec.experiments or paper.artefacts[spec.artefact].experiments):
            judged[name] = main = judge_function(paper, name)(summaries, spec, paper)
            rows += [
                Alternative(name, other.setting, other.verdict, "numbers on the claim's card")
                for other in main.readings
                if other.ours != main.ours
            ]
            rows += vary(name, summaries, paper)
    return tabulate(judged, rows)


def _of_order(name: str, summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Vary the margin, and the rounds that count."""
    yield by_reason(name, *with_margin(name, NARROWER, summaries, paper))
    choice = f"full − optimal over all rounds instead of the last {claims.LATE}"
    yield by_reason(name, choice, claims.c1(summaries, paper.claims[name], paper, late=inf))


def _of_budget(name: str, summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Vary the limit of the other samplers, and the budget."""
    spec = paper.claims[name]
    goal, limit = paper.reported("accuracy"), paper.reported("accuracy_of_others")
    choice = f"the other samplers below {goal:g} % instead of {limit:g} %"
    yield by_reason(name, choice, claims.c2(summaries, spec, paper, limit=goal / 100))
    budget = paper.reported("budget")
    choice = f"{HALF * budget:g}·10^8 bits instead of {budget:g}·10^8"
    yield by_reason(name, choice, claims.c2(summaries, spec, paper, budget=HALF * budget))
