"""Figures 1 to 7 of fraboni2022general: training on Shakespeare and CIFAR-10.

Differences of two samplers are taken seed by seed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from fedsampling.evidence.statistics import difference, holm, show_estimates
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.curves import (
    FEWEST_ROUNDS,
    Panel,
    divergences,
    learning_grid,
    only,
    rolling,
)
from fedsampling.report.drawing.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, Line, panels

from .losses import (
    COMPARED,
    HALF,
    SHOWN,
    TRAINED,
    comparable,
    departures,
    gap_curve,
    half_sampled,
    loss_pairs,
    paired_losses,
    was_run,
)

IMPORTANCES = {"equal": "$p_i = 1/n$", "samples": "$p_i = n_i/M$"}
COLOURS = (BLUE, ORANGE, GREEN, PURPLE)  # of numbers of clients
LOSS = r"$\mathcal{L}(\theta^t)$"
JOINT = "mean over all measured rounds (95 % intervals, Holm-corrected together)"
GAP = r"$\mathcal{L}(\theta_{MD}) - \mathcal{L}(\theta_U)$"


def figure1(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 1: L(MD) − L(Uniform) for each number of clients, a panel for each importance."""
    runs = half_sampled(summaries)
    mean_gaps = {  # with the intervals of c1 and c2
        case: holm(loss_pairs(summaries, "md", "uniform", case), difference) for case in IMPORTANCES
    }
    table = _gap_table({n: (run, ("md", "uniform")) for n, run in runs.items()}, "clients")
    seeds = {n: len(summary.settings["seeds"]) for n, summary in runs.items()}
    lines = {}
    for (n, summary), colour in zip(runs.items(), COLOURS, strict=True):
        is_other = not comparable(summary, runs[10])
        label = f"$n = {n}$" + (f", {seeds[n]} seeds" if len(set(seeds.values())) > 1 else "")
        lines[n] = Line(label + (" (other runs)" if is_other else ""), colour, is_other)
    return Artefact(
        table,
        _gap_grid(table, "clients", lines),
        alt="Difference of the global loss, MD − Uniform sampling, against rounds, with 95 % "
        "bands: a curve for each number of clients, a panel for each importance.",
        notes=(
            *(
                f"MD − Uniform, {JOINT}: {show_estimates(gaps)} ({IMPORTANCES[case][1:-1]})."
                for case, gaps in mean_gaps.items()
            ),
            *_not_comparable(runs),
            *_divergence_notes(runs),
        ),
        caption_end=departures({HALF[n]: summary for n, summary in runs.items()}, paper),
    )


def figure2(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 2: losses, and below them differences from MD, by importance (rows) and n."""
    runs = half_sampled(summaries)
    views = [
        LossView(f"$n = {n}$, {title}", summary, case, TRAINED, {"clients": n})
        for case, title in IMPORTANCES.items()
        for n, summary in runs.items()
    ]
    data, figure = _losses_and_differences(views, len(runs), width=11.4, height=5.9)
    return Artefact(
        data,
        figure,
        alt="Global loss against rounds for MD, Uniform and Clustered sampling, a column for each "
        "number of clients, two rows for each importance: the losses, and below them the "
        "differences from MD sampling.",
        notes=(*_not_comparable(runs), *_divergence_notes(runs)),
        caption_end=departures({HALF[n]: summary for n, summary in runs.items()}, paper),
    )


def figure3(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 3: L(MD) − L(Uniform) for every m with K = 50; m = 40 is Figure 1's."""
    return _draw_gaps(summaries, paper, ("varying_m", HALF[80]))


def figure4(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 4: losses with m = 4 and 8, and K = 50 local steps."""
    return _draw_losses(summaries, paper, "varying_m")


def figure5(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 5: L(MD) − L(Uniform) for m = 8, 40 with K = 1, without the first rounds."""
    since = paper.reported("figure5_first") / paper.experiments["one_step"]["rounds"]
    return _draw_gaps(summaries, paper, ("one_step",), since, paper.reported("figure5_fewest"))


def figure6(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 6: losses with m = 4, 8 and 40, and a single local step."""
    return _draw_losses(summaries, paper, "one_step")


def figure7(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 7: losses on CIFAR-10, and below them their difference, a column for each α."""
    summary = only(summaries["cifar"], SHOWN)
    smooth = rolling(only(summary, ("loss",)), round(paper.reported("rolling_mean")))
    cases = {
        case: f"α = {settings['dataset']['partition']['alpha']:g}"
        for case, settings in paper.experiments["cifar"]["cases"].items()
    }
    views = [LossView(alpha, smooth, case, COMPARED) for case, alpha in cases.items()]
    pairs = {
        alpha: paired_losses(summary, "uniform", "md", case)
        for case, alpha in cases.items()
        if was_run(summary, case)
    }
    data, figure = _losses_and_differences(views, len(views), width=9.6, height=5.0)
    return Artefact(
        data,
        figure,
        alt="Global loss on CIFAR-10 against rounds for MD and Uniform sampling, a panel for each "
        "α; below each the difference Uniform − MD with its 95 % band.",
        notes=(
            f"Uniform − MD, {JOINT}: {show_estimates(holm(pairs, difference))}.",
            *divergences(summary, COMPARED),
        ),
        caption_end=departures({"cifar": summary}, paper),
    )


def _draw_gaps(
    summaries: Summaries,
    paper: Paper,
    experiments: tuple[str, ...],
    since: float = 0,
    fewest: float = 0,
) -> Artefact:
    """Draw the paired difference for each m, a panel for each importance."""
    runs = {name: only(summaries[name], SHOWN) for name in experiments}
    main = runs[experiments[0]]
    pairs = [
        (m, name, pair) for name in experiments for m, pair in _sampler_pairs(paper, name).items()
    ]
    drawn = {m: (runs[name], pair) for m, name, pair in pairs if m >= fewest}
    colours = dict(zip((m for m, _, _ in pairs), COLOURS, strict=False))
    lines = {m: Line(f"$m = {m}$", colours[m]) for m in drawn}
    table = _gap_table(drawn, "m", since, main.settings["seeds"])
    names = {name: line for m, _, pair in pairs for name, line in _lines(pair, m).items()}
    lost = (text for summary in runs.values() for text in divergences(summary, names))
    return Artefact(
        table,
        _gap_grid(table, "m", lines),
        alt="Difference of the global loss, MD − Uniform sampling, against rounds, with 95 % "
        "bands: a curve for each number of sampled clients, a panel for each importance.",
        notes=tuple(lost),
        caption_end=departures({experiments[0]: main}, paper),
    )


def _gap_table(
    drawn: Mapping[int, tuple[Summary, tuple[str, str]]],
    column: str,
    since: float = 0,
    seeds: Iterable[int] | None = None,
) -> pd.DataFrame:
    """Tabulate the loss differences of pairs of samplers, for each importance.

    `drawn`: runs and the names of two samplers, by a key such as m. `column`: name of the column
    with these keys. `since`: share of the rounds that is left out. `seeds`: only these.
    """
    parts: list[pd.DataFrame] = []
    for case in IMPORTANCES:
        for key, (summary, pair) in drawn.items():
            curve = gap_curve(summary, *pair, case, seeds)
            first = since * summary.settings["settings"]["rounds"]
            parts.append(curve[curve["at"] >= first].assign(**{"case": case, column: key}))
    return _stacked(parts)


def _gap_grid(table: pd.DataFrame, column: str, lines: Mapping[int, Line]) -> Figure:
    """Draw differences of the loss, a panel for each importance, a curve for each of `lines`.

    `table`: of :func:`gap_curve`, with ``case`` and a `column` that holds the keys of `lines`.
    Curves of fewer than :data:`FEWEST_ROUNDS` rounds become a list of intervals.
    """
    if table["at"].nunique() < FEWEST_ROUNDS:
        return _gap_intervals(table, column, lines)
    curves = table.rename(columns={column: "sampler"}).assign(metric="gap")
    grid = [
        Panel(curves, lines, "gap", case, f"({letter}) {title}", GAP, zero=True)
        for letter, (case, title) in zip("ab", IMPORTANCES.items(), strict=True)
    ]
    figure, _ = learning_grid(grid, 2, width=9.2, height=3.6, xlabel="server aggregations $t$")
    return figure


def _gap_intervals(table: pd.DataFrame, column: str, lines: Mapping[int, Line]) -> Figure:
    """Draw an interval for each of `lines` and round, from above to below, by importance."""
    rows = [(key, at) for key in lines for at in sorted(table["at"].unique())]
    with panels(1, 2, width=9.2, height=0.9 + 0.4 * len(rows), sharey=True) as (figure, axes):
        for axis, letter, (case, title) in zip(axes, "ab", IMPORTANCES.items(), strict=True):
            axis.axvline(0, color=BLACK, linewidth=0.8)
            for place, (key, at) in enumerate(rows):
                chosen = (table["case"] == case) & (table[column] == key) & (table["at"] == at)
                for gap in table[chosen].itertuples():
                    axis.hlines(place, gap.low, gap.high, color=lines[key].colour)
                    axis.plot(gap.mean, place, "o", color=lines[key].colour)
            axis.set(title=f"({letter}) {title}", xlabel=GAP, ylim=(len(rows) - 0.5, -0.5))
            labels = [f"{lines[key].label}, $t = {at}$" for key, at in rows]
            axis.set_yticks(range(len(rows)), labels)
            axis.locator_params(axis="x", nbins=6)
    return figure


def _draw_losses(summaries: Summaries, paper: Paper, experiment: str) -> Artefact:
    """Draw Figure 4 or 6: losses, and below them differences, by importance and m."""
    summary = only(summaries[experiment], SHOWN)
    pairs = _sampler_pairs(paper, experiment)
    views = [
        LossView(f"$m = {m}$, {title}", summary, case, _lines(pair))
        for case, title in IMPORTANCES.items()
        for m, pair in pairs.items()
    ]
    width = 1.9 * len(views) + 1.2
    data, figure = _losses_and_differences(views, len(views), width, height=4.2)
    lines = {name: line for m, pair in pairs.items() for name, line in _lines(pair, m).items()}
    return Artefact(
        data,
        figure,
        alt="Global loss against rounds for MD and Uniform sampling, a column for each number of "
        "sampled clients with equal importance, then with importance by data; below the losses "
        "the difference Uniform − MD.",
        notes=divergences(summary, lines),
        caption_end=departures({experiment: summary}, paper),
    )


def _sampler_pairs(paper: Paper, experiment: str) -> dict[int, tuple[str, str]]:
    """Name an experiment's samplers of MD and Uniform sampling, by the number that they sample."""
    named: dict[int, dict[str, str]] = {}
    for name, sampler in paper.experiments[experiment]["samplers"].items():
        named.setdefault(sampler["m"], {})[sampler["name"]] = name
    return {m: (names["md"], names["uniform"]) for m, names in named.items()}


def _lines(pair: tuple[str, str], m: int | None = None) -> dict[str, Line]:
    """Return the lines of a pair of samplers; their labels contain m unless it is None."""
    tail = "" if m is None else f", m = {m}"
    lines = zip(pair, COMPARED.values(), strict=True)
    return {name: Line(line.label + tail, line.colour) for name, line in lines}


class LossView(NamedTuple):
    """Losses of some samplers, drawn above their differences from the first of them."""

    title: str
    summary: Summary
    case: str
    lines: Mapping[str, Line]
    columns: Mapping[str, int] = {}  # of the CSV, beside those of every curve


def _losses_and_differences(
    views: Sequence[LossView], columns: int, width: float, height: float
) -> tuple[pd.DataFrame, Figure]:
    """Draw the losses of views, `columns` in a row, and below each the differences, by seed.

    Returns the data of all panels, and the figure.
    """
    above, below, parts = [], [], []
    for letter, view in zip("abcdefgh", views, strict=False):
        losses = only(view.summary, ("loss",)).curves
        reference, *others = view.lines
        differences = {f"{name} − {reference}": view.lines[name] for name in others}
        gaps = _stacked(
            gap_curve(view.summary, name, reference, view.case).assign(
                case=view.case, sampler=label, metric="gap"
            )
            for name, label in zip(others, differences, strict=True)
        )
        title = f"({letter}) {view.title}"
        above.append(Panel(losses, view.lines, "loss", view.case, title, LOSS))
        below.append(Panel(gaps, differences, "gap", view.case, "", "loss − MD’s", zero=True))
        if was_run(view.summary, view.case):
            drawn = (losses["case"] == view.case) & losses["sampler"].isin(view.lines)
            rows = _stacked([losses[drawn], gaps]).drop(columns="metric")
            parts.append(rows.assign(**view.columns))
    rows_of_views = [slice(first, first + columns) for first in range(0, len(views), columns)]
    grid = [panel for row in rows_of_views for panel in above[row] + below[row]]
    figure, _ = learning_grid(grid, columns, width, height, xlabel="$t$", sharex="col")
    return _stacked(parts), figure


def _stacked(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Stack tables; empty ones have no types and would take those of the others."""
    tables = list(parts)
    return pd.concat([part for part in tables if len(part)] or tables[:1], ignore_index=True)


def _not_comparable(runs: Mapping[int, Summary]) -> Iterable[str]:
    unlike = [str(n) for n, summary in runs.items() if not comparable(summary, runs[10])]
    if unlike:
        yield (
            f"At this scale n = {', '.join(unlike)} differ from n = 10 in network, work or rounds: "
            "drawn to show that they run, not to be compared."
        )


def _divergence_notes(runs: Mapping[int, Summary]) -> Iterable[str]:
    for n, summary in runs.items():
        yield from (f"n = {n}: {text}" for text in divergences(summary, TRAINED))
