"""Tables and figures of the benchmark of many small datasets, and its decision map."""

import warnings
from collections.abc import Mapping
from functools import cache, wraps
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import rankdata, wilcoxon

from fedsampling.base.streams import stream
from fedsampling.evidence import across_sets
from fedsampling.evidence.numbers import listed, show
from fedsampling.evidence.statistics import RESAMPLES
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.cross_matrix import MEASURES, REFERENCE, TUNING
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Draw, Summaries
from fedsampling.report.drawing.style import CLASSES, legend_below, panels, style

from .bench import (
    DEFAULT,
    NEVER,
    bench_sets,
    by_seed,
    converged,
    costs,
    goals,
    needs,
    overall,
    relative,
    scored,
)
from .figures import DIFFER, UNITS, empty, label, title, tuning, unranked
from .figures_together import _drawn, _hundredths, _rank, _verdict
from .runs import gains

TAILS = (0.025, 0.975)
MOST_SIGNS = 13  # values of a signed-rank test whose signs are all tried
SHOWN = 8  # samplers in the figure of profiles
STANDARD = "fedavg_normalised"  # FedAvg as most run it


def once_run(draw: Draw) -> Draw:
    """Let a figure be empty, and say so, as long as no dataset is both tuned and run."""

    @wraps(draw)
    def drawn(summaries: Summaries, paper: Paper) -> Artefact:
        if bench_sets(summaries):
            return draw(summaries, paper)
        return empty("No dataset of the benchmark is both tuned and run yet.")

    return drawn


@once_run
def bench_ranks(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw speed-ups over MD: geometric means over datasets, with bands over seeds."""
    names = bench_sets(summaries)
    by_set = {name: _costs(summaries, name) for name in names}
    plain = {name: _costs(summaries, name, DEFAULT) for name in names}
    table = pd.concat([aggregated(by_set, plain, measure) for measure in MEASURES])
    needed = {name: " ".join(sorted(each)) for name, each in needs(summaries).items()}
    table = table.assign(label=table["scheme"].map(label), needs=table["scheme"].map(needed))
    table = table.reset_index(drop=True)
    return Artefact(
        table,
        _drawn(table, "speed_up", "speed-up over MD", len(names), _rank),
        alt="Speed-up of each sampler over MD sampling in rounds, bits and seconds, with bands, "
        "and that on its worst dataset.",
        notes=(
            *_told(table),
            _lengths(summaries),
            _convergence(summaries),
            *unranked(table, len(names)),
        ),
    )


@once_run
def bench_areas(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the gains within MD's budget, relative to MD's: no target enters."""
    names = bench_sets(summaries)
    courses = {name: scored(summaries[name], summaries[TUNING + name], "tuned") for name in names}
    parts = []
    for measure in MEASURES:
        wide = {
            name: gains(course, measure).pivot(index="sampler", columns="seed", values="gain")
            for name, course in courses.items()
        }
        schemes = sorted({str(scheme) for each in wide.values() for scheme in each.index})
        strata = [each.reindex(schemes).to_numpy(np.float64) for each in wide.values()]
        aggregate = across_sets.aggregate(strata, stream(0, f"crossmatrix bench areas {measure}"))
        parts.append(
            pd.DataFrame(
                {
                    "measure": measure,
                    "scheme": schemes,
                    "gain": aggregate.value,
                    "low": aggregate.low,
                    "high": aggregate.high,
                    "rank": aggregate.rank,
                    "rank_low": aggregate.rank_low,
                    "rank_high": aggregate.rank_high,
                    "sets": np.sum([~np.isnan(part[:, 0]) for part in strata], axis=0),
                    "worst": aggregate.worst,
                    "worst_set": [names[place] for place in aggregate.worst_set],
                }
            )
        )
    table = pd.concat(parts, ignore_index=True)
    table["label"] = table["scheme"].map(label)
    return Artefact(
        table,
        _drawn(table, "gain", "gain relative to MD's", len(names), _rank),
        alt="Gain of each sampler within MD's budget of rounds, bits and seconds, with bands.",
        notes=tuple(unranked(table, len(names))),
    )


@once_run
def bench_improvement(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the probabilities that a run is cheaper than MD's, on these datasets and on others."""
    by_set = {name: _costs(summaries, name) for name in bench_sets(summaries)}
    parts = []
    for measure in MEASURES:
        schemes = sorted({str(name) for table in by_set.values() for name in table["sampler"]})
        costs_by_seed = [by_seed(table, measure, schemes) for table in by_set.values()]
        strata = [-np.log(part).mean(0) for part in costs_by_seed]
        rng, place = stream(0, f"crossmatrix bench improvement {measure}"), schemes.index(REFERENCE)
        estimate = across_sets.improvement(strata, place, rng)
        each = np.full((len(strata), len(schemes)), np.nan)
        for row, part in zip(each, strata, strict=True):
            run = ~np.isnan(part[:, 0])
            alone = across_sets.improvement([part[run]], int(run[:place].sum()), rng, resamples=1)
            row[run] = alone.value
        picked = rng.integers(len(each), size=(RESAMPLES, len(each)))
        set_low, set_high = np.nanquantile(mean_of_known(each[picked]), TAILS, axis=0)
        parts.append(
            pd.DataFrame(
                {
                    "measure": measure,
                    "scheme": schemes,
                    "probability": estimate.value,
                    "low": estimate.low,
                    "high": estimate.high,
                    "set_low": set_low,
                    "set_high": set_high,
                    "sets": (~np.isnan(each)).sum(0),
                }
            )
        )
    table = pd.concat(parts, ignore_index=True)
    table["label"] = table["scheme"].map(label)
    return Artefact(
        table,
        _drawn(table, "probability", "P(cheaper than MD)", len(by_set), _hundredths, middle=0.5),
        alt="Probability that a run of each sampler is cheaper than one of MD, with bands.",
        notes=tuple(_likely(table)),
    )


@once_run
def bench_agreement(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw mean ranks with Nemenyi's critical difference; test each sampler against MD."""
    by_set = {name: _costs(summaries, name) for name in bench_sets(summaries)}
    parts, notes = [], []
    for measure in MEASURES:
        logs = relative(by_set, measure).dropna(axis=1)
        test = across_sets.friedman(logs.to_numpy())
        notes.append(_verdict(measure, logs.T, test))
        half = test.critical / 2 if len(logs) > 1 else 0.0
        p, adjusted = _against(logs)
        parts.append(
            pd.DataFrame(
                {
                    "measure": measure,
                    "scheme": logs.columns,
                    "mean_rank": test.rank,
                    "low": np.maximum(test.rank - half, 1),
                    "high": np.minimum(test.rank + half, logs.shape[1]),
                    "wilcoxon_p": p,
                    "holm_p": adjusted,
                    "sets": len(logs),
                }
            )
        )
        apart = [label(name) for name in logs.columns[adjusted < 0.05]]
        notes.append(
            f"In {measure}: differ from MD by Wilcoxon's signed-rank test over datasets, after "
            f"Holm's correction: {listed(apart) if apart else 'none'}."
        )
    table = pd.concat(parts, ignore_index=True)
    table["label"] = table["scheme"].map(label)
    return Artefact(
        table,
        _drawn(table, "mean_rank", "mean rank", len(by_set), _hundredths, middle=None, least=True),
        alt="Mean rank of each sampler over the datasets, with bars of the critical difference.",
        notes=tuple(notes),
    )


@once_run
def bench_profiles(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw performance profiles: the share of datasets on which a cost is within a factor."""
    by_set = {name: _costs(summaries, name) for name in bench_sets(summaries)}
    factors = np.round(2 ** np.linspace(0, 3, 25), 3)
    parts = []
    for measure in MEASURES:
        logs = relative(by_set, measure).drop(columns=[NEVER], errors="ignore")
        ratio = np.exp(logs.sub(logs.min(axis=1), axis=0))
        for name in ratio:
            run = ratio[name].dropna().to_numpy()
            share = [float((run <= factor * (1 + 1e-9)).mean()) for factor in factors]
            parts.append(
                pd.DataFrame(
                    {"measure": measure, "scheme": name, "factor": factors, "share": share}
                )
            )
    table = pd.concat(parts, ignore_index=True)
    table["label"] = table["scheme"].map(label)
    with style():
        figure, axes = panels(1, 3, width=11.6, height=3.4, sharey=True)
        areas = table.groupby(["measure", "scheme"])["share"].mean()
        best = areas.groupby("scheme").mean().sort_values(ascending=False).index
        shown = list(dict.fromkeys([REFERENCE, *best]))[:SHOWN]
        for axis, measure in zip(axes, MEASURES, strict=True):
            for place, name in enumerate(shown):
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
        notes=(f"The {SHOWN} samplers with the largest areas and MD are drawn; the CSV has all.",),
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


def costs_by_set(summaries: Summaries, which: str = "tuned") -> dict[str, pd.DataFrame]:
    """Return each dataset's costs at the samplers' best trials, or at their defaults."""
    return {name: _costs(summaries, name, which) for name in bench_sets(summaries)}


def _costs(summaries: Summaries, name: str, which: str = "tuned") -> pd.DataFrame:
    """Return costs of a dataset's runs; targets are those of MD's best trial."""
    return _costs_of(summaries[name], summaries[TUNING + name], which)


@cache  # every artefact reads them: never modify the table
def _costs_of(evaluation: Summary, tuning: Summary, which: str) -> pd.DataFrame:
    tuned = scored(evaluation, tuning, "tuned")
    course = tuned if which == "tuned" else scored(evaluation, tuning, which)
    return costs(course, goals(tuned))


def aggregated(
    by_set: Mapping[str, pd.DataFrame], plain: Mapping[str, pd.DataFrame], measure: str
) -> pd.DataFrame:
    """Aggregate speed-ups in one measure over datasets; intervals over seeds and datasets apart."""
    schemes = sorted({str(name) for table in by_set.values() for name in table["sampler"]})
    reference = schemes.index(REFERENCE)
    parts = {name: by_seed(table, measure, schemes) for name, table in by_set.items()}
    logs = np.stack([_logs(part, reference) for part in parts.values()])
    units = [overall(part)[reference] for part in parts.values()]
    default = np.stack(
        [
            np.log(unit) - np.log(overall(by_seed(plain[name], measure, schemes)))
            for name, unit in zip(by_set, units, strict=True)
        ]
    )
    rng = stream(0, f"crossmatrix bench {measure}")
    seeds = np.nanmean([_resampled(part, reference, rng) for part in parts.values()], axis=0)
    picked = rng.integers(len(logs), size=(RESAMPLES, len(logs)))
    over_sets = mean_of_known(logs[picked])
    everywhere = ~np.isnan(logs).any(0)
    rank = np.full((3, len(schemes)), np.nan)
    rank[0, everywhere] = rankdata(-np.nanmean(logs, axis=0)[everywhere])
    drawn = rankdata(-seeds[everywhere].T, axis=1)
    rank[1:, everywhere] = np.quantile(drawn, TAILS, axis=0, method="nearest")
    met = [table.groupby("sampler")["met"].agg(["sum", "count"]) for table in by_set.values()]
    total = np.sum([each.reindex(schemes).fillna(0).to_numpy(int) for each in met], axis=0)
    low, high = np.exp(np.nanquantile(seeds, TAILS, axis=1))
    set_low, set_high = np.exp(np.nanquantile(over_sets, TAILS, axis=0))
    return pd.DataFrame(
        {
            "measure": measure,
            "scheme": schemes,
            "speed_up": np.exp(np.nanmean(logs, axis=0)),
            "low": low,
            "high": high,
            "set_low": set_low,
            "set_high": set_high,
            "rank": rank[0],
            "rank_low": rank[1],
            "rank_high": rank[2],
            "sets": (~np.isnan(logs)).sum(0),
            "worst": np.exp(np.nanmin(logs, axis=0)),
            "worst_set": [list(by_set)[place] for place in np.nanargmin(logs, axis=0)],
            "win_rate": _win_rate(logs),
            "default_speed_up": np.exp(np.nanmean(default, axis=0)),
            "reached": total[:, 0],
            "runs": total[:, 1],
        }
    )


def mean_of_known(drawn: np.ndarray) -> np.ndarray:
    """Average resampled datasets, axis 1, without NaN; NaN for a sampler that ran on none."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)
        mean: np.ndarray = np.nanmean(drawn, axis=1)
    return mean


def _logs(part: np.ndarray, reference: int) -> np.ndarray:
    """Return log speed-ups from costs (targets, samplers, ..., seeds), shape (samplers, ...)."""
    cost = np.log(overall(part))
    logs: np.ndarray = cost[reference] - cost
    return logs


def _resampled(part: np.ndarray, reference: int, rng: np.random.Generator) -> np.ndarray:
    """Resample seeds, the same for all samplers; shape (samplers, resamples)."""
    picked = rng.integers(part.shape[-1], size=(RESAMPLES, part.shape[-1]))
    return _logs(part[:, :, picked], reference)


def _win_rate(logs: np.ndarray) -> np.ndarray:
    """Return the share of the others that a sampler beats, averaged over its datasets."""
    sampler, other = logs[:, :, None], logs[:, None, :]
    played = ~np.isnan(sampler + other) & ~np.eye(logs.shape[1], dtype=bool)
    won = np.where(played, (sampler > other) + (sampler == other) / 2, 0.0).sum(2)
    with np.errstate(invalid="ignore"):
        rate: np.ndarray = np.nanmean(
            np.where(played.any(2), won / np.maximum(played.sum(2), 1), np.nan), axis=0
        )
    return rate


def _against(logs: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Test each sampler against MD over datasets: Wilcoxon's p, and Holm's correction."""
    p = np.array([_signed_rank(logs[name].to_numpy()) for name in logs])
    others = logs.columns != REFERENCE
    order = np.argsort(np.where(others, p, np.inf))[: others.sum()]
    steps = (others.sum() - np.arange(others.sum())) * p[order]
    adjusted = np.ones(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return p, adjusted


def _signed_rank(values: np.ndarray) -> float:
    """Return the two-sided p of Wilcoxon's signed-rank test; 1 if all values are zero.

    Of few values with ties or zeros, all signs are tried, as SciPy does one by one.
    """
    values = values[values != 0] if len(values) <= MOST_SIGNS else values
    ranks = rankdata(np.abs(values))
    if not len(values) or len(values) > MOST_SIGNS or len(np.unique(ranks)) == len(ranks):
        return float(wilcoxon(values).pvalue) if values.any() else 1.0
    signs = np.array(list(product((False, True), repeat=len(values))))
    sums, drawn = ranks[values > 0].sum(), signs @ ranks
    return min(1.0, 2 * float(min((drawn >= sums).mean(), (drawn <= sums).mean())))


def _matrix(summaries: Summaries, measure: str) -> Artefact:
    """Tabulate speed-ups over MD by dataset, with intervals over seeds."""
    names = [*bench_sets(summaries), *bench_sets(summaries, away=True)]
    if not names:
        return Artefact(pd.DataFrame({"scheme": []}), notes=("No dataset has been run yet.",))
    parts = []
    for name in names:
        table = _costs(summaries, name)
        schemes = sorted(map(str, table["sampler"].unique()))
        part, reference = by_seed(table, measure, schemes), schemes.index(REFERENCE)
        drawn = _resampled(part, reference, stream(0, f"crossmatrix {name} {measure}"))
        low, high = np.exp(np.quantile(drawn, TAILS, axis=1))
        met = table.groupby("sampler")["met"].agg(["sum", "count"]).loc[schemes]
        parts.append(
            pd.DataFrame(
                {
                    "scheme": schemes,
                    "set": name,
                    "title": title(summaries, name),
                    "differ": DIFFER.get(name, ""),
                    "unit": UNITS[measure][0],
                    "cost": overall(part) / UNITS[measure][1],
                    "speed_up": np.exp(_logs(part, reference)),
                    "speed_up_low": low,
                    "speed_up_high": high,
                    "reached": met["sum"].to_numpy(int),
                    "runs": met["count"].to_numpy(int),
                }
            )
        )
    table = pd.concat(parts, ignore_index=True)
    shown = table.assign(cell=table.apply(_cell, axis=1), scheme=table["scheme"].map(label))
    wide = shown.pivot(index="scheme", columns="title", values="cell").fillna("–")
    wide = wide.sort_index(key=lambda index: index.str.casefold())[table["title"].unique()]
    return Artefact(
        table,
        table=wide.rename_axis(columns=None).reset_index(),
        notes=(
            "Speed-up over MD: ratio of costs, geometric mean of the two targets. In brackets: "
            "targets met, of five seeds and two targets each, where some were missed.",
        ),
    )


def _cell(row: pd.Series) -> str:
    met = "" if row["reached"] == row["runs"] else f" ({row['reached']}/{row['runs']})"
    return show(row["speed_up"]) + met


def _lengths(summaries: Summaries) -> str:
    """Say how many rounds the runs have on each dataset."""
    titles: dict[int, list[str]] = {}
    for name in bench_sets(summaries):
        rounds = int(summaries[name].setting("rounds", DEFAULT))
        titles.setdefault(rounds, []).append(title(summaries, name))
    parts = [f"{rounds} on {listed(titles[rounds])}" for rounds in sorted(titles)]
    return f"Rounds: {'; '.join(parts)}."


def _convergence(summaries: Summaries) -> str:
    """Say on which datasets MD has converged by the declared rule."""
    still = []
    for name in bench_sets(summaries):
        course = scored(summaries[name], summaries[TUNING + name], "tuned")
        if not converged(name, goals(course)):
            still.append(f"{title(summaries, name)} ({show(goals(course).gain)})")
    named = listed(still) if still else "none"
    return f"MD has not converged by the declared rule (gain of the last quarter) on: {named}."


def _told(table: pd.DataFrame) -> list[str]:
    """Say whose bands over seeds, and over datasets too, lie on one side of MD."""
    sentences = []
    for measure in MEASURES:
        part = table[(table["measure"] == measure) & (table["scheme"] != REFERENCE)]
        part = part.sort_values("speed_up", ascending=False)
        both = part[["low", "set_low"]].min(axis=1), part[["high", "set_high"]].max(axis=1)
        faster, slower = part[both[0] > 1]["label"], part[both[1] < 1]["label"]
        sentences.append(
            f"In {measure}, faster than MD (intervals over seeds and over datasets above 1): "
            f"{'; '.join(faster) or 'none'}. Slower (both below 1): {'; '.join(slower) or 'none'}."
        )
    return sentences


def _likely(table: pd.DataFrame) -> list[str]:
    """Say who beats MD more often than not on other datasets, too."""
    sentences = []
    for measure in MEASURES:
        part = table[(table["measure"] == measure) & (table["scheme"] != REFERENCE)]
        part = part.sort_values("probability", ascending=False)
        often, seldom = (part[part["set_low"] > 0.5], part[part["set_high"] < 0.5])
        sentences.append(
            f"In {measure}, cheaper than MD in most pairs of runs (interval over datasets above "
            f"½): {'; '.join(often['label']) or 'none'}. More expensive (interval below ½): "
            f"{'; '.join(seldom['label']) or 'none'}."
        )
    return sentences
