"""OCS compared with AOCS (Chen et al. 2022), on quadratics and on a network's norms.

The experiments ``dsgd`` (a strongly convex quadratic) and ``dsgd_exchanges`` (other numbers of
exchanges in AOCS) train no networks.  In ``writers_training``, each round of the sampler
``optimal`` also records the results of equation (6) and of Algorithm 2 with j_max = 0, 1, … on the
same norms (the sampler's option ``beside``).
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedsampling.base.text import show
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.curves import band
from fedsampling.report.drawing.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    VERMILION,
    panels,
)
from fedsampling.theory.improvement import improvement_factor

from .courses import EXACT, curve, points, population, title

FLOOR = 1e-16  # of logarithmic axes
NETWORK_CASES = (VERMILION, BLUE, GREEN)


def algorithms(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw α^k (12) and γ^k during DSGD, and the loss of AOCS (Algorithm 2) with few exchanges."""
    training, exchanges = summaries["dsgd"], summaries["dsgd_exchanges"]
    n, m = _clients(training)
    lost = _lost_on_quadratics(exchanges)
    with panels(2, 2, width=9.2, height=6.6) as (figure, axes):
        data = [
            _draw_factor(axes[0], training, exchanges, "alpha"),
            _draw_factor(axes[1], training, exchanges, "gamma"),
            _draw_lost(axes[2], lost, "shortfall"),
            _draw_lost(axes[3], lost, "excess"),
        ]
        axes[0].set(title="(a) variance ratio", ylabel=r"$\alpha^k$", ylim=(0, 1.04))
        axes[1].set(title="(b) improvement factor", ylabel=r"$\gamma^k$", ylim=(0, 1.04))
        axes[1].axhline(m / n, color=BLUE, linewidth=1.0, linestyle=":")
        axes[1].text(0, m / n + 0.015, "$m/n$", color=BLUE, fontsize=8.5)
        axes[2].set(title="(c) expected reports", ylabel="$m - $expected reports, largest")
        axes[3].set(title="(d) variance", ylabel="AOCS over OCS, minus 1, largest")
        axes[0].legend(loc="upper left", bbox_to_anchor=(0.28, 0.58))
        axes[3].legend(loc="center right", bbox_to_anchor=(1.0, 0.36))
    return Artefact(
        pd.concat(data, ignore_index=True),
        figure,
        alt="During training the variance ratio of OCS falls with equal weights and stays low with "
        "unequal weights; the improvement factor lies between m/n and 1. With few exchanges, "
        "AOCS has fewer reports and more variance than OCS; from m − 1 exchanges on, both "
        "agree up to rounding.",
        notes=(_algorithm_note(paper),),
    )


def exchanges(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw α^k (12), γ^k and expected reports of a network, and AOCS against OCS (6) by j_max."""
    summary = summaries["writers_training"]
    n, m = population(summary)
    with panels(2, 2, width=9.2, height=6.8) as (figure, axes):
        cases = list(zip(summary.settings["cases"], NETWORK_CASES, strict=False))
        along = [_draw_along(axes, summary, case, colour) for case, colour in cases]
        worst = {title(summary, case): _lost_on_networks(summary, case) for case, _ in cases}
        data = [part for parts in along for part in parts]
        for (name, lost), (_, colour) in zip(worst.items(), cases, strict=True):
            data.append(_draw_worst(axes[3], lost, name, colour))
        axes[0].set(title="(a) variance ratio", ylabel=r"$\alpha^k$", ylim=(0, None))
        axes[1].set(title="(b) improvement factor", ylabel=r"$\gamma^k$", ylim=(0, 1.04))
        axes[1].axhline(m / n, color=BLACK, linewidth=0.8, linestyle=":")
        axes[1].text(0, m / n + 0.015, "$m/n$", fontsize=8.5)
        axes[2].set(title="(c) expected reports", ylabel=r"$\sum_i p_i^k$")
        axes[2].axhline(m, color=BLACK, linewidth=0.8, linestyle=":")
        for panel in axes[:3]:
            panel.set_xlabel("communication round $k$")
        axes[3].axhline(EXACT, color=BLACK, linewidth=0.8, linestyle=":")
        axes[3].set(title="(d) worst round", ylabel="AOCS compared with OCS", yscale="log")
        axes[3].set_xlabel(r"$j_{\max}$")
        axes[3].set_xticks(_numbers(summary))
        axes[3].set_ylim(bottom=FLOOR / 3)
        low, high = axes[2].get_ylim()
        axes[2].set_ylim(bottom=low - (high - low) / 4)  # room for the legend
        for panel in (axes[0], axes[2], axes[3]):  # of colours, dashes and marks
            panel.legend()
    return Artefact(
        pd.concat(data, ignore_index=True),
        figure,
        alt="During training of a network the variance ratio of optimal sampling is far below 1. "
        "AOCS without exchanges has fewer than m reports; from m − 1 exchanges on it is OCS.",
        notes=tuple(_exchanges_note(name, lost) for name, lost in worst.items()),
    )


def _clients(summary: Summary, case: str | None = None) -> tuple[int, int]:
    """Return the number of clients on quadratics and the expected number of reports."""
    settings = summary.settings["settings"]
    m = settings["m"] if case is None else summary.setting("m", case)
    return int(settings["clients"]), int(m)


def _draw_factor(axis: Axes, training: Summary, exchanges: Summary, metric: str) -> pd.DataFrame:
    lines = []
    curves = (
        (training, "equal", "optimal", GREEN, "OCS, equal weights"),
        (training, "unequal", "optimal", VERMILION, "OCS, unequal weights"),
        (exchanges, "m3", "approximate-0", BLACK, "AOCS, unequal weights, no exchange"),
    )
    for summary, case, sampler, colour, label in curves:
        mean = curve(summary, case, sampler, metric)
        dashes = "-" if sampler == "optimal" else "--"
        axis.plot(mean.index, mean, dashes, color=colour, label=label)
        lines.append(points(metric, label, mean))
        if sampler == "optimal":
            low, high = (
                curve(summary, case, sampler, f"{metric}_{end}") for end in ("low", "high")
            )
            band(axis, mean.index, low, high, label, colour)
            for end, values in (("least", low), ("largest", high)):
                lines.append(points(metric, f"{label}, {end}", values))
    axis.set_xlabel("round $k$")
    return pd.concat(lines)


def _lost_on_quadratics(exchanges: Summary) -> pd.DataFrame:
    """Tabulate the largest shortfall and excess by j_max."""
    rows = []
    for case in exchanges.settings["cases"]:
        _, m = _clients(exchanges, case)
        exact = curve(exchanges, case, "optimal", "alpha")
        for name, sampler in exchanges.settings["samplers"].items():
            if sampler["name"] != "approximate":
                continue
            j = int(sampler["j_max"])
            batch = curve(exchanges, case, name, "batch_low")
            alpha = curve(exchanges, case, name, "alpha")
            rows.append((m, j, m - float(batch.min()), float((alpha / exact).max()) - 1))
    return pd.DataFrame(rows, columns=["m", "j_max", "shortfall", "excess"])


def _draw_lost(axis: Axes, lost: pd.DataFrame, quantity: str) -> pd.DataFrame:
    lines = []
    for m, colour in zip(sorted(lost["m"].unique()), (ORANGE, PURPLE), strict=True):
        part = lost[lost["m"] == m].set_index("j_max")[quantity]
        floored = np.maximum(part, FLOOR)
        axis.plot(part.index, floored, "o-", color=colour, markersize=3.5, label=f"$m={m}$")
        lines.append(points(quantity, f"m={m}", part))
    axis.axhline(EXACT, color=BLACK, linewidth=0.8, linestyle=":")
    axis.set(yscale="log", ylim=(FLOOR / 3, 3 * max(lost[quantity].max(), 1)), xlabel=r"$j_{\max}$")
    return pd.concat(lines)


def _algorithm_note(paper: Paper) -> str:
    m, j_max = round(paper.reported("reports")), paper.reported("j_max")
    return (
        "AOCS equals OCS if j_max ≥ m − 1: exchanges have no effect once none makes another client "
        "certain to report, and at most m − 1 clients are certain while others have a non-zero "
        f"update. With the paper's m = {m}, {m - 1} exchanges yield equation (6) for any norms, so "
        f"its figures, with j_max = {j_max:g}, show OCS."
    )


def _numbers(summary: Summary) -> range:
    """Return the numbers of exchanges that the runs recorded."""
    return range(int(summary.setting("beside", sampler="optimal")) + 1)


def _draw_along(axes: list[Axes], summary: Summary, case: str, colour: str) -> list[pd.DataFrame]:
    n, m = population(summary)
    of_set = title(summary, case)
    drawn = []
    for name, metric, dashes in (
        ("OCS", "alpha_exact", "-"),
        ("AOCS, no exchange", "alpha_0", "--"),
    ):
        by_run = summary.select("optimal", metric, case)
        gammas = by_run.assign(value=improvement_factor(by_run["value"].to_numpy(), n, m))
        alpha, gamma = (rows.groupby("at")["value"].mean() for rows in (by_run, gammas))
        for axis, factor, values in ((axes[0], "alpha", alpha), (axes[1], "gamma", gamma)):
            label = of_set if dashes == "-" else f"_{of_set}"
            axis.plot(values.index, values, dashes, color=colour, label=label, linewidth=1.0)
            drawn.append(points(factor, f"{of_set}, {name}", values))
    most = max(_numbers(summary))
    for j, dashes in ((0, "--"), (1, ":"), (most, "-")):
        reports = curve(summary, case, "optimal", f"expected_reports_{j}")
        axes[2].plot(reports.index, reports, dashes, color=colour, linewidth=1.0)
        _explain(axes[2], _exchanges_in_words(j, most), dashes)
        drawn.append(points("expected reports", f"{of_set}, j_max = {j}", reports))
    return drawn


def _exchanges_in_words(j: int, most: int) -> str:
    return {0: "AOCS, no exchange", 1: "one exchange", most: f"{most} exchanges, as OCS"}[j]


def _explain(axes: Axes, label: str, look: str, fill: str = BLACK) -> None:
    """Add an entry for dashes or marks to a legend, once, in the colour of none of the datasets."""
    if label not in axes.get_legend_handles_labels()[1]:
        axes.plot([], [], look, color=BLACK, lw=1.0, ms=3.5, mfc=fill, label=label)


def _lost_on_networks(summary: Summary, case: str) -> pd.DataFrame:
    """Tabulate the worst round of all runs by j_max: missing reports and excess variance."""
    _, m = population(summary)
    rows = summary.select("optimal", case=case)
    rounds = rows.pivot(index=["seed", "at"], columns="metric", values="value")
    lost = [
        (
            j,
            m - float(rounds[f"expected_reports_{j}"].min()),
            float((rounds[f"alpha_{j}"] / rounds["alpha_exact"]).max()) - 1,
        )
        for j in _numbers(summary)
    ]
    return pd.DataFrame(lost, columns=["j_max", "shortfall", "excess"])


def _draw_worst(axis: Axes, worst: pd.DataFrame, name: str, colour: str) -> pd.DataFrame:
    parts = []
    for quantity, label, look, hollow in (
        ("shortfall", "$m - $expected reports", "o-", False),
        ("excess", "variance over OCS's, minus 1", "s--", True),
    ):
        values = worst.set_index("j_max")[quantity]
        floored, fill = np.maximum(values, FLOOR), "white" if hollow else colour
        axis.plot(values.index, floored, look, color=colour, ms=3.5, mfc=fill, label=f"_{name}")
        _explain(axis, label, look, "white" if hollow else BLACK)
        parts.append(points(quantity, name, values))
    return pd.concat(parts)


def _exchanges_note(name: str, lost: pd.DataFrame) -> str:
    enough = lost.loc[(lost["excess"] < EXACT) & (lost["shortfall"] < EXACT), "j_max"]
    first = lost.iloc[0]
    return (
        f"{name}: AOCS equals OCS up to rounding in every round "
        + (f"from j_max = {enough.min()} on" if len(enough) else "for no recorded j_max")
        + f"; without exchanges it has up to {show(first['shortfall'])} expected reports too few, "
        f"and up to {show(100 * first['excess'])} % more variance."
    )
