"""The claim of Rizk et al. 2022 on the initial decrease, judged over populations and baselines."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fedsampling.base.text import show
from fedsampling.evidence.rules import JOINT, above, over_choices
from fedsampling.evidence.statistics import Estimate, show_estimate
from fedsampling.evidence.verdicts import Finding, Interval, Part, Verdict, intervals
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .falls import BASELINE_NAMES, CELL, WINDOWS, fastest

# c3 is decided if more than this fraction of the cells agree, and at most that fraction oppose.
MIN_AGREEING, MAX_OPPOSING = 0.5, 0.05
# The samplers that (49)–(50) are compared with, in words.
RIVALS = {
    "FedAvg divided by E_k": "FedAvg with steps divided by E_k",
    "FedAvg standard": "standard FedAvg",
    "tracked": "the tracked probabilities",
    "optimal": "the true probabilities",
}


def c3(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge over baselines and populations which sampler's MSD falls fastest."""
    compared = fastest(summaries)
    findings: dict[str, Finding] = {}
    ours: list[str] = []
    drawn: tuple[Interval, ...] = ()
    for (baseline, window), rows in compared.groupby(["baseline", "window"], sort=False):
        chosen: Any = rows[rows["experiment"] == "regression"].itertuples()
        leads = {row.other: Estimate(row.higher_db, row.low, row.high, row.seeds) for row in chosen}
        names = {f"{rival} above (49)–(50), FedAvg {baseline}": leads[rival] for rival in leads}
        shown = intervals(names, f"dB{JOINT}", least=spec.margin)
        finding = share_finding(rows.drop_duplicates(CELL)["part"])
        findings[f"FedAvg {baseline}, while {window}"] = replace(finding, drawn=shown)
        if window == WINDOWS[0]:
            texts = (f"{rival} {show_estimate(lead, 'dB')}" for rival, lead in leads.items())
            ours.append(f"FedAvg {baseline}: {', '.join(texts)}")
            drawn += shown
    finding = over_choices(findings, main=next(iter(findings)))
    cells = compared.drop_duplicates(CELL)
    return replace(
        finding,
        parts=_parts(compared),
        ours=f"above (49)–(50) in the chosen population: {'; '.join(ours)}",
        reason=f"{finding.reason} {_by_rival(compared)}".strip(),
        drawn=drawn,
        caveat=_failing_cells(cells[cells["part"] == "fails"]),
    )


def _parts(compared: pd.DataFrame) -> dict[str, Part]:
    """Judge c3 against each sampler, over all populations, baselines and windows."""
    of_verdict: dict[Verdict, Part] = {"reproduced": "holds", "contradicted": "fails"}
    parts: dict[str, Part] = {}
    for name, rows in _rivals(compared):
        outcomes = pd.Series([above(lead, 0.0) for lead in rows])
        parts[f"against {name}"] = of_verdict.get(share_finding(outcomes).verdict, "open")
    return parts


def _rivals(compared: pd.DataFrame) -> Iterator[tuple[str, list[Estimate]]]:
    """Yield each sampler that (49)–(50) are compared with, and its leads in all cells."""
    other, baseline = compared["other"], compared["baseline"]
    rivals = other.where(other != "FedAvg", "FedAvg " + baseline)
    for rival, name in RIVALS.items():
        rows: Any = compared[rivals == rival]
        yield (
            name,
            [Estimate(row.higher_db, row.low, row.high, row.seeds) for row in rows.itertuples()],
        )


def _by_rival(compared: pd.DataFrame) -> str:
    """Count where c3 holds and fails against each sampler, over populations and windows.

    Tracked and true probabilities count with each baseline: it sets the first window, and in both
    windows the correction of their intervals.
    """
    texts = []
    for name, leads in _rivals(compared):
        parts = [above(lead, 0.0) for lead in leads]
        median = np.median([lead.value for lead in leads])
        texts.append(
            f"against {name}, {parts.count('holds')} of {len(parts)} hold and "
            f"{parts.count('fails')} fail (median lead {show(float(median))} dB)"
        )
    return (
        f"Comparisons over populations and windows (tracked and true with each of both baselines): "
        f"{'; '.join(texts)}; the others are undecided."
    )


def _failing_cells(failing: pd.DataFrame) -> str:
    """Count the failing cells of each baseline; empty if the claim never fails."""
    if failing.empty:
        return ""
    undivided = int((failing["baseline"] == BASELINE_NAMES[0]).sum())
    return (
        "The paper states neither its noise variances nor whether FedAvg's steps are divided by "
        f"E_k; in {undivided} of the {len(failing)} cells in which the claim fails, they are not."
    )


def share_finding(parts: "pd.Series[str]") -> Finding:
    """Judge an order over many cells: more than half must agree and at most 5 % may oppose."""
    holding, failing = (float((parts == part).mean()) for part in ("holds", "fails"))
    words = {"holds": "holds", "fails": "fails", "open": "is undecided"}
    ours = ", ".join(f"{word} in {(parts == part).sum()}" for part, word in words.items())
    if holding > MIN_AGREEING and failing <= MAX_OPPOSING:
        return Finding("reproduced", ours, "")
    if failing > MIN_AGREEING and holding <= MAX_OPPOSING:
        return Finding("contradicted", ours, "")
    return Finding("inconclusive", ours, "")
