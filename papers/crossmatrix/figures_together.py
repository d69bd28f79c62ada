"""Figures of the cross matrix over all datasets, in rounds, bits and seconds.

They show how much faster a sampler is than MD (:func:`ranks`), how much it gains within MD's budget
(:func:`areas`), how often it is cheaper (:func:`improvement`), and whether the datasets agree on an
order (:func:`agreement`).
"""

from collections.abc import Callable, Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fedsampling.base.streams import stream
from fedsampling.evidence import across_sets
from fedsampling.evidence.numbers import listed, show
from fedsampling.experiments.cross_matrix import MEASURES, REFERENCE, TUNING
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.style import BLACK, BLUE, ORANGE, VERMILION, panels, style
from fedsampling.report.names import NAMES

from .figures import costs_by_set, empty, label, once_compared, title, unranked
from .runs import chosen, gains, sets, speed_ups

Scores = Mapping[str, pd.DataFrame]  # by dataset: rows are samplers, columns seeds


@once_compared
def ranks(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the samplers' geometric mean speed-ups over MD, sorted by rounds."""
    costs = costs_by_set(summaries)
    table = _each(lambda measure: _aggregated(speed_ups(costs, measure), "speed_up", measure))
    titles = {name: title(summaries, name) for name in costs}
    return Artefact(
        table,
        _drawn(table, "speed_up", "speed-up over MD", len(costs), _rank),
        alt="Speed-up of each sampler over MD sampling in rounds, bits and seconds, with bands, "
        "and its speed-up on the worst dataset.",
        notes=(
            *_missed(costs, titles),
            *_apart(table, "Faster than MD in {} (band above 1)", "Slower (band below 1)"),
            *_firsts(costs, titles),
            *unranked(table, len(costs)),
        ),
    )


@once_compared
def areas(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the samplers' mean gains within MD's budget, relative to MD's."""
    courses = {name: chosen(summaries[name], summaries[TUNING + name]) for name in sets(summaries)}
    gained = {
        name: {measure: gains(course, measure) for measure in MEASURES}
        for name, course in courses.items()
    }
    without_gain = {
        name: title(summaries, name)
        for name, tables in gained.items()
        if any(table["gain"].isna().any() for table in tables.values())
    }
    left_out = f"Left out, because MD gains nothing there: {listed(list(without_gain.values()))}."
    courses = {name: course for name, course in courses.items() if name not in without_gain}
    if not courses:
        return empty(left_out)
    held = dict.fromkeys(MEASURES, 0)

    def aggregated(measure: str) -> pd.DataFrame:
        tables = {name: gained[name][measure] for name in courses}
        held[measure] = sum(int((table["held"] > 0.1).sum()) for table in tables.values())
        scores = {name: table.pivot(index="sampler", columns="seed", values="gain")
                  for name, table in tables.items()}  # fmt: skip
        return _aggregated(scores, "gain", measure, "areas ").drop(columns=["reached", "runs"])

    table = _each(aggregated)
    counts = ", ".join(f"{number} in {measure}" for measure, number in held.items())
    return Artefact(
        table,
        _drawn(table, "gain", "gain relative to MD's", len(courses), _rank),
        alt="Gain of each sampler within MD's budget of rounds, bits and seconds, with bands.",
        notes=(
            *_apart(table, "More than MD for the same {} (band above 1)", "Less (band below 1)"),
            f"Runs that hold their last score for more than a tenth of the budget: {counts}.",
            _rising({title(summaries, name): course for name, course in courses.items()}),
            *([left_out] if without_gain else []),
            *unranked(table, len(courses)),
        ),
    )


def _rising(courses: Mapping[str, pd.DataFrame]) -> str:
    """State by how much MD's score rises from the third to the last quarter of its rounds."""
    parts = []
    for name, course in courses.items():
        reference = course[course["sampler"] == REFERENCE]
        quarter = np.ceil(4 * reference["at"] / reference["at"].max())
        means = reference.groupby(quarter)["score"].mean()
        parts.append(f"{name} {show(float(means[4] - means[3]))}")
    return f"MD's mean score of its last quarter of rounds minus the third: {', '.join(parts)}."


@once_compared
def improvement(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the probabilities that a run of a sampler is cheaper than a run of MD."""
    costs = costs_by_set(summaries)

    def probabilities(measure: str) -> pd.DataFrame:
        samplers, strata = _strata(speed_ups(costs, measure))
        rng = stream(0, f"crossmatrix improvement {measure}")
        estimate = across_sets.improvement(strata, samplers.index(REFERENCE), rng)
        return pd.DataFrame(
            {
                "measure": measure,
                "scheme": samplers,
                "probability": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "sets": _datasets(strata),
            }
        )

    table = _each(probabilities)
    return Artefact(
        table,
        _drawn(table, "probability", "P(cheaper than MD)", len(costs), _hundredths, middle=0.5),
        alt="Probability that a run of each sampler is cheaper than a run of MD, with bands.",
        notes=(
            *_apart(table, "Cheaper than MD in {} in most pairs of runs (band above ½)",
                    "More expensive (band below ½)", middle=0.5),
            f"The {len(table) // len(MEASURES) - 1} comparisons of a panel are not corrected for "
            "their number; without any difference, about 1 band in 20 would miss ½.",
        ),
    )  # fmt: skip


@once_compared
def agreement(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw mean ranks over datasets with Nemenyi's critical difference."""
    costs = costs_by_set(summaries)
    notes = []

    def ranked(measure: str) -> pd.DataFrame:
        mean_costs = {
            name: table.groupby("sampler")[measure].mean() for name, table in costs.items()
        }
        complete = pd.DataFrame(mean_costs).dropna()
        test = across_sets.friedman(complete.T.to_numpy())
        half = test.critical / 2 if len(costs) > 1 else 0.0
        notes.append(_verdict(measure, complete, test))
        return pd.DataFrame(
            {
                "measure": measure,
                "scheme": complete.index,
                "mean_rank": test.rank,
                # Ranks are bounded; clipping does not change whether two bars overlap.
                "low": np.maximum(test.rank - half, 1),
                "high": np.minimum(test.rank + half, len(complete)),
                "sets": len(costs),
            }
        )

    table = _each(ranked)
    samplers = {str(name) for part in costs.values() for name in part["sampler"]}
    notes += [
        f"{label(name)} was not run on every dataset and has no rank."
        for name in sorted(samplers - set(table["scheme"]))
    ]
    return Artefact(
        table,
        _drawn(table, "mean_rank", "mean rank", len(costs), _hundredths, middle=None, least=True),
        alt="Mean rank of each sampler over the datasets, with bars of the critical difference.",
        notes=tuple(notes)
        if len(costs) > 1
        else ("With a single dataset there is no agreement to test.",),
    )


def _verdict(measure: str, costs: pd.DataFrame, test: across_sets.Friedman) -> str:
    """State whether the datasets agree, and which samplers differ significantly."""
    ordered = sorted(zip(test.rank, map(str, costs.index), strict=True))
    different = [
        f"{label(first)} and {label(second)}"
        for place, (rank, first) in enumerate(ordered)
        for other, second in ordered[place + 1 :]
        if other - rank > test.critical
    ]
    pairs = len(ordered) * (len(ordered) - 1) // 2
    text = f"{len(different)} of {pairs} pairs are farther apart"
    if 0 < len(different) <= 3:
        text += f" ({'; '.join(different)})"
    return (
        f"In {measure}: Friedman's χ² = {show(test.statistic)} with {len(ordered) - 1} degrees of "
        f"freedom, p = {test.p:.2g}; the critical difference is {show(test.critical)} ranks, and "
        f"{text}."
    )


def _each(of: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
    table = pd.concat([of(measure) for measure in MEASURES], ignore_index=True)
    return table.assign(label=[label(name) for name in table["scheme"]])


def _strata(tables: Scores) -> tuple[list[str], list[np.ndarray]]:
    """Return all samplers, and each dataset's scores, (samplers, runs), NaN where not run."""
    samplers = sorted({str(name) for table in tables.values() for name in table.index})
    return samplers, [table.reindex(samplers).to_numpy(np.float64) for table in tables.values()]


def _datasets(strata: list[np.ndarray]) -> np.ndarray:
    """Count the datasets on which each sampler was run."""
    counts: np.ndarray = np.sum([~np.isnan(part[:, 0]) for part in strata], axis=0)
    return counts


def _aggregated(tables: Scores, value: str, measure: str, prefix: str = "") -> pd.DataFrame:
    """Aggregate one measure over the datasets, with the columns of the CSV."""
    samplers, strata = _strata(tables)
    scores = [np.concatenate([part[k] for part in strata]) for k in range(len(samplers))]
    aggregate = across_sets.aggregate(strata, stream(0, f"crossmatrix {prefix}{measure}"))
    return pd.DataFrame(
        {
            "measure": measure,
            "scheme": samplers,
            value: aggregate.value,
            "low": aggregate.low,
            "high": aggregate.high,
            "rank": aggregate.rank,
            "rank_low": aggregate.rank_low,
            "rank_high": aggregate.rank_high,
            "sets": _datasets(strata),
            "worst": aggregate.worst,
            "worst_set": [list(tables)[place] for place in aggregate.worst_set],
            "win_rate": aggregate.win_rate,
            # NaN is not zero: a dataset on which a sampler was not run is not a miss.
            "reached": [int((values > 0).sum()) for values in scores],
            "runs": [int((~np.isnan(values)).sum()) for values in scores],
        }
    )


def _drawn(
    table: pd.DataFrame,
    value: str,
    axis_label: str,
    datasets: int,
    remark: Callable[[pd.Series], str],
    middle: float | None = 1.0,
    least: bool = False,
) -> Figure:
    """Draw points with bands, one panel per measure, sorted by rounds.

    Parameters
    ----------
    table : DataFrame
        Columns ``measure``, ``scheme``, `value`, ``low``, ``high``, ``sets``; optionally ``worst``,
        the value on the worst dataset, and ``reached`` and ``runs``.
    axis_label : str
    remark : callable
        Text at the right of a row.
    middle : float, optional
        MD's value.
    least : bool
        Whether small values are better; the best row is on top.
    """
    rounds = table[table["measure"] == "rounds"].sort_values([value, "scheme"], ascending=not least)
    order, rows = rounds["scheme"].tolist(), np.arange(len(rounds))
    with style(), mpl.rc_context({"figure.constrained_layout.w_pad": 0.12}):
        figure, axes = panels(1, 3, width=11.6, height=1.2 + 0.26 * len(order), sharey=True)
        for axis, measure, colour in zip(axes, MEASURES, (BLUE, ORANGE, VERMILION), strict=True):
            part = table[table["measure"] == measure].set_index("scheme").loc[order]
            axis.hlines(rows, part["low"], part["high"], color=colour, linewidth=4, alpha=0.35)
            axis.plot(part[value], rows, "o", color=colour, markersize=4.5)
            if "worst" in part:
                axis.plot(part["worst"], rows, "|", color=BLACK, markersize=6)
            if middle is not None:
                axis.axvline(middle, color=BLACK, linestyle=":", linewidth=1.0)
            axis.set_xlim(min(0, part[value].min()), 1 if value == "probability" else None)
            axis.grid(axis="x")
            for row, (_, each) in zip(rows, part.iterrows(), strict=True):
                position = (1.01, row)
                at = ("axes fraction", "data")
                axis.annotate(remark(each), position, xycoords=at, va="center", fontsize=7.5)
            axis.set(title=measure, xlabel=axis_label)
        axes[0].set_yticks(rows, [_tick(row, datasets) for row in rounds.to_dict("records")])
        for name, tick in zip(order, axes[0].get_yticklabels(), strict=True):
            if name not in NAMES:  # a user's sampler
                tick.set(color=VERMILION, fontweight="bold")
    return figure


def _tick(row: Mapping[Any, Any], datasets: int) -> str:
    """Name a sampler, with its number of datasets if not all, and the runs that missed."""
    extra = [] if row["sets"] == datasets else [f"{row['sets']} datasets"]
    if missed := row.get("runs", 0) - row.get("reached", 0):
        extra.append(f"{missed} of {row['runs']} missed")
    return label(row["scheme"]) + (f" ({', '.join(extra)})" if extra else "")


def _rank(row: pd.Series) -> str:
    """Format a rank, with its interval if it has several values."""
    if np.isnan(row["rank"]):
        return "–"
    if row["rank_low"] == row["rank_high"]:
        return f"{row['rank']:g}"
    return f"{row['rank']:g} ({row['rank_low']:g}–{row['rank_high']:g})"


def _hundredths(row: pd.Series) -> str:
    (value,) = [row[name] for name in ("probability", "mean_rank") if name in row]
    return f"{value:.2f}"


def _apart(table: pd.DataFrame, better: str, worse: str, middle: float = 1.0) -> list[str]:
    """Name the samplers whose bands lie above or below MD."""
    sentences = []
    value = table.columns[2]
    for measure in MEASURES:
        part = table[(table["measure"] == measure) & (table["scheme"] != REFERENCE)]
        part = part.sort_values(value, ascending=False)
        above = [label(name) for name in part.loc[part["low"] > middle, "scheme"]]
        below = [label(name) for name in part.loc[part["high"] < middle, "scheme"]]
        sentences.append(
            f"{better.format(measure)}: {'; '.join(above) or 'none'}. "
            f"{worse}: {'; '.join(below) or 'none'}."
        )
    return sentences


def _missed(costs: Mapping[str, pd.DataFrame], titles: Mapping[str, str]) -> list[str]:
    """Name the samplers with a mean of zero, and the datasets on which all their runs missed."""
    nowhere: dict[str, list[str]] = {}
    for name, table in costs.items():
        for sampler, rounds in table.groupby("sampler")["rounds"]:
            if np.isinf(rounds).all():
                nowhere.setdefault(str(sampler), []).append(titles[name])
    if not nowhere:
        return ["Every sampler reaches the target on every dataset in at least one run."]
    parts = (f"{label(name)} on {listed(sets)}" for name, sets in sorted(nowhere.items()))
    return [f"Zero, as no run reached the target of a dataset: {'; '.join(parts)}."]


def _firsts(costs: Mapping[str, pd.DataFrame], titles: Mapping[str, str]) -> list[str]:
    """Name the sampler with the smallest mean cost on each dataset, as in the tables."""
    sentences = []
    for measure in MEASURES:
        parts = []
        for name, table in costs.items():
            means = table.groupby("sampler")[measure].mean()
            least = means.index[(means == means.min()) & np.isfinite(means)]
            first = " and ".join(label(str(sampler)) for sampler in least) or "none"
            parts.append(f"{titles[name]}: {first}")
        sentences.append(f"First in {measure}: {'; '.join(parts)}.")
    return sentences


long_ranks, long_areas, long_improvement, long_agreement = ranks, areas, improvement, agreement
