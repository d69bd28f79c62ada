"""Tables and figures of rizk2022importance: Table I, Figures 1 and 2, steadiness and falls."""

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedsampling.base.text import listed, show
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.curves import learning_curve
from fedsampling.report.drawing.style import (
    BLACK,
    BLUE,
    legend_below,
    panels,
    printed_level,
    printed_point,
    printed_words,
)

from .falls import CELL, fastest
from .levels import BALANCED, drift, gap, steady, steady_since
from .lines import LINES, SCHEMES, STANDARD, TRACKED, TRUE
from .populations import population_in_words
from .steady_states import exact, exact_gap

# Rows of Figure 2.
ROWS = {"base": "published data", BALANCED: "half of the training samples positive"}


def table1(summaries: Summaries, paper: Paper) -> Artefact:
    """Show Table I, which is text."""
    return Artefact(
        pd.read_csv(paper.folder / "table1.csv"),
        notes=("Reference numbers refer to the paper's bibliography.",),
    )


def figure1(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 1: MSD in dB, first iterations and all; and the gap that the paper prints."""
    falls = {
        "the fall": ("regression", "standard"),
        "to steady state": ("steady", "steady_standard"),
    }
    parts, ends = [], []
    with panels(1, 3, width=10.6, height=4.1, width_ratios=[4, 4, 1.7]) as (figure, axes):
        *courses, gaps = axes
        courses[1].sharey(courses[0])
        for panel, (title, names) in zip(courses, falls.items(), strict=True):
            experiments = [summaries[name] for name in names]
            curves = pd.concat([summary.curves for summary in experiments], ignore_index=True)
            curves = curves[curves["metric"] == "msd"]
            parts.append(curves.assign(panel=title))
            for sampler, line in LINES.items():
                curve = curves[curves["sampler"] == sampler]
                if len(curve):
                    learning_curve(panel, curve, line.label, line.colour, True, line.variant)
                    panel.lines[-1].set_zorder(1 if line.variant else 2)  # variants stay behind
            ends.append(experiments[0].setting("rounds"))
            panel.set(title=title, xlabel="iteration $i$", xlim=(0, ends[-1]))
        drawn = pd.concat(parts, ignore_index=True)
        courses[0].set_ylabel("MSD (dB)")
        lowest = 10 * np.log10(drawn["mean"].min())  # bands, clipped at −20 dB, reach far lower
        courses[0].set_ylim(bottom=lowest - 2)
        _draw_gaps(gaps, summaries, paper)
        legend_below(figure, axes, 3)
    summary, standard = summaries["steady"], summaries["steady_standard"]
    true, divided = ((summary, name, "base") for name in (TRUE, "fedavg"))
    fedavg = standard, STANDARD, "base"
    standard_gap, corrected = gap(fedavg, true), gap(divided, true)
    tracked = summary.per_seed(TRACKED, "msd", since=steady_since(summary))
    early, late = (set(part["sampler"]) for part in parts)
    fewer = listed([LINES[name].label for name in LINES if name in early - late])
    return Artefact(
        drawn.drop(columns=["case"]),
        figure,
        alt="MSD curves of the algorithms, in dB against iterations, which fall and then level "
        "off; left: the first iterations, middle: all iterations. Right: the gap of "
        "FedAvg over ISFedAvg, ours and the paper's.",
        notes=(
            f"At steady state FedAvg lies {standard_gap.value:.1f} dB above ISFedAvg with the true "
            f"probabilities ({show(exact_gap(exact(fedavg), exact(true)))} dB exactly); the paper "
            f"reports {paper.reported('gap')} dB. With steps divided by E_k, as in equation (6), "
            f"FedAvg lies {corrected.value:.1f} dB above "
            f"({show(exact_gap(exact(divided), exact(true)))} dB exactly).",
            "Standard FedAvg takes E_k full steps and is biased towards the agents with many "
            "epochs: it falls faster, but to a higher level.",
            "The peaks of the tracked curve are single repetitions: (53) sets the probability of a "
            "sample with a small gradient close to zero, and keeps it there until that sample is "
            "drawn again, at another model and with the weight 1/(N_k p_n). At steady state, one "
            f"repetition has {tracked.max() / tracked.mean():.0f} times the mean MSD.",
        ),
        caption_end=f"Only in the left panel: {fewer}, run for {ends[0]:,} iterations."
        if fewer
        else "",
    )


def _draw_gaps(axes: Axes, summaries: Summaries, paper: Paper) -> None:
    """Draw the steady-state gap of FedAvg over the true probabilities, next to the paper's.

    The paper prints the gap, and neither of the two levels.
    """
    true = summaries["steady"], TRUE, "base"
    fedavg = summaries["steady_standard"], STANDARD, "base"
    ours, in_theory = gap(fedavg, true), exact_gap(exact(fedavg), exact(true))
    axes.vlines(0, ours.low, ours.high, color=BLUE)
    axes.plot(0, ours.value, "o", color=BLUE)
    axes.plot(1, in_theory, "s", color=BLUE, mfc="none")
    axes.set_xticks(range(3), ["ours", "exact", "paper"])
    reported = paper.reported("gap")
    printed_point(axes, 2, reported)
    printed_words(axes, 2, reported - 0.8, f"{reported:g}", ha="center", va="top", fontsize=8.5)
    for place, value in enumerate((ours.value, in_theory)):
        axes.text(place, value + 1.2, f"{value:.1f}", ha="center", fontsize=8.5)
    axes.set(title="FedAvg over true", ylabel="gap (dB)", xlim=(-0.6, 2.6))
    axes.set_ylim(0, 1.1 * max(ours.high, reported))


def steadiness(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate the drift of each curve of Figure 1 that a claim evaluates at steady state."""
    summary, standard = summaries["steady"], summaries["steady_standard"]
    decibel = paper.claims["c1"].margin
    curves = {
        "MSD, FedAvg": (standard, STANDARD, "msd", decibel),
        "MSD, FedAvg divided by E_k": (summary, "fedavg", "msd", decibel),
    }
    curves |= {
        f"MSD, {LINES[name].label}": (summary, name, "msd", decibel) for name in (TRUE, TRACKED)
    }
    curves |= {
        f"distance of {whose} probabilities": (
            summaries["longer"],
            TRACKED,
            f"{name}_distance",
            paper.claims["c2"].margin * paper.reported(f"{name}_distance"),
        )
        for name, whose in (("agent", "agents'"), ("data", "data's"))
    }
    tests = {"holds": "steady", "fails": "not steady", "open": "too noisy to decide"}
    rows = []
    for curve, (runs, sampler, metric, margin) in curves.items():
        moves = drift(runs, sampler, metric=metric)
        level = float(runs.per_seed(sampler, metric, since=steady_since(runs)).mean())
        unit, level = ("dB", 10 * np.log10(level)) if metric == "msd" else ("", level)
        test = tests[steady(moves, margin)]
        rows.append((curve, unit, level, moves.value, moves.low, moves.high, margin, test))
    columns = ["curve", "unit", "level", "drift", "low", "high", "margin", "test"]
    return Artefact(
        pd.DataFrame(rows, columns=columns),
        formats={"level": 3, "drift": 2, "low": 2, "high": 2, "margin": 3},
        notes=("Levels are means over the last fifth of the iterations.",),
    )


def fall(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate where (49)–(50) fall fastest in Figure 1, by baseline and population."""
    compared = fastest(summaries)
    cells = compared.drop_duplicates(CELL)
    populations = [
        population_in_words(experiment, summaries[experiment], case).partition("; draw")[0]
        for experiment, case in zip(cells["experiment"], cells["case"], strict=True)
    ]
    cells = cells.assign(population=populations)
    rows = []
    for population, tried in cells.groupby("population", sort=False):
        row = {"population": str(population)}
        for (baseline, window), parts in tried.groupby(CELL[2:], sort=False)["part"]:
            count = parts.value_counts()
            row[f"FedAvg {baseline}, while {window}"] = ", ".join(
                f"{part} in {count[part]} of {len(parts)}" if len(parts) > 1 else str(part)
                for part in count.index
            )
        rows.append(row)
    return Artefact(
        compared,
        table=pd.DataFrame(rows),
        notes=(
            "The claim holds where the mean MSD in dB of (49)–(50) is below FedAvg's and below "
            "that of true and tracked probabilities, and fails where any of them is lower. The "
            "mean ends when FedAvg, or (49)–(50), reaches its steady level. Intervals are "
            "Holm-corrected over the three comparisons.",
        ),
    )


def figure2(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 2: testing error, test loss, balanced error; published and balanced data.

    On the published data the algorithms coincide, so that loss and balanced error are drawn as
    differences from FedAvg.
    """
    summary = summaries["classification"]
    titles = {
        "error": "testing error (%)",
        "loss": "test loss (×100)",
        "balanced_error": "balanced error (%)",
    }
    cases = summary.settings["cases"]
    curves = _in_percent(summary, titles)
    differences = _in_percent(_minus_fedavg(summary, titles), titles)
    best = {(c, metric): 100 * _at_optimum(summary, metric, c) for c in cases for metric in titles}
    with panels(len(cases), 3, width=9.6, height=3.2 * len(cases)) as (figure, axes):
        for panel, (case, metric) in zip(axes, best, strict=True):
            apart = case == "base" and metric != "error"
            rows = differences if apart else curves
            rows = rows[(rows["case"] == case) & (rows["metric"] == metric)]
            for sampler, line in SCHEMES.items():
                chosen = rows[rows["sampler"] == sampler]
                if apart and sampler == "fedavg":
                    panel.axhline(0, color=line.colour, linewidth=1.1)
                else:
                    learning_curve(panel, chosen, line.label, line.colour)
            panel.set(title=titles[metric] + apart * ", minus FedAvg’s", xlabel="iteration $i$")
            if not apart:
                level = best[case, metric]
                panel.axhline(level, color=BLACK, linestyle=":", linewidth=1.1, label="at $w^o$")
            if metric == "error":
                for name in ("fedavg", "isfedavg"):
                    value = paper.reported(f"error_{name}")
                    printed_level(panel, value, linewidth=0.9, zorder=1)
                panel.set_ylim(bottom=0)
                panel.set_ylabel(ROWS.get(case, case))
        legend_below(figure, [axes[0]], 3)
    last = curves[(curves["case"] == "base") & (curves["at"] == curves["at"].max())]
    errors = last[last["metric"] == "error"]["mean"]
    return Artefact(
        curves,
        figure,
        alt="Testing error, test loss and balanced error of the four algorithms, on the published "
        "data and with balanced training samples.",
        notes=(
            *_always_negative(summary, paper),
            f"At the minimiser w^o the testing error is {best['base', 'error']:.2f} %, the test "
            f"loss {best['base', 'loss']:.2f} (×100) and the balanced error "
            f"{best['base', 'balanced_error']:.2f} %.",
            "Since B_k = 1, (53) keeps the data probabilities uniform.",
        ),
        caption_end="Above, on the published data, all testing errors end within "
        f"{errors.max() - errors.min():.2g} percentage points of each other; loss and balanced "
        "error are drawn as differences from FedAvg, paired by seed.",
    )


def _always_negative(summary: Summary, paper: Paper) -> Iterator[str]:
    """Write the error of always answering “negative”; nothing if no run ever does so.

    Where the balanced error is one half, all answers are equal, or the error is larger than that.
    """
    chosen = summary.rows[(summary.rows["case"] == "base") & (summary.rows["at"] > 0)]
    keys = ["sampler", "seed", "at"]
    errors, balanced = (
        chosen[chosen["metric"] == metric].set_index(keys)["value"]
        for metric in ("error", "balanced_error")
    )
    share = 100 * errors[balanced.reindex(errors.index) == 0.5].min()
    if share < 50:
        reported = [paper.reported(f"error_{name}") for name in ("fedavg", "isfedavg")]
        yield (
            f"{share:.2f} % of the test samples are positive, so a classifier that always answers "
            "“negative” has this error"
            + (": less than both of the paper's." if share < min(reported) else ".")
        )


def _in_percent(summary: Summary, metrics: Collection[str]) -> pd.DataFrame:
    """Return the curves of some metrics, times 100, without w_0 = 0, which predicts no label."""
    curves = summary.curves[summary.curves["metric"].isin(list(metrics))].copy()
    curves = curves[curves["at"] > 0]
    curves[["mean", "low", "high"]] *= 100
    return curves


def _minus_fedavg(summary: Summary, metrics: Collection[str]) -> Summary:
    """Subtract FedAvg's value of the same seed from all others."""
    rows = summary.rows[summary.rows["metric"].isin(list(metrics))]
    keys = ["case", "metric", "seed", "at"]
    fedavg = rows[rows["sampler"] == "fedavg"].set_index(keys)["value"]
    others = rows[rows["sampler"] != "fedavg"]
    reference = fedavg.reindex(pd.MultiIndex.from_frame(others[keys])).to_numpy()
    return replace(summary, rows=others.assign(value=others["value"] - reference))


def _at_optimum(summary: Summary, metric: str, case: str = "base") -> float:
    return float(summary.select(metric=f"{metric}_at_optimum", case=case)["value"].iloc[0])
