"""Figures of the cross matrix over all datasets, in rounds, bits and seconds.

They show how much faster a sampler is than MD (:func:`ranks`), how much it gains within MD's budget
(:func:`areas`), how often it is cheaper (:func:`improvement`), and whether the datasets agree on an
order (:func:`agreement`).
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from fedsampling.base.streams import stream
from fedsampling.evidence import across_datasets
from fedsampling.evidence.numbers import listed, show
from fedsampling.experiments.cross_matrix import MEASURES, REFERENCE, TUNING
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from .bench import reference_scores
from .presentation import (
    agreement_sentence,
    draw_bands,
    empty,
    for_each_measure,
    label,
    mean_rank_artefact,
    rank_text,
    requires_comparison,
    title,
    unranked,
)
from .runs import (
    aggregated,
    by_sampler,
    compared_datasets,
    costs_by_dataset,
    datasets_run,
    gains,
    speed_ups,
    tuned_trajectories,
)


@requires_comparison
def ranks(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the samplers' geometric mean speed-ups over MD, sorted by rounds."""
    costs = costs_by_dataset(summaries)

    def aggregated_speed_ups(measure: str) -> pd.DataFrame:
        values = speed_ups(costs, measure)
        table = aggregated(values, "speed_up", stream(0, f"crossmatrix {measure}"))
        # NaN is not zero: a dataset on which a sampler was not run is not a miss.
        each_run = np.hstack(by_sampler(values)[1])
        return table.assign(reached=(each_run > 0).sum(1), runs=(~np.isnan(each_run)).sum(1))

    table = for_each_measure(aggregated_speed_ups)
    titles = {name: title(summaries, name) for name in costs}
    return Artefact(
        table,
        draw_bands(table, "speed_up", "speed-up over MD", len(costs), rank_text),
        alt="Speed-up of each sampler over MD sampling in rounds, bits and seconds, with bands, "
        "and its speed-up on the worst dataset.",
        notes=(
            *_missed(costs, titles),
            *_above_and_below(
                table, "speed_up", "Faster than MD in {} (band above 1)", "Slower (band below 1)"
            ),
            *_firsts(costs, titles),
            *unranked(table, len(costs)),
        ),
    )


@requires_comparison
def areas(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the samplers' mean gains within MD's budget, relative to MD's."""
    runs = {
        name: tuned_trajectories(summaries[name], summaries[TUNING + name])
        for name in compared_datasets(summaries)
    }
    gains_by_measure = {
        measure: {name: gains(table, measure) for name, table in runs.items()}
        for measure in MEASURES
    }
    without_gain = [
        name
        for name in runs
        if any(tables[name]["gain"].isna().any() for tables in gains_by_measure.values())
    ]
    titles_without_gain = listed([title(summaries, name) for name in without_gain])
    left_out = f"Left out, because MD gains nothing there: {titles_without_gain}."
    datasets = [name for name in runs if name not in without_gain]
    if not datasets:
        return empty(left_out)

    def aggregated_gains(measure: str) -> pd.DataFrame:
        tables = gains_by_measure[measure]
        wide = {
            name: tables[name].pivot(index="sampler", columns="seed", values="gain")
            for name in datasets
        }
        return aggregated(wide, "gain", stream(0, f"crossmatrix areas {measure}"))

    table = for_each_measure(aggregated_gains)
    held = {
        measure: sum(int((tables[name]["held"] > 0.1).sum()) for name in datasets)
        for measure, tables in gains_by_measure.items()
    }
    counts = ", ".join(f"{number} in {measure}" for measure, number in held.items())
    return Artefact(
        table,
        draw_bands(table, "gain", "gain relative to MD's", len(datasets), rank_text),
        alt="Gain of each sampler within MD's budget of rounds, bits and seconds, with bands.",
        notes=(
            *_above_and_below(
                table,
                "gain",
                "More than MD for the same {} (band above 1)",
                "Less (band below 1)",
            ),
            f"Runs that hold their last score for more than a tenth of the budget: {counts}.",
            _last_gains({title(summaries, name): runs[name] for name in datasets}),
            *([left_out] if without_gain else []),
            *unranked(table, len(datasets)),
        ),
    )


def _last_gains(runs: Mapping[str, pd.DataFrame]) -> str:
    """State by how much MD's score rises from the third to the last quarter of its rounds."""
    parts = [f"{name} {show(reference_scores(table).last_gain)}" for name, table in runs.items()]
    return f"MD's mean score of its last quarter of rounds minus the third: {', '.join(parts)}."


@requires_comparison
def improvement(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the probabilities that a run of a sampler is cheaper than a run of MD."""
    costs = costs_by_dataset(summaries)

    def probabilities(measure: str) -> pd.DataFrame:
        samplers, values = by_sampler(speed_ups(costs, measure))
        rng = stream(0, f"crossmatrix improvement {measure}")
        estimate = across_datasets.improvement(values, samplers.index(REFERENCE), rng)
        return pd.DataFrame(
            {
                "scheme": samplers,
                "probability": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "sets": datasets_run(values),
            }
        )

    table = for_each_measure(probabilities)
    return Artefact(
        table,
        draw_bands(
            table,
            "probability",
            "P(cheaper than MD)",
            len(costs),
            lambda row: f"{row['probability']:.2f}",
            value_of_md=0.5,
        ),
        alt="Probability that a run of each sampler is cheaper than a run of MD, with bands.",
        notes=(
            *_above_and_below(
                table,
                "probability",
                "Cheaper than MD in {} in most pairs of runs (band above ½)",
                "More expensive (band below ½)",
                value_of_md=0.5,
            ),
            f"The {len(table) // len(MEASURES) - 1} comparisons of a panel are not corrected for "
            "their number; without any difference, about 1 band in 20 would miss ½.",
        ),
    )


@requires_comparison
def agreement(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw mean ranks over datasets with Nemenyi's critical difference."""
    costs = costs_by_dataset(summaries)
    notes = []

    def mean_ranks(measure: str) -> pd.DataFrame:
        mean_costs = {
            name: table.groupby("sampler")[measure].mean() for name, table in costs.items()
        }
        complete = pd.DataFrame(mean_costs).dropna()
        test = across_datasets.friedman(complete.T.to_numpy())
        half = test.critical / 2 if len(costs) > 1 else 0.0
        notes.append(agreement_sentence(measure, complete.index, test))
        return pd.DataFrame(
            {
                "scheme": complete.index,
                "mean_rank": test.rank,
                # Ranks are bounded; clipping does not change whether two bars overlap.
                "low": np.maximum(test.rank - half, 1),
                "high": np.minimum(test.rank + half, len(complete)),
                "sets": len(costs),
            }
        )

    table = for_each_measure(mean_ranks)
    samplers = {str(name) for part in costs.values() for name in part["sampler"]}
    notes += [
        f"{label(name)} was not run on every dataset and has no rank."
        for name in sorted(samplers - set(table["scheme"]))
    ]
    if len(costs) == 1:
        notes = ["With a single dataset there is no agreement to test."]
    return mean_rank_artefact(table, len(costs), notes)


def _above_and_below(
    table: pd.DataFrame, value: str, better: str, worse: str, value_of_md: float = 1.0
) -> list[str]:
    """Name the samplers whose bands lie above or below MD."""
    sentences = []
    for measure in MEASURES:
        part = table[(table["measure"] == measure) & (table["scheme"] != REFERENCE)]
        part = part.sort_values(value, ascending=False)
        above = [label(name) for name in part.loc[part["low"] > value_of_md, "scheme"]]
        below = [label(name) for name in part.loc[part["high"] < value_of_md, "scheme"]]
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
            cheapest = means.index[(means == means.min()) & np.isfinite(means)]
            first = " and ".join(label(str(sampler)) for sampler in cheapest) or "none"
            parts.append(f"{titles[name]}: {first}")
        sentences.append(f"First in {measure}: {'; '.join(parts)}.")
    return sentences


long_ranks, long_areas, long_improvement, long_agreement = ranks, areas, improvement, agreement
