"""Effects of the cross matrix's samplers on the clients and on the aggregated update."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from fedsampling.evidence.numbers import show
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.cross_matrix import FULL, REFERENCE, TUNING
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.style import BLACK, CLASSES, legend_below, panels, style
from fedsampling.report.names import NAMES

from .presentation import label, requires_comparison, title
from .runs import KEYS, compared_datasets, tuned_trajectories

FromRun = Callable[[pd.DataFrame], float]  # computes a number from a run's rounds × metrics


class Quantity(NamedTuple):
    """A number of each run, drawn in a panel of the figure.

    Parameters
    ----------
    name : str
        Column of the CSV.
    metric : str
        Metric that must have been recorded.
    compute : callable
    title, unit : str
        Title and unit of the panel; without a title the number is only in the CSV.
    """

    name: str
    metric: str
    compute: FromRun
    title: str = ""
    unit: str = ""


def _late_mean(metric: str) -> FromRun:
    """Average a metric over the second half of the rounds."""
    return lambda run: float(run.loc[run.index >= run.index.max() / 2, metric].mean(skipna=True))


def _last(metric: str) -> FromRun:
    return lambda run: float(run[metric].iloc[-1])


def _mean(metric: str) -> FromRun:
    return lambda run: float(run[metric].mean())


def _first_round(run: pd.DataFrame) -> float:
    """Average each client's first round of participation; the last round if it has none."""
    return float(1 + (1 - run["met"].dropna()).sum())


def _relative_error(run: pd.DataFrame) -> float:
    """Average the error of the update over rounds, in units of the full update's square."""
    return float(run["update_error"].mean() / run["update_square"].mean())


QUANTITIES = (
    Quantity("worst", "accuracy_worst", _late_mean("accuracy_worst"), "worst tenth", "accuracy"),
    Quantity("q10", "accuracy_q10", _late_mean("accuracy_q10")),
    Quantity("q50", "accuracy_q50", _late_mean("accuracy_q50")),
    Quantity("q90", "accuracy_q90", _late_mean("accuracy_q90")),
    Quantity("jain", "jain", _last("jain"), "participation", "Jain's index"),
    Quantity("entropy", "entropy", _last("entropy")),
    Quantity("first", "met", _first_round, "first participation", "round"),
    Quantity("error", "update_error", _relative_error, "error of the update", "squared, relative"),
    Quantity(
        "cosine", "update_cosine", _mean("update_cosine"), "direction of the update", "cosine"
    ),
)


@requires_comparison
def clients(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw QUANTITIES by sampler, one point per dataset."""
    names = compared_datasets(summaries)
    table = pd.concat(
        [_quantities(summaries[name], summaries[TUNING + name]).assign(set=name) for name in names],
        ignore_index=True,
    )
    means = table.groupby(["set", "sampler"])[[quantity.name for quantity in QUANTITIES]].mean()
    order = means.groupby("sampler")["worst"].mean().sort_values().index.tolist()
    rows = dict(zip(order, range(len(order)), strict=True))
    drawn = [quantity for quantity in QUANTITIES if quantity.title]
    with style():
        size = {"width": 2.4 + 1.9 * len(drawn), "height": 1.6 + 0.24 * len(order)}
        figure, axes = panels(1, len(drawn), **size, sharey=True)
        for axis, quantity in zip(axes, drawn, strict=True):
            for place, name in enumerate(names):
                values = means.xs(name, level="set")[quantity.name]
                at = np.array([rows[sampler] for sampler in values.index])
                axis.plot(
                    values.to_numpy(),
                    at + 0.09 * (place - (len(names) - 1) / 2),
                    "o",
                    color=CLASSES[place],
                    markersize=3.6,
                    clip_on=False,
                    label=title(summaries, name),
                )
            axis.set(title=quantity.title, xlabel=quantity.unit)
            axis.grid(axis="x")
            if quantity.name == "error":
                axis.set_xscale("symlog", linthresh=0.1)
                axis.axvline(1.0, color=BLACK, linestyle=":", linewidth=1.0)
            else:
                lowest = min(0, 1.1 * means[quantity.name].min())  # a cosine may be negative
                axis.set_xlim(lowest, None if quantity.name == "first" else 1)
        axes[0].set_yticks(range(len(order)), [label(str(name)) for name in order])
        axes[0].set_ylim(-0.6, len(order) - 0.4)
        for name, tick in zip(order, axes[0].get_yticklabels(), strict=True):
            if name not in NAMES:  # a user's sampler
                tick.set(fontweight="bold")
        legend_below(figure, axes)
    return Artefact(
        table[["set", "sampler", "seed", *(quantity.name for quantity in QUANTITIES)]],
        figure,
        alt="Accuracy of the worst tenth of clients, evenness of participation and error of the "
        "update, by sampler and dataset.",
        notes=(
            *_best_for_worst_tenth(means, summaries),
            *_below_md(table, summaries),
            _least_even(means),
            _least_error(means),
        ),
    )


def _quantities(evaluation: Summary, tuning: Summary) -> pd.DataFrame:
    """Return QUANTITIES of each tuned run, over MD's rounds; NaN if not recorded."""
    runs = tuned_trajectories(evaluation, tuning)
    last_round = runs.loc[runs["sampler"] == REFERENCE, "at"].max()
    tuned = set(runs[KEYS].drop_duplicates().itertuples(index=False, name=None))
    metrics = [quantity.metric for quantity in QUANTITIES] + ["update_square"]
    rows = evaluation.select(metric=metrics, since=0, until=last_round)
    wide = rows.pivot(index=[*KEYS, "at"], columns="metric", values="value")
    records = []
    for key, run in wide.groupby(KEYS):
        if key in tuned:
            metrics_of_run = run.reset_index(KEYS)
            numbers: Mapping[str, float] = {
                quantity.name: quantity.compute(metrics_of_run)
                if quantity.metric in metrics_of_run
                else np.nan
                for quantity in QUANTITIES
            }
            records.append({"sampler": key[1], "seed": key[2], **numbers})
    return pd.DataFrame(records)


def _best_for_worst_tenth(means: pd.DataFrame, summaries: Summaries) -> list[str]:
    """Name the sampler with the best accuracy of the worst tenth of clients, by dataset."""
    parts = []
    for name, part in means["worst"].dropna().groupby("set"):
        worst = part.droplevel("set")
        text = f"{title(summaries, str(name))}: {label(str(worst.idxmax()))} {show(worst.max())}"
        if REFERENCE in worst:
            text += f" (MD {show(worst[REFERENCE])})"
        parts.append(text)
    return [f"Best for the worst tenth: {'; '.join(parts)}."] if parts else []


def _below_md(table: pd.DataFrame, summaries: Summaries) -> list[str]:
    """Name the samplers whose worst tenth is below MD's in every seed, without absent clients."""
    measured = table.dropna(subset="worst")
    if measured.empty:
        return []
    titles_below: dict[str, list[str]] = {}
    for name, part in measured.groupby("set"):
        wide = part.pivot(index="seed", columns="sampler", values="worst")
        if REFERENCE in wide and "availability" not in summaries[str(name)].settings["settings"]:
            below = wide.lt(wide[REFERENCE], axis=0).all()
            for sampler in below.index[below]:
                titles = titles_below.setdefault(label(str(sampler)), [])
                titles.append(title(summaries, str(name)))
    ordered = sorted(titles_below.items(), key=lambda item: (-len(item[1]), item[0].casefold()))
    several = "; ".join(
        f"{name} ({', '.join(titles)})" for name, titles in ordered if len(titles) > 1
    )
    single = "; ".join(
        f"{name} ({', '.join(titles)})" for name, titles in ordered if len(titles) == 1
    )
    return [
        f"Worst tenth below MD's in every seed of at least two datasets: {several or 'none'}.",
        f"Worst tenth below MD's in every seed of a single dataset: {single or 'none'}.",
    ]


def _least_even(means: pd.DataFrame) -> str:
    jain = means["jain"].groupby("sampler").mean().sort_values()
    lowest = ", ".join(f"{label(str(name))} {show(value)}" for name, value in jain.head(3).items())
    return f"Least even participation (Jain's index, mean over datasets): {lowest}."


def _least_error(means: pd.DataFrame) -> str:
    error = means["error"].groupby("sampler").mean().sort_values()
    names = [name for name in error.index if name != FULL][:3]
    texts = ", ".join(f"{label(str(name))} {show(error[name])}" for name in names)
    text = f"Least error of the update: {texts}"
    if REFERENCE in error:
        text += f"; MD {show(error[REFERENCE])}"
    return f"{text} (in units of the full update's square, mean over datasets)."
