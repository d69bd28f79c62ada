"""Settings of fraboni2022general's training runs: the choice of clients, and learning rates.

``importance`` shows how unequal the clients' data are, over choices of clients; ``choices`` how
much the comparison of MD and Uniform sampling depends on the choice; ``learning_rate`` the grids.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedsampling.base.text import show
from fedsampling.evidence.statistics import compare, difference
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.curves import (
    divergences,
    grid_ticks,
    losses_over_grid,
    only,
    over_grid,
    with_interval,
)
from fedsampling.report.drawing.style import (
    BLUE,
    LABEL,
    VERMILION,
    panels,
    printed_point,
)

from .client_draws import deviations, our_choice
from .figures_training import GAP, IMPORTANCES
from .losses import HALF, SCHEMES, SHOWN, comparable, departures, was_run

LONG_INTERVAL = 3  # times the median length; longer ones are clipped
GRIDS = {"learning_rate": "Shakespeare", "cifar_learning_rate": "CIFAR-10"}
FULL = SCHEMES["full"]


def importance(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw how far the clients' importances spread, for many random choices of clients."""
    summary = summaries["clients"]
    our_seed, spread = our_choice(paper), deviations(summary)
    by_n = {n: spread[spread["n"] == n].set_index("seed")["sd"] for n in HALF}
    with panels(1, 1, width=5.2, height=3.6) as (figure, (axis,)):
        for column, (n, sd) in enumerate(by_n.items()):
            axis.plot(np.full(len(sd), column), n * sd, "_", color=BLUE, markersize=14)
            axis.plot(column, n * sd.get(our_seed, np.nan), "o", color=VERMILION)
        for n in (10, 80):
            reported = paper.reported(f"deviation_{n}")
            printed_point(axis, list(HALF).index(n) + 0.2, n * reported, f"_{LABEL}")
        axis.plot([], [], "_", color=BLUE, label="choices of clients")
        axis.plot([], [], "o", color=VERMILION, label="that of the training runs")
        printed_point(axis, np.nan, np.nan)  # for the legend
        axis.set_xticks(range(len(HALF)), [f"n = {n}" for n in HALF])
        axis.set(xlim=(-0.5, 3.5), ylim=(0, 1.4 * axis.get_ylim()[1]))
        axis.set_ylabel("$n$ × standard deviation of $p_i$")
        axis.legend(loc="upper right")
    ranges = []
    for n, sd in by_n.items():
        others = sd.drop(our_seed, errors="ignore")
        low, high = (show(float(end), 2) for end in others.quantile([0.05, 0.95]))
        own = show(float(sd.get(our_seed, np.nan)), 2)
        ranges.append(f"n = {n} {low} to {high} (ours {own})")
    return Artefact(
        spread.rename(columns={"sd": "value"}),
        figure,
        alt="Standard deviation of the clients' importances for every choice of clients, by number "
        "of clients, with the paper's values.",
        notes=(
            "Standard deviation of p_i, 5 % to 95 % quantile of the other choices: "
            f"{'; '.join(ranges)}.",
        ),
    )


def choices(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the difference of MD and Uniform sampling for several choices of clients."""
    table, rounds = by_choice(summaries), _common_rounds(summaries)
    with panels(1, 2, width=9.2, height=3.6) as (figure, axes):
        for axis, letter, (case, title) in zip(axes, "ab", IMPORTANCES.items(), strict=True):
            axis.axhline(0, color="black", linewidth=0.8)
            for ours, colour in ((False, BLUE), (True, VERMILION)):
                part = table[(table["case"] == case) & (table["own"] == ours)]
                label = "clients of Figures 1 to 6" if ours else "other choices"
                with_interval(axis, part["sd"], part, "gap", fmt="o", color=colour, label=label)
            _clip(axis, table[table["case"] == case])
            axis.set(title=f"({letter}) {title}, $n = 10$, $m = 5$")
            axis.set_xlabel("standard deviation of $n_i/M$")
        axes[0].set_ylabel(f"{GAP}, " + (f"$t = {rounds[0]}$" if len(rounds) == 1 else "mean"))
        axes[0].legend()
    spans = []
    for name, gaps in table.groupby("case", sort=False)["gap"]:
        if len(gaps) > 1:
            words = f"from {show(gaps.min())} to {show(gaps.max())}"
            spans.append(f"{IMPORTANCES[str(name)][1:-1]}: {words}")
    over = f"Difference over {table['choice'].nunique()} choices of ten clients: "
    return Artefact(
        table,
        figure,
        alt="Mean difference of the global loss, MD − Uniform sampling, for several choices of "
        "ten clients, against the standard deviation of their shares of the data.",
        notes=(
            f"{over}{'; '.join(spans)}." if spans else "One choice of clients at this scale.",
            f"{_rounds_in_words(rounds)}, paired by seed, with 95 % intervals.",
        ),
    )


def _clip(axis: Axes, table: pd.DataFrame) -> None:
    """Limit the y axis to all means and usual intervals; arrows and numbers end longer ones."""
    length = table["high"] - table["low"]
    usual = table[~(length > LONG_INTERVAL * length.median())]
    low = float(pd.concat([usual["low"], table["gap"]]).min())
    high = float(pd.concat([usual["high"], table["gap"]]).max())
    if not low < high:  # no intervals at this scale
        return
    room = 0.15 * (high - low)
    bottom, top = low - room, high + room
    for row in table.to_dict("records"):
        look: dict[str, Any] = {"color": VERMILION if row["own"] else BLUE}
        if row["low"] < bottom:
            axis.plot(row["sd"], bottom, "v", clip_on=False, **look)
            axis.text(
                row["sd"], bottom, f"  {show(row['low'], 2)}", fontsize=8, va="bottom", **look
            )
        if row["high"] > top:
            axis.plot(row["sd"], top, "^", clip_on=False, **look)
            axis.text(row["sd"], top, f"  {show(row['high'], 2)}", fontsize=8, va="top", **look)
    axis.set_ylim(bottom, top)


def learning_rate(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the loss at the end against the learning rate, with full participation."""
    parts, notes = [], []
    with panels(1, 2, width=9.2, height=3.6) as (figure, axes):
        for axis, letter, (name, dataset) in zip(axes, "ab", GRIDS.items(), strict=True):
            summary, chosen = only(summaries[name], SHOWN), paper.reported(name)
            whose = "the paper" if name == "learning_rate" else "its authors' code"
            table = final_losses(summary)
            over_grid(axis, table, "step", FULL.label, FULL.colour)
            axis.axvline(chosen, color=VERMILION, linestyle=":", label=f"{whose}: {chosen:g}")
            rounds = summary.settings["settings"]["rounds"]
            axis.set(xlabel=r"$\eta_l$", ylabel=r"$\mathcal{L}(\theta^T)$")
            axis.set_title(f"({letter}) {dataset}, $T = {rounds}$")
            grid_ticks(axis, table["step"])
            axis.legend()
            parts.append(table.assign(dataset=dataset))
            notes.append(_best(table, dataset, chosen, whose))
            notes += [departures({name: summary}, paper), *divergences(summary, SCHEMES)]
    return Artefact(
        pd.concat(parts, ignore_index=True),
        figure,
        alt="Global loss after the last round of full participation against the learning rate.",
        notes=tuple(note for note in notes if note),
    )


def by_choice(summaries: Summaries) -> pd.DataFrame:
    """Difference of MD and Uniform sampling for every choice of ten clients.

    Returns columns ``case`` (importance), ``choice``, ``own`` (whether it is that of the other
    figures), ``gap``, ``low``, ``high``, ``sd`` of n_i/M.  Of runs of `shakespeare_10` only the
    rounds and seeds that `choices` has too; none if its network or work is another.
    """
    spread = deviations(summaries["clients"])
    sd = spread[spread["n"] == 10].set_index("seed")["sd"]
    other_choices, main = summaries["choices"], summaries[HALF[10]]
    cases = [(other_choices, case, False) for case in other_choices.settings["cases"]]
    if comparable(other_choices, main, ("model", "work")):
        shown = [case for case in IMPORTANCES if was_run(main, case, "md", "uniform")]
        cases += [(main, case, True) for case in shown]
    rounds, seeds = _common_rounds(summaries), other_choices.settings["seeds"]
    rows = []
    for summary, case, ours in cases:
        runs = summary.select(metric="loss", case=case)
        runs = runs[runs["at"].isin(rounds) & runs["seed"].isin(seeds)]
        by_seed = runs.groupby(["sampler", "seed"], observed=True)["value"]
        losses = by_seed.apply(lambda values: values.mean(skipna=False))
        gap = compare(losses["md"], losses["uniform"], difference)
        importance = summary.setting("dataset.importance", case)
        choice = int(summary.setting("problem_seed", case))
        rows.append((importance, choice, ours, gap.value, gap.low, gap.high))
    table = pd.DataFrame(rows, columns=["case", "choice", "own", "gap", "low", "high"])
    return table.assign(sd=[sd.get(choice, np.nan) for choice in table["choice"]])


def final_losses(summary: Summary) -> pd.DataFrame:
    """Return the loss after the last round for every learning rate of a grid."""
    table = losses_over_grid(
        summary,
        lambda case: summary.per_seed("full", "loss", case, summary.setting("rounds", case)),
        step="work.step",
    )
    return table.sort_values("step", ignore_index=True)


def _common_rounds(summaries: Summaries) -> Sequence[int]:
    """Return the rounds after the start that both experiments of ten clients measured."""
    first, second = (
        set(summaries[name].select(metric="loss", since=1)["at"]) for name in ("choices", HALF[10])
    )
    return sorted(int(at) for at in first & second)


def _rounds_in_words(rounds: Sequence[int]) -> str:
    listing = ", ".join(map(str, rounds))
    if len(rounds) == 1:
        return f"Losses of round {listing}, the only one that was measured for all choices"
    return f"Means over the rounds that were measured for all choices ({listing})"


def _best(table: pd.DataFrame, dataset: str, chosen: float, whose: str) -> str:
    if table["loss"].isna().all():
        return f"{dataset}: every run diverged."
    best = table.nsmallest(1, "loss").iloc[0]
    return (
        f"{dataset}: least loss after the last round at η_l = {best['step']:g} "
        f"({show(float(best['loss']))}); {whose} takes {chosen:g}."
    )
