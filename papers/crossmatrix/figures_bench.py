"""Tables and figures of the benchmark of many small datasets.

:mod:`.bench` computes costs and speed-ups; :mod:`.figures_map` draws the decision map.
"""

from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import rankdata, wilcoxon

from fedsampling.base.streams import stream
from fedsampling.evidence import across_datasets
from fedsampling.evidence.numbers import listed, show
from fedsampling.experiments.cross_matrix import FULL, MEASURES, REFERENCE, TUNING
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.style import CLASSES, legend_below, panels, style

from .bench import (
    DEFAULT,
    TAILS,
    aggregated_speed_ups,
    bench_datasets,
    bench_datasets_away,
    cost_array,
    costs_by_dataset,
    costs_on,
    interval_over_datasets,
    log_relative_costs,
    log_speed_ups,
    mean_costs,
    reference_scores_on,
    resampled_log_speed_ups,
    runs_with,
    samplers_in,
)
from .decision_map import information_needs
from .figures_by_dataset import tuning
from .presentation import (
    DIFFER,
    UNITS,
    agreement_sentence,
    by_dataset,
    draw_bands,
    for_each_measure,
    label,
    mean_rank_artefact,
    rank_text,
    requires_benchmark,
    title,
    unranked,
)
from .runs import aggregated, gains

MAX_EXACT_DATASETS = 13  # for which a signed-rank test tries all combinations of signs
SHOWN_PROFILES = 8  # samplers in the figure of performance profiles


@requires_benchmark
def bench_ranks(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw speed-ups over MD: geometric means over datasets, with bands over seeds."""
    costs, default_costs = costs_by_dataset(summaries), costs_by_dataset(summaries, "default")
    table = for_each_measure(lambda measure: aggregated_speed_ups(costs, default_costs, measure))
    needs = {name: " ".join(sorted(kinds)) for name, kinds in information_needs(summaries).items()}
    table["needs"] = table["scheme"].map(needs)
    return Artefact(
        table,
        draw_bands(table, "speed_up", "speed-up over MD", len(costs), rank_text),
        alt="Speed-up of each sampler over MD sampling in rounds, bits and seconds, with bands, "
        "and that on its worst dataset.",
        notes=(
            *_faster_and_slower(table),
            _rounds_by_dataset(summaries),
            _not_converged(summaries),
            *unranked(table, len(costs)),
        ),
    )


@requires_benchmark
def bench_areas(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the gains within MD's budget, relative to MD's: no target enters."""
    names = bench_datasets(summaries)
    runs = {name: runs_with(summaries[name], summaries[TUNING + name], "tuned") for name in names}

    def aggregated_gains(measure: str) -> pd.DataFrame:
        wide = {
            name: gains(table, measure).pivot(index="sampler", columns="seed", values="gain")
            for name, table in runs.items()
        }
        rng = stream(0, f"crossmatrix bench areas {measure}")
        return aggregated(wide, "gain", rng).drop(columns="win_rate")

    table = for_each_measure(aggregated_gains)
    return Artefact(
        table,
        draw_bands(table, "gain", "gain relative to MD's", len(names), rank_text),
        alt="Gain of each sampler within MD's budget of rounds, bits and seconds, with bands.",
        notes=tuple(unranked(table, len(names))),
    )


@requires_benchmark
def bench_improvement(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the probabilities that a run is cheaper than MD's, on these datasets and on others."""
    costs = costs_by_dataset(summaries)
    samplers = samplers_in(costs)
    reference = samplers.index(REFERENCE)

    def probabilities(measure: str) -> pd.DataFrame:
        arrays = [cost_array(table, measure, samplers) for table in costs.values()]
        scores = [-np.log(array).mean(0) for array in arrays]
        rng = stream(0, f"crossmatrix bench improvement {measure}")
        estimate = across_datasets.improvement(scores, reference, rng)
        by_dataset = np.array([_probabilities(of_dataset, reference, rng) for of_dataset in scores])
        set_low, set_high = interval_over_datasets(by_dataset, rng)
        return pd.DataFrame(
            {
                "scheme": samplers,
                "probability": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "set_low": set_low,
                "set_high": set_high,
                "sets": (~np.isnan(by_dataset)).sum(0),
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
        alt="Probability that a run of each sampler is cheaper than one of MD, with bands.",
        notes=tuple(_likely_cheaper(table)),
    )


@requires_benchmark
def bench_agreement(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw mean ranks with Nemenyi's critical difference; test each sampler against MD."""
    costs = costs_by_dataset(summaries)
    notes = []

    def mean_ranks(measure: str) -> pd.DataFrame:
        log_costs = log_relative_costs(costs, measure).dropna(axis=1)
        test = across_datasets.friedman(log_costs.to_numpy())
        half = test.critical / 2 if len(log_costs) > 1 else 0.0
        p = np.array([signed_rank_p(log_costs[name].to_numpy()) for name in log_costs])
        adjusted = _holm(p, log_costs.columns != REFERENCE)
        different = [label(name) for name in log_costs.columns[adjusted < 0.05]]
        notes.append(agreement_sentence(measure, log_costs.columns, test))
        notes.append(
            f"In {measure}: differ from MD by Wilcoxon's signed-rank test over datasets, after "
            f"Holm's correction: {listed(different) or 'none'}."
        )
        return pd.DataFrame(
            {
                "scheme": log_costs.columns,
                "mean_rank": test.rank,
                "low": np.maximum(test.rank - half, 1),
                "high": np.minimum(test.rank + half, log_costs.shape[1]),
                "wilcoxon_p": p,
                "holm_p": adjusted,
                "sets": len(log_costs),
            }
        )

    table = for_each_measure(mean_ranks)
    return mean_rank_artefact(table, len(costs), notes)


@requires_benchmark
def bench_profiles(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw performance profiles: the share of datasets on which a cost is within a factor."""
    costs = costs_by_dataset(summaries)
    factors = np.round(2 ** np.linspace(0, 3, 25), 3)

    def profiles(measure: str) -> pd.DataFrame:
        log_costs = log_relative_costs(costs, measure).drop(columns=[FULL], errors="ignore")
        ratios = np.exp(log_costs.sub(log_costs.min(axis=1), axis=0))
        tables = []
        for name in ratios:
            known_ratios = ratios[name].dropna().to_numpy()
            share = [float((known_ratios <= factor * (1 + 1e-9)).mean()) for factor in factors]
            tables.append(pd.DataFrame({"scheme": name, "factor": factors, "share": share}))
        return pd.concat(tables)

    table = for_each_measure(profiles)
    with style():
        figure, axes = panels(1, 3, width=11.6, height=3.4, sharey=True)
        areas = table.groupby(["measure", "scheme"])["share"].mean()
        best = areas.groupby("scheme").mean().sort_values(ascending=False).index
        drawn_samplers = list(dict.fromkeys([REFERENCE, *best]))[:SHOWN_PROFILES]
        for axis, measure in zip(axes, MEASURES, strict=True):
            for place, name in enumerate(drawn_samplers):
                curve = table[(table["measure"] == measure) & (table["scheme"] == name)]
                colour = CLASSES[place % len(CLASSES)]
                steps = curve["factor"], curve["share"]
                axis.step(*steps, where="post", color=colour, label=label(name))
            axis.set(title=measure, xlabel="cost, in units of the best", xscale="log", ylim=(0, 1))
            axis.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
            axis.minorticks_off()
        axes[0].set_ylabel("share of datasets")
        legend_below(figure, axes)
    return Artefact(
        table,
        figure,
        alt="Share of datasets on which each sampler's cost is within a factor of the best.",
        notes=(
            f"The {SHOWN_PROFILES} samplers with the largest areas and MD are drawn; the CSV has "
            "all.",
        ),
    )


def bench_tuning(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the learning rate of each sampler's best trial."""
    return tuning(summaries, paper)


def bench_matrix_rounds(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate rounds by dataset."""
    return _matrix(summaries, "rounds")


def bench_matrix_bits(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate bits by dataset."""
    return _matrix(summaries, "bits")


def bench_matrix_seconds(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate seconds by dataset."""
    return _matrix(summaries, "seconds")


def _probabilities(scores: np.ndarray, reference: int, rng: np.random.Generator) -> np.ndarray:
    """Return the probabilities on a single dataset, from scores (samplers, seeds)."""
    run = ~np.isnan(scores[:, 0])
    position = int(run[:reference].sum())
    estimate = across_datasets.improvement([scores[run]], position, rng, resamples=1)
    probabilities = np.full(len(scores), np.nan)
    probabilities[run] = estimate.value
    return probabilities


def signed_rank_p(values: np.ndarray) -> float:
    """Return the two-sided p of Wilcoxon's signed-rank test; 1 if all values are zero.

    For few values with ties or zeros, all combinations of signs are tried; SciPy does the same, but
    one by one.
    """
    if len(values) <= MAX_EXACT_DATASETS:
        values = values[values != 0]
        ranks = rankdata(np.abs(values))
        if len(np.unique(ranks)) < len(ranks):
            signs = np.array(list(product((False, True), repeat=len(values))))
            observed, possible = ranks[values > 0].sum(), signs @ ranks
            tails = (possible >= observed).mean(), (possible <= observed).mean()
            return min(1.0, 2 * float(min(tails)))
    return float(wilcoxon(values).pvalue) if values.any() else 1.0


def _holm(p: np.ndarray, tested: np.ndarray) -> np.ndarray:
    """Return p values with Holm's correction; 1 where nothing was tested."""
    order = np.argsort(np.where(tested, p, np.inf))[: tested.sum()]
    steps = (tested.sum() - np.arange(tested.sum())) * p[order]
    adjusted = np.ones(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def _matrix(summaries: Summaries, measure: str) -> Artefact:
    """Tabulate speed-ups over MD by dataset, with intervals over seeds."""
    names = [*bench_datasets(summaries), *bench_datasets_away(summaries)]
    if not names:
        return Artefact(pd.DataFrame({"scheme": []}), notes=("No dataset has been run yet.",))
    parts = []
    for name in names:
        costs = costs_on(summaries, name)
        samplers = samplers_in({name: costs})
        array, reference = cost_array(costs, measure, samplers), samplers.index(REFERENCE)
        rng = stream(0, f"crossmatrix {name} {measure}")
        over_seeds = resampled_log_speed_ups(array, reference, rng)
        low, high = np.exp(np.quantile(over_seeds, TAILS, axis=1))
        met = costs.groupby("sampler")["met"].agg(["sum", "count"]).loc[samplers]
        parts.append(
            pd.DataFrame(
                {
                    "scheme": samplers,
                    "set": name,
                    "title": title(summaries, name),
                    "differ": DIFFER.get(name, ""),
                    "unit": UNITS[measure][0],
                    "cost": mean_costs(array) / UNITS[measure][1],
                    "speed_up": np.exp(log_speed_ups(array, reference)),
                    "speed_up_low": low,
                    "speed_up_high": high,
                    "reached": met["sum"].to_numpy(int),
                    "runs": met["count"].to_numpy(int),
                }
            )
        )
    table = pd.concat(parts, ignore_index=True)
    cells = table.assign(cell=table.apply(_cell, axis=1), scheme=table["scheme"].map(label))
    return Artefact(
        table,
        table=by_dataset(cells),
        notes=(
            "Speed-up over MD: ratio of costs, geometric mean of the two targets. In brackets: "
            "targets met, of five seeds and two targets each, where some were missed.",
        ),
    )


def _cell(row: pd.Series) -> str:
    met = "" if row["reached"] == row["runs"] else f" ({row['reached']}/{row['runs']})"
    return show(row["speed_up"]) + met


def _rounds_by_dataset(summaries: Summaries) -> str:
    """State the number of rounds on each dataset."""
    titles: dict[int, list[str]] = {}
    for name in bench_datasets(summaries):
        rounds = int(summaries[name].setting("rounds", DEFAULT))
        titles.setdefault(rounds, []).append(title(summaries, name))
    parts = [f"{rounds} on {listed(titles[rounds])}" for rounds in sorted(titles)]
    return f"Rounds: {'; '.join(parts)}."


def _not_converged(summaries: Summaries) -> str:
    """Name the datasets on which MD has not converged by the declared rule."""
    scores = {name: reference_scores_on(summaries, name) for name in bench_datasets(summaries)}
    gains_left = [
        f"{title(summaries, name)} ({show(of_md.last_gain)})"
        for name, of_md in scores.items()
        if not of_md.have_converged(name)
    ]
    names = listed(gains_left) or "none"
    return f"MD has not converged by the declared rule (gain of the last quarter) on: {names}."


def _faster_and_slower(table: pd.DataFrame) -> list[str]:
    """Name the samplers whose intervals over seeds and over datasets lie on one side of MD."""
    sentences = []
    for measure in MEASURES:
        part = table[(table["measure"] == measure) & (table["scheme"] != REFERENCE)]
        part = part.sort_values("speed_up", ascending=False)
        faster = part[part[["low", "set_low"]].min(axis=1) > 1]["label"]
        slower = part[part[["high", "set_high"]].max(axis=1) < 1]["label"]
        sentences.append(
            f"In {measure}, faster than MD (intervals over seeds and over datasets above 1): "
            f"{'; '.join(faster) or 'none'}. Slower (both below 1): {'; '.join(slower) or 'none'}."
        )
    return sentences


def _likely_cheaper(table: pd.DataFrame) -> list[str]:
    """Name the samplers that beat MD more often than not on other datasets, too."""
    sentences = []
    for measure in MEASURES:
        part = table[(table["measure"] == measure) & (table["scheme"] != REFERENCE)]
        part = part.sort_values("probability", ascending=False)
        cheaper, dearer = part[part["set_low"] > 0.5], part[part["set_high"] < 0.5]
        sentences.append(
            f"In {measure}, cheaper than MD in most pairs of runs (interval over datasets above "
            f"½): {'; '.join(cheaper['label']) or 'none'}. More expensive (interval below ½): "
            f"{'; '.join(dearer['label']) or 'none'}."
        )
    return sentences
