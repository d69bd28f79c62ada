"""Choices that could change the verdicts of rizk2022importance."""

import re
from collections.abc import Iterator

from fedsampling.evidence.verdicts import Finding
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.alternatives import (
    Alternative,
    counted,
    instead,
    tabulate,
    with_margin,
)
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from . import claims
from .measures import BALANCED, CELL, TRUE, WINDOWS, fastest

WIDER = 2.0  # factor on a margin
EARLIER = {"steady": "regression", "steady_standard": "standard"}  # runs of 2,500 iterations


def alternatives(summaries: Summaries, paper: Paper) -> Artefact:
    """Judge the claims under the choices most likely to change their verdicts."""
    names = ("c1", "c2", "c3", "c4", "c5")
    judged = {name: getattr(claims, name)(summaries, paper.claims[name], paper) for name in names}
    rows = [
        counted("c1", "all populations that were tried", judged["c1"].readings),
        *_of_gap(summaries, paper),
        *_of_distances(summaries, paper),
        *_of_fall(summaries),
        *_of_tracked(summaries, paper, judged["c4"]),
        *_of_errors(summaries, paper),
    ]
    return tabulate(judged, rows)


def _wider(
    name: str, summaries: Summaries, paper: Paper, unit: str, factor: float = WIDER
) -> Alternative:
    """Judge a claim with a wider margin."""
    margin = factor * paper.claims[name].margin
    return _instead(name, *with_margin(name, margin, summaries, paper, unit))


def _instead(name: str, choice: str, finding: Finding) -> Alternative:
    """Record a finding with only its first numbers, which its rule uses."""
    first = finding.ours if name == "c2" else re.split(r"; |\. ", finding.ours)[0]
    return instead(name, choice, finding, first)


def _of_gap(summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Vary FedAvg's step, and the margin."""
    fedavg, true = ((summaries["steady"], name, "base") for name in ("fedavg", TRUE))
    yield instead(
        "c1",
        "FedAvg's steps divided by E_k, in the chosen population",
        claims.gap_finding(fedavg, true, paper.claims["c1"], paper.reported("gap")),
    )
    yield _wider("c1", summaries, paper, " dB")


def _of_distances(summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Vary the number of iterations and the margin."""
    judged = int(summaries["longer"].setting("rounds"))
    for name in ("regression", "steady"):
        rounds = int(summaries[name].setting("rounds"))
        finding = claims.c2({**summaries, "longer": summaries[name]}, paper.claims["c2"], paper)
        yield instead("c2", f"after {rounds:,} iterations instead of {judged:,}", finding)
    yield _wider("c2", summaries, paper, "")


def _of_fall(summaries: Summaries) -> Iterator[Alternative]:
    """Restrict the claim to one baseline, one window or one population."""
    cells = fastest(summaries).drop_duplicates(CELL)
    for choice, chosen in {
        "FedAvg's steps divided by E_k, all populations": cells["baseline"] != "standard",
        f"while {WINDOWS[1]}, all populations and baselines": cells["window"] == WINDOWS[1],
        "the chosen population alone": cells["experiment"] == "regression",
    }.items():
        yield instead("c3", choice, claims.share_finding(cells.loc[chosen, "part"]))


def _of_tracked(summaries: Summaries, paper: Paper, judged: Finding) -> Iterator[Alternative]:
    """Vary the population, the margin and the iterations."""
    if judged.readings:
        yield counted(
            "c4", "the chosen population and others with about the paper's gap", judged.readings
        )
    summaries = {name: runs for name, runs in summaries.items() if name != claims.FEW_STEADY}
    yield _wider("c4", summaries, paper, " dB")
    if not judged.readings:
        yield _wider("c4", summaries, paper, " dB", 2 * WIDER)
    earlier = {**summaries, **{name: summaries[early] for name, early in EARLIER.items()}}
    rounds, read = (int(summaries[name].setting("rounds")) for name in ("regression", "steady"))
    yield _instead(
        "c4",
        f"after {rounds:,} iterations instead of {read:,}",
        claims.c4(earlier, paper.claims["c4"], paper),
    )


def _of_errors(summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Drop the rule about the floor, balance the training samples, and widen the margin."""
    summary, spec = summaries["classification"], paper.claims["c5"]
    for choice, case in {
        "a floor of both errors is ignored": "base",
        "half of the training samples positive": BALANCED,
    }.items():
        if case in summary.settings["cases"]:
            yield instead("c5", choice, claims.errors_finding(summary, case, spec, paper))
    yield _wider("c5", summaries, paper, " (percentage points)")
