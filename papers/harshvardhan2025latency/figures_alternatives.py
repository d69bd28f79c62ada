"""Choices that could change verdicts of Harshvardhan et al. 2025, and the verdicts under them."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fedsampling.base.text import plural
from fedsampling.evidence.rules import stated, verdict
from fedsampling.evidence.verdicts import Finding
from fedsampling.experiments.papers import Paper, judge_function
from fedsampling.report.drawing.alternatives import Alternative, by_reason, instead, tabulate
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from . import claims, claims_overhead, claims_trends
from .printed_tables import PROPOSED
from .time_to_target import by_problem, main_reading, target

ROWS = ("c1", "c2", "c3", "c4", "c5", "c10", "c11", "c12", "c13", "c14")
FURTHER = {  # experiments with other choices
    "c21": ("rotation_sampling",),
    "c22": ("links_sampling", "links_model"),
}


def alternatives(summaries: Summaries, paper: Paper) -> Artefact:
    """Judge the claims that have their runs under the choices most likely to change them."""
    varied = {
        **dict.fromkeys(ROWS, _of_row),
        "c21": _of_sweep,
        "c22": _of_sweep,
        "c24": _of_overheads,
    }
    judged: dict[str, Finding] = {}
    rows: list[Alternative] = []
    for name, vary in varied.items():
        spec = paper.claims[name]
        used = spec.experiments or paper.artefacts[spec.artefact].experiments
        if name in ROWS and not claims.row_readings(summaries, spec, paper):
            continue  # no runs with its kind of delays
        if summaries.keys() >= {*used, *FURTHER.get(name, ())}:
            judged[name] = judge_function(paper, name)(summaries, spec, paper)
            rows += vary(name, summaries, paper)
    return tabulate(judged, rows)


def _of_row(name: str, summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Vary the clock, and who may be first in a row of Tables 1 and 2."""
    spec = paper.claims[name]
    table = next(iter(claims.row_readings(summaries, spec, paper).values()))

    def instead_of(
        choice: str, runs: pd.DataFrame, allowed: frozenset[str] | None = None
    ) -> Alternative:
        return _instead(name, choice, claims.reading_finding(runs, spec, paper, allowed))

    # For runs that miss the target, the paper's seconds are a lower bound.
    ends = table["end"].where(np.isinf(table["all"]), table["all"])
    warm_up = "seconds of warm-up rounds and candidates' losses count as well"
    yield instead_of(warm_up, table.assign(counted=table["all"], end=ends))
    if name in ("c1", "c10") and (inside := summaries.get("quadratic_problems_feasible")):
        runs = by_problem(inside, target(paper, "quadratic", summaries))
        others = table[table["sampler"] != "sampling"]
        changed = pd.concat([others, runs[runs["case"] == table["case"].iloc[0]]])
        yield instead_of("DelayHetSampling's solver stays inside the simplex", changed)
    if name == "c1":
        missed = table.loc[(table["sampler"] == "submodular") & np.isinf(table["counted"]), "seed"]
        draws = plural(len(missed), "draw")
        reaching = f"without the {draws} in which DelayHetSubmodular misses the target"
        yield instead_of(reaching, table[~table["seed"].isin(missed)], frozenset(PROPOSED))
    elif claims.printed_of(spec, paper).fastest != "flanp":
        either = frozenset({*PROPOSED, "flanp"})
        yield instead_of("FLANP may be first, too", table, either)
    else:
        only = "only the proposed samplers may be first, not FLANP"
        yield instead_of(only, table, frozenset(PROPOSED))


def _of_sweep(name: str, summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Judge c21 or c22 by means, and by every seed."""
    artefact = paper.claims[name].artefact
    main = main_reading(summaries, artefact)
    tables = claims_trends.seconds_along_sweep(summaries, paper, artefact, main)
    steps = {label: np.diff(table.mean()) for label, table in tables.items()}
    changes = {label: table.iloc[:, -1] - table.iloc[:, 0] for label, table in tables.items()}
    yield _by_sign(name, "the order of the means decides", steps)
    yield _by_sign(name, "the sign of every seed's ends decides", changes)


def _by_sign(name: str, choice: str, differences: Mapping[str, ArrayLike]) -> Alternative:
    """Judge a claim by the signs of each sampler's differences, without intervals.

    It holds if all are positive, and fails if all are negative.
    """
    signs = {label: set(np.sign(values)) for label, values in differences.items()}
    parts = {
        label: stated(each == {1} if each in ({1}, {-1}) else None) for label, each in signs.items()
    }
    return by_reason(name, choice, verdict(parts, "", {}, contrary_decides=False))


def _of_overheads(name: str, summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Vary the solver and the problem."""
    spec = paper.claims[name]
    changed: dict[str, dict[str, Any]] = {
        "ApproxOptSampling solved by SLSQP": {"approx_opt": "approx_opt_slsqp"},
        "on Shakespeare instead of Quadratic": {"case": "shakespeare"},
    }
    for choice, changes in changed.items():
        yield _instead(name, choice, claims_overhead.c24(summaries, spec, paper, **changes))


def _instead(name: str, choice: str, finding: Finding) -> Alternative:
    """Record a finding with only its last number, the size of the effect."""
    return instead(name, choice, finding, finding.ours.rpartition("; ")[2])
