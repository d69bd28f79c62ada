"""The grids of learning rates and of FedProx's μ, with MD sampling: appendix D."""

import numpy as np
import pandas as pd

from fedsampling.base.text import listed
from fedsampling.evidence.statistics import difference, holm
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.curves import divergences, grid_ticks, losses_over_grid, over_grid
from fedsampling.report.drawing.style import BLUE, GREEN, ORANGE, VERMILION, panels

from .lines import LINES, late

FEWEST_SEEDS = 3  # for an interval


def grids(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw MD sampling's late loss by learning rate (for Figure 2) and by μ (for Figure 10)."""
    rates = _late_losses(
        summaries["learning_rate"], alpha="dataset.partition.alpha", step="work.step"
    )
    regular = _late_losses(summaries["prox_grid"], mu="work.prox")
    with panels(1, 2, width=8.6, height=3.8) as (figure, (left, right)):
        colours = (BLUE, GREEN, ORANGE, VERMILION)
        for colour, (alpha, part) in zip(colours, rates.groupby("alpha"), strict=False):
            over_grid(left, part, "step", f"α = {alpha:g}", colour, part["highest"].max())
        left.set(xlabel="learning rate", ylabel="late training loss", title="(a) learning rate")
        left.legend()
        over_grid(right, regular, "mu", "", BLUE, regular["highest"].max())
        right.set(xlabel="μ", ylabel="late training loss", title="(b) FedProx")
        grid_ticks(left, rates["step"])
        grid_ticks(right, regular["mu"])
    best = [
        f"{_best(part, 'step'):g} for α = {alpha:g} "
        f"(paper {paper.reported(f'learning_rate_alpha_{alpha:g}'):g})"
        for alpha, part in rates.groupby("alpha")
    ]
    return Artefact(
        pd.concat([rates.assign(grid="step"), regular.assign(grid="mu")], ignore_index=True),
        figure,
        alt="Late training loss of MD sampling against learning rate, per α, and against μ.",
        notes=(
            f"Least late loss at learning rate {', '.join(best)}; at μ = {_best(regular, 'mu'):g} "
            f"(paper {paper.reported('mu'):g}).",
            *divergences(summaries["learning_rate"], LINES),
            *divergences(summaries["prox_grid"], LINES),
        ),
        caption_end=" ".join(
            [
                *(
                    _like_the_best(summaries["learning_rate"], "work.step", "learning rate", alpha)
                    for alpha in sorted(rates["alpha"].unique())
                ),
                _like_the_best(summaries["prox_grid"], "work.prox", "μ"),
            ]
        ).strip(),
    )


def _like_the_best(summary: Summary, setting: str, word: str, alpha: float | None = None) -> str:
    """Name the values of a grid whose late loss does not differ from the least, in a sentence."""
    losses = {
        float(summary.setting(setting, case)): late(summary, "md", "loss", case)
        for case in summary.settings["cases"]
        if alpha in (None, summary.setting("dataset.partition.alpha", case))
    }
    finite = {value: loss for value, loss in losses.items() if np.isfinite(loss).all()}
    if len(finite) < 2 or any(len(loss) < FEWEST_SEEDS for loss in finite.values()):
        return ""
    best = min(finite, key=lambda value: float(finite[value].mean()))
    others = {f"{value:g}": (loss, finite[best]) for value, loss in finite.items() if value != best}
    alike = [name for name, gap in holm(others, difference).items() if not gap.low > 0]
    where = "" if alpha is None else f" at α = {alpha:g}"
    result = "is significantly better than all others"
    if alike:
        result = f"does not differ significantly from {listed(alike)}"
    return f"The best {word}{where}, {best:g}, {result} ({len(finite[best])} seeds)."


def _late_losses(summary: Summary, **settings: str) -> pd.DataFrame:
    """Return MD sampling's late losses over a grid, and ``highest``, its largest finite loss."""
    table = losses_over_grid(summary, lambda case: late(summary, "md", "loss", case), **settings)
    losses = (summary.select("md", "loss", case)["value"] for case in summary.settings["cases"])
    return table.assign(highest=[float(loss[np.isfinite(loss)].max()) for loss in losses])


def _best(table: pd.DataFrame, x: str) -> float:
    """Return the value with the least late loss; NaN if every run diverged."""
    return np.nan if table["loss"].isna().all() else float(table.nsmallest(1, "loss")[x].iloc[0])
