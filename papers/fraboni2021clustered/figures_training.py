"""Learning curves of fraboni2021clustered: Figures 1, 2 and 6 to 10, and our grids.

The paper smooths the training loss on CIFAR-10 with a rolling mean; here each run is smoothed
before the mean over seeds is taken.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from fedsampling.evidence.statistics import compare, difference
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper, judge_function
from fedsampling.report.drawing.artefacts import (
    Alternative,
    Artefact,
    Summaries,
    by_reason,
    counted,
    instead,
    tabulate,
    with_margin,
)
from fedsampling.report.drawing.curves import (
    Panel,
    divergences,
    grid_ticks,
    learning_grid,
    losses_over_grid,
    only,
    over_grid,
    rolling,
)
from fedsampling.report.drawing.style import (
    BLUE,
    GREEN,
    ORANGE,
    SKY,
    VERMILION,
    Line,
    panels,
    printed_level,
    printed_words,
)

from . import claims
from .claims import (
    LINES,
    by_alpha,
    late,
)

PANELS = {
    "clients": "distinct clients",
    "labels": "distinct digits",
    "loss": "training loss",
    "accuracy": "test accuracy",
    "loss_std": "std of training loss over clients",
    "accuracy_std": "std of test accuracy over clients",
}
MEASURES = {
    "arccos": Line("Algorithm 2, arccos", LINES["algorithm2"].colour),
    "l2": Line("Algorithm 2, L2", ORANGE),
    "l1": Line("Algorithm 2, L1", SKY),
    "arccos-code": Line(
        "Algorithm 2, arccos, Ward as in the code", LINES["algorithm2"].colour, variant=True
    ),
}
SMOOTHED = "training loss, rolling mean"


class PanelRuns(NamedTuple):
    """The runs of a panel, or of a row of panels."""

    title: str
    summary: Summary
    case: str
    lines: Mapping[str, Line]


def figure1(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 1: representation, loss, accuracy and both spreads over clients, all schemes."""
    summary = summaries["mnist"]
    curves = only(summary, PANELS).curves
    curves = curves[curves["at"] >= 0]
    m = summary.setting("m", sampler="md")
    counts = curves["metric"].isin(("clients", "labels"))  # of the m clients of a round
    curves.loc[counts, ["low", "high"]] = curves.loc[counts, ["low", "high"]].clip(0, m)
    grid = [Panel(curves, LINES, metric, title=title) for metric, title in PANELS.items()]
    figure, axes = learning_grid(grid, 3, width=11.4, height=5.8, sharex=True)
    digits = [paper.reported(f"{end}_digits") for end in ("least", "most")]
    for count in digits:
        printed_level(axes[1], count)
    words = f"paper: MD generally {digits[0]:g} to {digits[1]:g}"
    right = axes[1].get_xlim()[1]
    printed_words(axes[1], right, digits[1] + 0.1, words, ha="right", fontsize=8)
    return Artefact(
        curves.drop(columns="case"),
        figure,
        alt="Six panels against rounds for MD, Algorithms 1 and 2, target and FedAvg sampling: "
        "distinct clients, distinct digits, training loss, test accuracy and their standard "
        "deviations over clients.",
        notes=divergences(summary, LINES),
    )


def figure2(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 2: smoothed loss above accuracy, a column per α."""
    summary = only(summaries["alpha"], ("loss", "accuracy", "diverged_at"))
    smooth, raw = _smooth(summary, paper), _raw(summary)
    cases = by_alpha(summary)
    grid = [
        Panel(smooth, LINES, "loss", case, f"α = {alpha:g}", SMOOTHED)
        for alpha, case in cases.items()
    ]
    grid += [Panel(raw, LINES, "accuracy", case, ylabel="test accuracy") for case in cases.values()]
    width = max(2.7 * len(cases), 5.2)
    figure, _ = learning_grid(grid, len(cases), width, height=5.4, sharex="col")
    return Artefact(
        _stacked({"loss, rolling mean": (smooth, "loss"), "accuracy": (raw, "accuracy")}),
        figure,
        alt="Training loss and test accuracy on CIFAR-10 against rounds, a column for each α.",
        notes=divergences(summary, LINES),
    )


def figure6(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 6: measures of similarity, smoothed above raw."""
    summary = only(summaries["measures"], ("loss", "diverged_at"))
    curves = {"rolling mean": _smooth(summary, paper), "raw": _raw(summary)}
    lines = {name: LINES[name] for name in ("md", "algorithm1")} | MEASURES
    grid = [Panel(rows, lines, ylabel=f"training loss, {name}") for name, rows in curves.items()]
    figure, _ = learning_grid(grid, 1, width=5.6, height=6.4, legend=2, sharex=True)
    return Artefact(
        _stacked({f"loss, {name}": (rows, "loss") for name, rows in curves.items()}),
        figure,
        alt="Training loss of MD and clustered sampling with three measures of similarity.",
        notes=divergences(summary, lines),
    )


def figure7(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 7: the runs of :func:`figure2` as measured, a row per α."""
    summary = only(summaries["alpha"], ("loss", "accuracy", "diverged_at"))
    return _loss_and_accuracy(
        [
            PanelRuns(f"α = {alpha:g}", summary, case, LINES)
            for alpha, case in by_alpha(summary).items()
        ],
        "Training loss and test accuracy on CIFAR-10 against rounds, a row for each α.",
    )


def figure8(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 8: smoothed loss for few and many local steps, few and many clients."""
    cells = _work_and_clients(summaries, paper)
    grid = [
        Panel(_curves_of(_smooth(runs, paper), case, lines), lines, "loss", case, title, SMOOTHED)
        for title, runs, case, lines in cells
    ]
    figure, _ = learning_grid(grid, 2, width=8.6, height=6.0)
    return Artefact(
        _stacked({f"loss, {panel.title}": (panel.curves, "loss") for panel in grid}),
        figure,
        alt="Smoothed training loss for two numbers of local steps and of sampled clients.",
        notes=_divergences(cells),
    )


def figure9(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 9: loss and accuracy of the runs of :func:`figure8` as measured."""
    return _loss_and_accuracy(
        _work_and_clients(summaries, paper),
        "Training loss and test accuracy for two numbers of local steps and of sampled clients.",
    )


def _work_and_clients(summaries: Summaries, paper: Paper) -> list[PanelRuns]:
    """Return the panels of Figures 8 and 9: each number of local steps N, then of clients m."""
    work, clients = (
        only(summaries[name], ("loss", "accuracy", "diverged_at")) for name in ("work", "clients")
    )
    m = work.setting("m", sampler="md")
    cells = [
        PanelRuns(f"N = {work.setting('work.steps', case)}, m = {m}", work, case, LINES)
        for case in work.settings["cases"]
    ]
    case = by_alpha(clients)[paper.reported("alpha_of_figure8")]
    steps = clients.setting("work.steps", case)
    for m in sorted({sampler["m"] for sampler in clients.settings["samplers"].values()}):
        lines = {f"{name}-{m}": line for name, line in LINES.items()}
        cells.append(PanelRuns(f"N = {steps}, m = {m}", clients, case, lines))
    return cells


def figure10(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 10: loss under FedProx, smoothed and as measured."""
    summary = only(summaries["prox"], ("loss", "diverged_at"))
    curves = {"rolling mean": _smooth(summary, paper), "raw": _raw(summary)}
    grid = [Panel(rows, LINES, title=name, ylabel="training loss") for name, rows in curves.items()]
    figure, _ = learning_grid(grid, 2, width=8.6, height=3.8, sharey=True)
    return Artefact(
        _stacked({f"loss, {name}": (rows, "loss") for name, rows in curves.items()}),
        figure,
        alt="Training loss with FedProx against rounds, smoothed and raw.",
        notes=divergences(summary, LINES),
    )


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
    )


def _late_losses(summary: Summary, **settings: str) -> pd.DataFrame:
    """Return MD sampling's late losses over a grid, and ``highest``, its largest finite loss."""
    table = losses_over_grid(summary, lambda case: late(summary, "md", "loss", case), **settings)
    losses = (summary.select("md", "loss", case)["value"] for case in summary.settings["cases"])
    return table.assign(highest=[float(loss[np.isfinite(loss)].max()) for loss in losses])


def _best(table: pd.DataFrame, x: str) -> float:
    """Return the value with the least late loss; NaN if every run diverged."""
    return np.nan if table["loss"].isna().all() else float(table.nsmallest(1, "loss")[x].iloc[0])


def _loss_and_accuracy(cells: Sequence[PanelRuns], alt: str) -> Artefact:
    """Draw loss and accuracy as measured, a row for each cell."""
    grid, parts = [], {}
    for title, summary, case, lines in cells:
        curves = _curves_of(_raw(summary), case, lines)
        for metric, label in (("loss", "training loss"), ("accuracy", "test accuracy")):
            above = title if metric == "loss" else ""
            grid.append(Panel(curves, lines, metric, case, above, label))
            parts[f"{metric}, {title}"] = curves, metric
    figure, _ = learning_grid(grid, 2, width=8.6, height=2.2 * len(cells) + 0.8)
    return Artefact(_stacked(parts), figure, alt=alt, notes=_divergences(cells))


def _smooth(summary: Summary, paper: Paper) -> pd.DataFrame:
    rounds = int(paper.reported("rounds_of_the_rolling_mean"))
    return rolling(only(summary, ("loss",)), rounds).curves


def _raw(summary: Summary) -> pd.DataFrame:
    return only(summary, ("loss", "accuracy")).curves


def _curves_of(curves: pd.DataFrame, case: str, lines: Mapping[str, Line]) -> pd.DataFrame:
    return curves[(curves["case"] == case) & curves["sampler"].isin(lines)]


def _stacked(parts: Mapping[str, tuple[pd.DataFrame, str]]) -> pd.DataFrame:
    """Stack the data of all panels, with their names: of each, the rows of a metric."""
    shown = [
        curves[curves["metric"] == metric].drop(columns="metric").assign(shown=name)
        for name, (curves, metric) in parts.items()
    ]
    return pd.concat(shown, ignore_index=True)


def _divergences(cells: Sequence[PanelRuns]) -> tuple[str, ...]:
    """Return the divergences of all panels, each once."""
    sentences: dict[str, None] = {}
    for _, summary, case, lines in cells:
        runs = replace(summary, rows=_curves_of(summary.rows, case, lines))
        sentences |= dict.fromkeys(divergences(runs, lines))
    return tuple(sentences)


# Choices that could change the verdicts of Fraboni et al. 2021.


NARROWER = 0.01  # margin of c3, instead of a tenth
SMALLER_RUNS = ("c4", "c5", "c6", "c7", "c8")


def alternatives(summaries: Summaries, paper: Paper) -> Artefact:
    """Judge c3 and c10 again with other margins, rounds, intervals, and forms of the algorithms."""
    summary, c3, c10 = summaries["mnist"], paper.claims["c3"], paper.claims["c10"]
    judged = {"c3": claims.c3(summaries, c3, paper), "c10": claims.c10(summaries, c10, paper)}
    measured = sorted(summary.select("md", "loss")["at"].unique())
    middle, last = measured[len(measured) // 2], measured[-1]
    rows_until = summary.rows[summary.rows["at"] <= middle]  # claims read their second half
    early = {"mnist": replace(summary, rows=rows_until)}
    instead_of = f"instead of {last // 2} to {last}"
    first = f"rounds {middle // 2} to {middle} {instead_of}"
    readings = judged["c10"].readings
    pairs = claims.gains_over_md(summary)
    uncorrected = {name: compare(*pair, difference) for name, pair in pairs.items()}
    as_coded = []
    if "algorithm2-code" in set(summary.rows["sampler"]):
        coded = {"mnist": claims.renamed(summary, "algorithm2-code", "algorithm2")}
        choice = "Ward's method as the authors' code applies it"
        as_coded = [instead("c3", choice, claims.c3(coded, c3, paper))]
    rows = [
        instead("c3", *with_margin("c3", NARROWER, summaries, paper)),
        instead("c3", first, claims.c3(early, c3, paper)),
        *as_coded,
        counted("c10", "how Algorithm 1 breaks ties between clients of equal size", readings),
        by_reason("c10", first, claims.outperform(early["mnist"], c10)),
        by_reason(
            "c10",
            "intervals not corrected for six comparisons",
            claims.gains_finding(uncorrected, c10),
        ),
    ]
    for name in SMALLER_RUNS:
        spec = paper.claims[name]
        used = spec.experiments or paper.artefacts[spec.artefact].experiments
        if summaries.keys() >= set(used):
            judged[name] = judge_function(paper, name)(summaries, spec, paper)
            rows += _of_smaller_runs(name, summaries, paper)
    return tabulate(judged, rows)


def _of_smaller_runs(name: str, summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Judge a claim about late losses on all rounds and on the first half; vary a margin."""
    for choice, changed in {"all rounds": _all_rounds, "the first half": _first_half}.items():
        changed_runs = {key: changed(summary) for key, summary in summaries.items()}
        finding = judge_function(paper, name)(changed_runs, paper.claims[name], paper)
        choice = f"{choice} instead of the second half of the rounds"
        yield by_reason(name, choice, finding)
    if margin := paper.claims[name].margin:
        yield instead(name, *with_margin(name, margin / 2, summaries, paper))


def _all_rounds(summary: Summary) -> Summary:
    """Move all rounds into the second half, which claims read."""
    rows = summary.rows
    return replace(summary, rows=rows.assign(at=(rows["at"] + _last(rows)) / 2))


def _first_half(summary: Summary) -> Summary:
    """Keep the rounds that claims do not read, and move them into the second half."""
    rows = summary.rows
    return _all_rounds(replace(summary, rows=rows[rows["at"] < _last(rows) / 2]))


def _last(rows: pd.DataFrame) -> pd.Series:
    """Return the last round of each row's case."""
    last: pd.Series = rows.groupby("case", observed=True)["at"].transform("max")
    return last
