"""Choices that could change verdicts of harshvardhan2025latency."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fedsampling.evidence.verdicts import Finding, Part, stated, verdict
from fedsampling.experiments.papers import Paper, judge_function
from fedsampling.report.drawing.alternatives import Alternative, counted, instead, tabulate
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from . import claims, claims_trends
from .runtimes import PROPOSED, SWEEPS, printed_row, runtimes, target

ROWS = ("c1", "c2", "c3", "c4", "c5", "c10", "c11", "c12", "c13", "c14")
SWEPT = {"c21": 1, "c22": -1}
FURTHER = {  # experiments with other choices
    "c20": ("quadratic", "quadratic_variants"),
    "c21": ("rotation_sampling",),
    "c22": ("links_sampling", "links_model"),
}
# Rules for the stages of FLANP under which c20 is judged, by label in `quadratic_variants`.
STAGES = {
    "flanp-first-10": "FLANP begins with 10 clients",
    "flanp-first-10-0.1": "FLANP begins with 10 clients; a stage ends at 0.1 of the gradient",
    "flanp-first-2-0.0001": "a stage of FLANP ends at 0.0001 of the gradient",
}


def alternatives(summaries: Summaries, paper: Paper) -> Artefact:
    """Judge the claims that have their runs under the choices most likely to change them."""
    varied = {
        **dict.fromkeys(ROWS, _of_row),
        "c20": _of_stages,
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
    """Vary the open choices, the clock, and who may be first in a row of Table 1."""
    spec = paper.claims[name]
    row, _ = claims.row_of(spec)
    tables = claims.row_readings(summaries, spec, paper)
    table = next(iter(tables.values()))

    def instead_of(choice: str, runs: pd.DataFrame, allowed: frozenset[str]) -> Alternative:
        return _instead(name, choice, claims.reading_finding(runs, spec, paper, row, allowed))

    if len(tables) > 1:
        varied = "stages of FLANP × readings of DelayHetSampling"
        if len({flanp for flanp, _ in tables}) == 1:
            varied = "readings of DelayHetSampling"
        yield counted(name, varied, claims.row_finding(summaries, spec, paper).readings)
    else:
        yield Alternative(name, "other stages of FLANP", "not run", "")
    warm_up = "seconds of warm-up rounds and candidates' losses count as well"
    yield _instead(name, warm_up, claims.reading_finding(_everything(table), spec, paper, row))
    if row == "quadratic" and name == "c1":
        missed = table.loc[(table["sampler"] == "submodular") & np.isinf(table["counted"]), "seed"]
        draws = f"{len(missed)} draw{'s'[: len(missed) != 1]}"
        reaching = f"without the {draws} in which DelayHetSubmodular misses the target"
        yield instead_of(reaching, table[~table["seed"].isin(missed)], frozenset(PROPOSED))
    elif printed_row(paper, spec.artefact, row).fastest != "flanp":
        either = frozenset({*PROPOSED, "flanp"})
        yield instead_of("FLANP may be first, too", table, either)
    else:
        only = "only the proposed samplers may be first, not FLANP"
        yield instead_of(only, table, frozenset(PROPOSED))


def _everything(table: pd.DataFrame) -> pd.DataFrame:
    """Count all seconds; for runs that miss the target, the paper's seconds are a lower bound."""
    end = table["end"].where(np.isinf(table["all"]), table["all"])
    return table.assign(counted=table["all"], end=end)


def _of_stages(name: str, summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Vary the stages of FLANP; rounds do not depend on delays, so any case serves."""
    goal, spec = target(paper, "quadratic"), paper.claims[name]
    table = pd.concat([runtimes(summaries[experiment], goal) for experiment in FURTHER[name]])
    table = table[table["case"] == "synthetic"]
    rounds = table.pivot(index="seed", columns="sampler", values="rounds")
    for label, choice in STAGES.items():
        if label in rounds:
            finding = claims_trends.flanp_over_random(rounds[label], rounds["random"], spec, goal)
            yield instead(name, choice, finding)


def _of_sweep(name: str, summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Judge c21 or c22 by means, by every seed, and over its open choices."""
    tables = _main_sweep(name, summaries, paper)
    changes = {label: table.iloc[:, -1] - table.iloc[:, 0] for label, table in tables.items()}
    yield _by_sign(name, "the order of the means decides", _steps_of_means(tables))
    yield _by_sign(name, "the sign of every seed's ends decides", changes)
    yield _over_readings(name, summaries, paper)


def _main_sweep(name: str, summaries: Summaries, paper: Paper) -> dict[str, pd.DataFrame]:
    """Return :func:`.seconds_along_sweep` with the main reading of DelayHetSampling."""
    artefact, sign = paper.claims[name].artefact, SWEPT[name]
    main = next(iter(claims_trends.sampling_readings(summaries, SWEEPS[artefact][1])))
    return claims_trends.seconds_along_sweep(summaries, paper, artefact, sign, main)


def _steps_of_means(tables: Mapping[str, pd.DataFrame]) -> dict[str, ArrayLike]:
    return {label: np.diff(table.mean()) for label, table in tables.items()}


def _by_sign(name: str, choice: str, differences: Mapping[str, ArrayLike]) -> Alternative:
    """Judge a claim by the signs of each sampler's differences, without intervals."""
    parts = {label: _all_positive(values) for label, values in differences.items()}
    finding = verdict(parts, "", {}, contrary_decides=False)
    return instead(name, choice, finding, finding.reason.rstrip("."))


def _over_readings(name: str, summaries: Summaries, paper: Paper) -> Alternative:
    """Count the verdicts of a claim over its open choices."""
    finding = judge_function(paper, name)(summaries, paper.claims[name], paper)
    return counted(name, "its unstated choices", finding.readings)


def _all_positive(differences: ArrayLike) -> Part:
    """Judge whether all differences are positive; it fails if all are negative."""
    signs = set(np.sign(differences))
    return stated(signs == {1} if signs in ({1}, {-1}) else None)


def _of_overheads(name: str, summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Vary the iterations, the solver and the problem."""
    summary, spec = summaries["overhead"], paper.claims[name]
    yield Alternative(name, "more iterations of ApproxOptSampling's solver", "not run", "")
    changed: dict[str, dict[str, Any]] = {
        "ApproxOptSampling solved by SLSQP": {"approx_opt": "approx_opt_slsqp"},
        "on Shakespeare instead of Quadratic": {"case": "shakespeare"},
    }
    for choice, changes in changed.items():
        yield _instead(name, choice, claims_trends.overheads(summary, spec, paper, **changes))


def _instead(name: str, choice: str, finding: Finding) -> Alternative:
    """Record a finding with only its last number, the size of the effect."""
    return instead(name, choice, finding, finding.ours.rpartition("; ")[2])
