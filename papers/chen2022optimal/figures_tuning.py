"""Local learning rates of Chen et al. 2022: scores of a grid of steps on a holdout."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from fedsampling.base.text import listed, show
from fedsampling.evidence.scores import is_at_edge
from fedsampling.evidence.summaries import FEWEST_SEEDS, Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.curves import divergences
from fedsampling.report.drawing.style import BLACK, legend_below, panels

from .courses import LINES, title


def tuning(summaries: Summaries, paper: Paper) -> Artefact:
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
                best = picked[(picked["set"] == name) & (picked["sampler"] == sampler)]
                ring: dict[str, Any] = {"ms": 10, "mfc": "none", "color": line.colour}
                panel.plot(best["step"], best["accuracy"], "o", label=f"_{sampler}", **ring)
            panel.set_xscale("log", base=2)
            panel.set(title=name, xlabel=r"local learning rate $\eta_l$")
        axes[0].set_ylabel("accuracy on the holdout")
        axes[0].plot([], [], "o", ms=10, mfc="none", color=BLACK, label="best rate")
        legend_below(figure, axes)
    best_steps, at_edge = _best_steps(picked, set(scored["step"]))
    data = table.merge(picked[keys].assign(chosen=True), on=keys, how="left")
    return Artefact(
        data.assign(chosen=data["chosen"].eq(True)),
        figure,
        alt="Accuracy on the holdout in the second half of the rounds, against the local step.",
        caption_end=at_edge,
        notes=(f"Best steps. {best_steps}.", *divergences(summary, LINES)),
    )


def _best_steps(picked: pd.DataFrame, grid: Collection[float]) -> tuple[str, str]:
    """Name the best step of each sampler; write a sentence on those at an end of the grid."""
    parts: list[str] = []
    at_edge: list[str] = []
    for name, rows in picked.groupby("set"):
        steps = rows.set_index("sampler")["step"].map(float)
        best = {LINES[s].label: steps[s] for s in LINES if s in steps.index}
        texts = [f"{label} {show(step)}" for label, step in best.items()]
        parts.append(f"{name}: {', '.join(texts)}")
        at_edge += [
            f"{label} ({name}, {show(step)})"
            for label, step in best.items()
            if is_at_edge(step, grid)
        ]
    sentence = f"At an end of the grid, so a better step may lie beyond: {listed(at_edge)}."
    return "; ".join(parts), sentence if at_edge else ""


def scores(summary: Summary) -> pd.DataFrame:
    """Score every run by its mean accuracy on the holdout in the second half of the rounds.

    With few reports, single measurements vary by tens of per cent from round to round.

    Returns columns ``set``, ``step``, ``sampler``, ``seed``, ``accuracy``; 0 for a run that
    diverged.
    """
    rows = summary.select(metric="accuracy", since=summary.settings["settings"]["rounds"] / 2)
    grouped = rows.groupby(["case", "sampler", "seed"], observed=True)["value"]
    score = grouped.mean().mask(grouped.count() < grouped.size(), 0.0)
    table: pd.DataFrame = score.rename("accuracy").reset_index()
    cases = list(table.pop("case"))
    table["set"] = [title(summary, case) for case in cases]
    table["step"] = [float(summary.setting("work.step", case)) for case in cases]
    return table


def chosen(summary: Summary) -> pd.DataFrame:
    """Return the step with the best mean score, for each sampler and dataset."""
    means = scores(summary).groupby(["set", "sampler", "step"], observed=True)["accuracy"].mean()
    best = means.groupby(level=["set", "sampler"], observed=True).idxmax()
    table = pd.DataFrame(best.to_list(), columns=["set", "sampler", "step"])
    return table.assign(accuracy=means.loc[best].to_numpy())


tuning_writers = tuning  # its experiment has the other data
