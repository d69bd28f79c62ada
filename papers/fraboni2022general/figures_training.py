"""Figures 1 to 7 of fraboni2022general: training on Shakespeare and CIFAR-10.

Differences of two schemes are taken seed by seed.
"""

from collections.abc import Iterable, Mapping
from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedsampling.evidence.statistics import difference, holm, show_estimates
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.curves import (
    Panel,
    divergences,
    learning_curve,
    learning_grid,
    only,
    rolling,
)
from fedsampling.report.drawing.style import BLUE, GREEN, ORANGE, PURPLE, Line, style

from .runs import (
    COMPARED,
    HALF,
    SHOWN,
    TRAINED,
    comparable,
    departures,
    gap_curve,
    half_sampled,
    has,
    loss_pairs,
    paired_losses,
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
    lines = {}
    for (n, summary), colour in zip(runs.items(), COLOURS, strict=True):
        is_other = not comparable(summary, runs[10])
        lines[n] = Line(f"$n = {n}$" + (" (other runs)" if is_other else ""), colour, is_other)
    return Artefact(
        table,
        _gap_grid(table, "clients", lines),
        alt="Difference of the global loss, MD − Uniform sampling, against rounds, with 95 % "
        "bands: a curve for each number of clients, a panel for each importance.",
        notes=(
            *departures({HALF[n]: summary for n, summary in runs.items()}, paper),
            *(
                f"MD − Uniform, {JOINT}: {show_estimates(gaps)} ({IMPORTANCES[case][1:-1]})."
                for case, gaps in mean_gaps.items()
            ),
            *_not_comparable(runs),
            *_divergence_notes(runs),
        ),
    )


def figure2(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 2: global losses, with differences from MD as insets, by importance and n."""
    runs = half_sampled(summaries)
    curves = {n: only(summary, ("loss",)).curves for n, summary in runs.items()}
    views = [(case, n) for case in IMPORTANCES for n in runs]
    grid = [
        Panel(curves[n], TRAINED, "loss", case, f"({letter}) $n = {n}$, {IMPORTANCES[case]}", LOSS)
        for letter, (case, n) in zip("abcdefgh", views, strict=True)
    ]
    figure, axes = learning_grid(grid, len(runs), width=11.4, height=5.6, xlabel="$t$")
    parts = []
    for axis, (case, n) in zip(axes, views, strict=True):
        rows = curves[n][curves[n]["case"] == case]
        if len(rows):
            _draw_differences(axis, runs[n], case)
            parts.append(rows.assign(clients=n))
    return Artefact(
        pd.concat(parts, ignore_index=True).drop(columns="metric"),
        figure,
        alt="Global loss against rounds for MD, Uniform and Clustered sampling, a column for each "
        "number of clients, a row for each importance, each with an inset of the differences "
        "from MD sampling.",
        notes=(
            *departures({HALF[n]: summary for n, summary in runs.items()}, paper),
            *_not_comparable(runs),
            *_divergence_notes(runs),
        ),
    )


def figure3(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 3: L(MD) − L(Uniform) for every m with K = 50; m = 40 is Figure 1's."""
    return _draw_gaps(summaries, paper, ("varying_m", HALF[80]))


def figure5(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 5: L(MD) − L(Uniform) for m = 8, 40 with K = 1, without the first rounds."""
    since = paper.reported("figure5_first") / paper.experiments["one_step"]["rounds"]
    return _draw_gaps(summaries, paper, ("one_step",), since, paper.reported("figure5_fewest"))


def figure7(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 7: losses on CIFAR-10, one panel per α, and their paired difference."""
    summary = only(summaries["cifar"], SHOWN)
    smooth = rolling(only(summary, ("loss",)), round(paper.reported("rolling_mean")))
    curves, cases = smooth.curves, paper.experiments["cifar"]["cases"]
    lines = {"uniform − md": Line("Uniform − MD", GREEN)}
    above, below, parts, pairs = [], [], [], {}
    for letter, (case, settings) in zip("abc", cases.items(), strict=True):
        alpha = f"α = {settings['dataset']['partition']['alpha']:g}"
        gaps = gap_curve(smooth, "uniform", "md", case).assign(case=case, sampler="uniform − md")
        above.append(Panel(curves, COMPARED, "loss", case, f"({letter}) {alpha}", LOSS))
        below.append(
            Panel(gaps.assign(metric="gap"), lines, "gap", case, "", "difference", zero=True)
        )
        if has(summary, case):
            parts += [curves[curves["case"] == case].drop(columns="metric"), gaps]
            pairs[alpha] = paired_losses(summary, "uniform", "md", case)
    figure, _ = learning_grid(
        above + below, len(above), width=9.6, height=5.0, xlabel="$t$", height_ratios=(2, 1)
    )
    return Artefact(
        pd.concat(parts, ignore_index=True),
        figure,
        alt="Global loss on CIFAR-10 against rounds for MD and Uniform sampling, a panel for each "
        "α; below each the difference Uniform − MD with its 95 % band.",
        notes=(
            *departures({"cifar": summary}, paper),
            f"Uniform − MD, {JOINT}: {show_estimates(holm(pairs, difference))}.",
            *divergences(summary, COMPARED),
        ),
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
    colours = dict(zip((m for m, *_ in pairs), COLOURS, strict=False))
    lines = {m: Line(f"$m = {m}$", colours[m]) for m in drawn}
    table = _gap_table(drawn, "m", since, main.settings["seeds"])
    names = {name: line for m, _, pair in pairs for name, line in _lines(pair, m).items()}
    lost = (text for summary in runs.values() for text in divergences(summary, names))
    return Artefact(
        table,
        _gap_grid(table, "m", lines),
        alt="Difference of the global loss, MD − Uniform sampling, against rounds, with 95 % "
        "bands: a curve for each number of sampled clients, a panel for each importance.",
        notes=(*departures({experiments[0]: main}, paper), *lost),
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
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def _gap_grid(table: pd.DataFrame, column: str, lines: Mapping[int, Line]) -> Figure:
    """Draw differences of the loss, a panel for each importance, a curve for each of `lines`.

    `table`: of :func:`gap_curve`, with ``case`` and a `column` that holds the keys of `lines`.
    """
    curves = table.rename(columns={column: "sampler"}).assign(metric="gap")
    grid = [
        Panel(curves, lines, "gap", case, f"({letter}) {title}", GAP, zero=True)
        for letter, (case, title) in zip("ab", IMPORTANCES.items(), strict=True)
    ]
    figure, _ = learning_grid(grid, 2, width=9.2, height=3.6, xlabel="server aggregations $t$")
    return figure


def _draw_losses(summaries: Summaries, paper: Paper, experiment: str) -> Artefact:
    """Draw Figure 4 or 6: both samplers' losses, by importance (rows) and m (columns)."""
    summary = only(summaries[experiment], SHOWN)
    curves = summary.curves[summary.curves["metric"] == "loss"]
    pairs = _sampler_pairs(paper, experiment)
    views = [(case, m) for case in IMPORTANCES for m in pairs]
    grid = [
        Panel(curves, _lines(pairs[m]), "loss", case, f"({x}) $m = {m}$, {IMPORTANCES[case]}", LOSS)
        for x, (case, m) in zip("abcdef", views, strict=False)
    ]
    width = 3.2 * len(pairs) + 0.4
    figure, _ = learning_grid(grid, len(pairs), width, height=5.2, xlabel="$t$")
    lines = {name: line for m, pair in pairs.items() for name, line in _lines(pair, m).items()}
    return Artefact(
        curves.drop(columns="metric"),
        figure,
        alt="Global loss against rounds for MD and Uniform sampling, a column for each number of "
        "sampled clients, a row for each importance.",
        notes=(*departures({experiment: summary}, paper), *divergences(summary, lines)),
    )


figure4 = partial(_draw_losses, experiment="varying_m")  # m = 4, 8 with K = 50
figure6 = partial(_draw_losses, experiment="one_step")  # m = 4, 8, 40 with K = 1


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


def _draw_differences(axis: Axes, summary: Summary, case: str) -> None:
    """Draw the differences from MD's loss, paired by seed, into the free corner of a panel."""
    low, high = axis.get_ylim()
    axis.set_ylim(low, high + 0.25 * (high - low))  # room above the curves, which fall
    with style():
        inset = axis.inset_axes((0.45, 0.45, 0.53, 0.48))
        for name in TRAINED.keys() - {"md"}:
            gap = gap_curve(only(summary, ("loss",)), name, "md", case)
            learning_curve(inset, gap, TRAINED[name].label, TRAINED[name].colour)
        inset.axhline(0, color=TRAINED["md"].colour, linewidth=1.0)
        inset.set_title("minus MD’s", fontsize=7, pad=2)
        inset.tick_params(labelsize=7)


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
