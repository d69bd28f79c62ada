"""Claims c21 and c22 of harshvardhan2025latency: runtime along the sweeps of Tables 3a and 3b.

Judged by the rules in the paper's ``paper.yaml``.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from fedsampling.base.text import show
from fedsampling.evidence.rules import JOINT, above, faster, over_choices, verdict
from fedsampling.evidence.statistics import Estimate, compare, holm, ratio
from fedsampling.evidence.verdicts import Finding, Part, intervals
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .printed_tables import LINES, PROPOSED, printed
from .run_settings import reading_in_words
from .time_to_target import (
    DIRECTIONS,
    MAIN_READING,
    NARROW,
    SWEEPS,
    mean_in_seconds,
    runtimes,
    sweep_runtimes,
    target,
    with_interval,
)


def c21(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether runtime increases with the largest rotation."""
    return trend_finding(summaries, spec, paper)


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


def _sampling_readings(summaries: Summaries, sweep: str) -> dict[str, Mapping[str, Any]]:
    """Return DelayHetSampling's settings in each reading of a sweep, the main reading first."""
    variants = summaries.get(f"{sweep}_sampling")
    readings = {"sampling": summaries[sweep].settings["samplers"].get("sampling", {})}
    readings |= variants.settings["samplers"] if variants else {}
    return dict(sorted(readings.items(), key=lambda item: item[0] != MAIN_READING))


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
    if len(tables) < len(PROPOSED) or not all(_is_finished(t, steps) for t in tables.values()):
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


def _is_finished(table: pd.DataFrame, steps: int) -> bool:
    """Whether all runs of a sweep of so many `steps` are finished and reach the target.

    Only the first and the last step need all seeds.
    """
    return bool(
        len(table.columns) >= steps
        and not np.isinf(table).any(axis=None)
        and not table.iloc[:, [0, -1]].isna().any(axis=None)
    )


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
