"""Claims c19 to c24 of harshvardhan2025latency: Figure 2, and the parts of Table 3.

Judged by the rules in its ``paper.yaml``.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from fedsampling.base.text import listed, show
from fedsampling.evidence.rules import (
    JOINT,
    TIE,
    above,
    faster,
    in_range,
    ordering,
    over_choices,
    stated,
    verdict,
)
from fedsampling.evidence.statistics import LEVEL, Estimate, compare, holm, ratio
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import Finding, Part, intervals
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .printed_tables import LINES, PROPOSED, printed
from .run_settings import reading_in_words, stages_in_words
from .time_to_target import (
    DIRECTIONS,
    MAIN_READING,
    NARROW,
    SWEEPS,
    at_least,
    mean_in_seconds,
    runtimes,
    sweep_runtimes,
    target,
    with_interval,
)


def c19(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether samplers for heterogeneous data are faster than random on IID data."""
    goal = target(paper, "quadratic")
    table = runtimes(summaries["quadratic_iid"], goal)
    if np.isinf(table.loc[table["sampler"] == "random", "counted"]).any():
        missed = f"Random selection does not reach {goal:g} in every run."
        return Finding("inconclusive", missed, missed)
    seconds = at_least(table)
    pairs = {
        LINES[name].label: (seconds[name], seconds["random"])
        for name in ("divfl", "power_of_choice")
    }
    return ordering(
        holm(pairs, ratio, spec.margin),
        spec.margin,
        "times random selection's seconds",
        {
            "reproduced": "Neither is faster than random selection by the margin.",
            "contradicted": "Both are faster than random selection by the margin.",
            "inconclusive": "Seeds vary too much to decide.",
        },
        contrary_decides=False,
    )


FLANP_RULE = "FLANP's main rule"  # the reading of `quadratic_no_delays`


def c20(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether FLANP is slower than random selection without delays, by any rule of FLANP's.

    Other rules for its stages were run with delays; these do not change a run's rounds.
    """
    goal, main = target(paper, "quadratic"), summaries["quadratic_no_delays"]
    table = runtimes(main, goal)
    last = float(main.rows["at"].max())
    stages = {"flanp": FLANP_RULE}  # in words, by label
    if "quadratic_variants" in summaries:
        others = summaries["quadratic_variants"]
        rules = {k: v for k, v in others.settings["samplers"].items() if k.startswith("flanp")}
        stages |= {label: stages_in_words(settings) for label, settings in rules.items()}
        variants = runtimes(others, goal)
        table = pd.concat([table, variants[variants["case"] == "synthetic"]], ignore_index=True)
    rounds = table.pivot(index="seed", columns="sampler", values="rounds")
    readings = {
        stages[label]: flanp_over_random(rounds[label], rounds["random"], goal, last)
        for label in map(str, rounds)
        if label in stages
    }
    return over_choices(readings, main=FLANP_RULE)


def flanp_over_random(flanp: pd.Series, random: pd.Series, goal: float, last: float) -> Finding:
    """Judge whether FLANP takes more rounds than random selection, paired by seed.

    A run of FLANP that misses the target in `last` rounds counts with these, a lower bound.
    """
    is_cut_off = bool(np.isinf(flanp).any())
    bound = flanp.clip(upper=last)
    times, narrow = (compare(bound, random, ratio, level) for level in (LEVEL, NARROW))
    part = faster(times, narrow)
    if np.isinf(random).any() or (is_cut_off and part != "holds"):
        part = "open"
    number = with_interval(times) if np.isfinite(times.low) else show(times.value)
    ours = f"{number} times random's rounds ({times.n} seeds)"
    if is_cut_off:
        missed = f"misses a loss of {goal:g} in {np.isinf(flanp).sum()} of {times.n} runs"
        ours = f"FLANP {missed} of {last:g} rounds; > {show(times.value)} times random's rounds"
    return verdict(
        {"FLANP slower than random": part},
        ours,
        {
            "reproduced": "FLANP takes more rounds.",
            "contradicted": f"FLANP and random selection tie, within {100 * TIE:g} %."
            if part == "tie"
            else "FLANP takes fewer rounds.",
            "inconclusive": "Seeds vary too much to decide.",
        },
        drawn=()
        if is_cut_off
        else intervals({"FLANP": times}, "times random selection's rounds", least=1),
    )


def c21(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether runtime increases with the largest rotation."""
    return trend_finding(summaries, spec, paper)


def trend_finding(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether runtime changes along a sweep, with each reading of DelayHetSampling."""
    findings = {
        reading_in_words(settings): _sweep_finding(
            seconds_along_sweep(summaries, paper, spec.artefact, label),
            spec,
            paper,
            steps=len(printed(paper, spec.artefact)),
        )
        for label, settings in _sampling_readings(summaries, SWEEPS[spec.artefact][1]).items()
    }
    main = next(iter(findings))
    return over_choices(findings, main) if len(findings) > 1 else findings[main]


def c22(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether runtime decreases with link speed, with each reading and size of the model."""
    finding = trend_finding(summaries, spec, paper)
    if not finding.readings or "links_model" not in summaries:
        return finding
    size = summaries["links_model"].setting("delays.model_bytes", "speed-1")
    readings = {
        row.setting: Finding(row.verdict, row.ours, finding.reason, row.drawn, parts=row.parts)
        for row in finding.readings
    }
    readings[f"a model of {show(size / 1e6, 2)} MB; Assumption 3 alone"] = _larger_model(
        summaries, spec, paper
    )
    return over_choices(readings, main=finding.readings[0].setting)


BOUNDS = {
    "quadratic_clients": "Assumption 3 alone",
    "quadratic_clients_bounded": "B_p < 1 everywhere",
}


def c23(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge the U-shape over the number of clients, with each bound in DelayHetSampling."""
    findings = {
        label: u_shape(summaries[name], spec, paper)
        for name, label in BOUNDS.items()
        if name in summaries
    }
    return over_choices(findings, main=next(iter(findings)))


def u_shape(summary: Summary, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether the runtime is least for a middle number of clients."""
    goal = target(paper, "quadratic")
    table = runtimes(summary, goal)
    table["sampler"] = [summary.setting("m", sampler=name) for name in table["sampler"]]
    runs = {m: table.loc[table["sampler"] == m, "counted"] for m in sorted(set(table["sampler"]))}
    reached = {m: mean_in_seconds(seconds) for m, seconds in runs.items()}
    ours = (
        f"{', '.join(map(str, runs))} clients: {one}"
        if len(set(reached.values())) == 1 and (one := next(iter(reached.values())))
        else "; ".join(f"{m} clients: {text}" for m, text in reached.items())
    )
    fewest, *middle, most = runs
    best = min(middle, key=lambda m: float(runs[m].mean()))
    if np.isinf(runs[best]).any():
        why = f"No middle number of clients reaches {goal:g} in every run."
        return Finding("inconclusive", ours, why)
    seconds = at_least(table)
    pairs = {f"{end} clients": (seconds[end], seconds[best]) for end in (fewest, most)}
    ratios = holm(pairs, ratio, spec.margin)
    faster = [name for name, times in ratios.items() if above(times, spec.margin) == "fails"]
    finding = ordering(
        ratios,
        spec.margin,
        f"times the seconds of {best} clients",
        {
            "reproduced": f"Both ends take longer than {best} clients.",
            "contradicted": f"{listed(faster)} take less time than {best}.",
            "inconclusive": "Seeds vary too much to decide.",
        },
        partly=False,
    )
    return replace(finding, ours=ours)


SIZE_FACTOR = 1.5  # tolerance around the paper's ratio, as in c1
OUTCOMES: Mapping[Part, str] = {"holds": "yes", "fails": "no", "open": "undecided"}
TASKS = {
    "heterogeneity": "heterogeneity of the features",
    "minnorm": "MinNorm",
    "trust-constr": "trust-constr",
    "approx_opt": "ApproxOptSampling",
}


def c24(
    summaries: Summaries,
    spec: ClaimSpec,
    paper: Paper,
    case: str = "quadratic",
    approx_opt: str = "approx_opt",
) -> Finding:
    """Judge whether ApproxOptSampling's overhead exceeds all others, and by what factor.

    `case`: the problem. `approx_opt`: the metric of ApproxOptSampling's seconds.
    """
    summary = summaries["overhead"]
    device = "; ".join(summary.provenance.get("device", ())) or "an unknown machine"
    device = device.replace(", 1 threads", ", 1 thread")
    rows = summary.select(case=case, since=0, until=0)
    seconds = rows.pivot(index="seed", columns="metric", values="value")
    reported_seconds = {
        name: cell.number for name, cell in printed(paper, "overheads")[case].items()
    }
    other_tasks = [name for name in reported_seconds if name != "approx_opt"]
    times = compare(seconds[approx_opt], seconds[other_tasks].sum(axis=1), ratio)
    reported = reported_seconds["approx_opt"] / sum(reported_seconds[name] for name in other_tasks)
    least, most = reported / SIZE_FACTOR, reported * SIZE_FACTOR
    means = seconds.mean()
    parts = {
        f"MinNorm takes at most {spec.margin:g} s": stated(bool(means["minnorm"] <= spec.margin)),
        "ApproxOptSampling takes longer than all else": above(times, 1),
        f"by a factor of {least:.3g} to {most:.3g}": in_range(times, least, most),
    }
    task_seconds = {name: means[name] for name in other_tasks} | {"approx_opt": means[approx_opt]}
    return verdict(
        parts,
        f"{case.capitalize()}, on {device}: "
        + ", ".join(f"{TASKS[name]} {show(s, 2)} s" for name, s in task_seconds.items())
        + f"; ApproxOptSampling over all else {with_interval(times)}",
        {
            "reproduced": "The order and the size are the paper's.",
            "partly reproduced": "; ".join(
                f"{name}: {OUTCOMES[part]}" for name, part in parts.items()
            )
            + ".",
        },
        contrary_decides=False,
        drawn=intervals(
            {"ApproxOptSampling over all else": times},
            "times",
            least=least,
            most=most,
            paper=reported,
        ),
    )


def _sampling_readings(summaries: Summaries, sweep: str) -> dict[str, Mapping[str, Any]]:
    """Return DelayHetSampling's settings in each reading of a sweep, the main reading first."""
    variants = summaries.get(f"{sweep}_sampling")
    readings = {"sampling": summaries[sweep].settings["samplers"].get("sampling", {})}
    readings |= variants.settings["samplers"] if variants else {}
    return dict(sorted(readings.items(), key=lambda item: item[0] != MAIN_READING))


def _larger_model(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge c22 with a larger sent model, which was run with the slowest and fastest links only."""
    times = runtimes(summaries["links_model"], target(paper, "dirichlet_mnist"))
    tables = {}
    for label, name in {"submodular": "submodular", MAIN_READING: "sampling"}.items():
        runs = times[times["sampler"] == label]
        seconds = runs.pivot(index="seed", columns="case", values="counted")
        tables[LINES[name].label] = seconds.rename(columns={"speed-1": "1", "speed-10": "10"})[
            ["10", "1"]
        ]
    return _sweep_finding(tables, spec, paper, steps=2)


def _sweep_finding(
    tables: Mapping[str, pd.DataFrame], spec: ClaimSpec, paper: Paper, steps: int
) -> Finding:
    """Judge whether both samplers' seconds change along a sweep as claimed.

    The ratio of the seconds at the two ends decides, paired by seed.  Both samplers' 95 % intervals
    must lie above the margin (intersection–union test); otherwise Holm-corrected intervals decide.
    A significant change in the opposite direction in any single step contradicts the claim.

    `tables`: see :func:`seconds_along_sweep`. `steps`: number of columns of a finished sweep.
    """
    sign = DIRECTIONS[spec.artefact]
    ours = "; ".join(
        f"{label} "
        + ", ".join(
            f"{value}: {mean_in_seconds(table[value].dropna())}" for value in [*table][::sign]
        )
        for label, table in tables.items()
    )
    if len(tables) < len(PROPOSED) or any(
        len(table.columns) < steps
        or np.isinf(table).any(axis=None)
        or table.iloc[:, [0, -1]].isna().any(axis=None)  # between the ends, fewer seeds suffice
        for table in tables.values()
    ):
        why = "Not every run of both samplers is finished and reaches the target."
        return Finding("inconclusive", ours, why, parts=dict.fromkeys(tables, "open"))
    pairs = {label: (table.iloc[:, -1], table.iloc[:, 0]) for label, table in tables.items()}
    unit = "times from end to end"
    ends = {label: compare(*pair, ratio) for label, pair in pairs.items()}
    if not all(above(end, spec.margin) == "holds" for end in ends.values()):
        ends, unit = holm(pairs, ratio, spec.margin), unit + JOINT  # for a verdict on one of them
    first, *_, last = list(printed(paper, spec.artefact).values())[::sign]
    effects = {LINES[name].label: last[name].number / first[name].number for name in PROPOSED}
    narrow = {label: compare(*pair, ratio, NARROW) for label, pair in pairs.items()}
    return verdict(
        {label: _rises(tables[label], end, narrow[label]) for label, end in ends.items()},
        f"{ours}; "
        + "; ".join(f"{label} from end to end {with_interval(end)}" for label, end in ends.items()),
        {
            "reproduced": "It holds for both samplers.",
            "inconclusive": "Seeds vary too much to decide.",
        },
        contrary_decides=False,
        drawn=intervals(ends, unit, least=spec.margin, effects=effects),
    )


def seconds_along_sweep(
    summaries: Summaries, paper: Paper, artefact: str, sampling: str
) -> dict[str, pd.DataFrame]:
    """Return each proposed sampler's seconds to the target, by seed and by value of the sweep.

    `artefact`: a part of Table 3. `sampling`: label of DelayHetSampling's reading. Returns by
    sampler; shape (seeds, values), infinite if a run misses the target.  If the claim holds,
    seconds rise from left to right.
    """
    times = sweep_runtimes(summaries, paper, artefact, sampling)
    values = list(printed(paper, artefact))[:: DIRECTIONS[artefact]]
    tables = {}
    for name in (name for name in PROPOSED if name in set(times["sampler"])):
        runs = times[times["sampler"] == name]
        table = runs.pivot(index="seed", columns="value", values="counted")
        tables[LINES[name].label] = table[[value for value in values if value in table]]
    return tables


def _rises(table: pd.DataFrame, end: Estimate, narrow: Estimate) -> Part:
    """Judge one sampler by its ratio from end to end and by every step.

    `narrow`: the ratio with a 90 % interval, for a tie.
    """
    steps = []
    for values in pairwise(table):
        before, after = table[list(values)].dropna().to_numpy().T  # seeds that ran at both values
        steps.append(compare(after, before, ratio))
    if any(above(step, 1) == "fails" for step in steps):
        return "fails"
    part = faster(end, narrow)
    return "open" if part == "holds" and any(step.value < 1 for step in steps) else part
