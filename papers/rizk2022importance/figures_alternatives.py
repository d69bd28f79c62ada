"""Choices that could change the verdicts of rizk2022importance, each judged again."""

import re
from collections.abc import Iterator

from fedsampling.evidence.verdicts import Finding
from fedsampling.experiments.papers import Paper, judge_function
from fedsampling.report.drawing.alternatives import Alternative, instead, tabulate, with_margin
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from . import claims
from .claims_fall import share_finding
from .falls import CELL, WINDOWS, fastest
from .levels import BALANCED
from .lines import TRUE
from .steady_states import exact

WIDER = 2.0  # factor on a margin
EARLIER = {"steady": "regression", "steady_standard": "standard"}  # runs of 2,500 iterations


def alternatives(summaries: Summaries, paper: Paper) -> Artefact:
    """Judge the claims under the choices most likely to change their verdicts."""
    names = ("c1", "c2", "c3", "c4", "c5")
    judged = {
        name: judge_function(paper, name)(summaries, paper.claims[name], paper) for name in names
    }
    return tabulate(judged, _alternatives(summaries, paper))


def _alternatives(summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Vary FedAvg's step, iterations, cells of c3, training samples and margins."""
    specs = paper.claims
    early, longer, late = (
        int(summaries[name].setting("rounds")) for name in ("regression", "longer", "steady")
    )
    fedavg, true = (exact((summaries["steady"], name, "base")) for name in ("fedavg", TRUE))
    yield instead(
        "c1",
        "FedAvg's steps divided by E_k, in the chosen population",
        claims.gap_finding(fedavg, true, specs["c1"], paper.reported("gap")),
    )
    yield _wider("c1", summaries, paper, " dB")
    for name, rounds in {"regression": early, "steady": late}.items():
        finding = claims.c2({**summaries, "longer": summaries[name]}, specs["c2"], paper)
        yield instead("c2", f"after {rounds:,} iterations instead of {longer:,}", finding)
    yield _wider("c2", summaries, paper, "")
    cells = fastest(summaries).drop_duplicates(CELL)
    for choice, chosen in {
        "FedAvg's steps divided by E_k, all populations": cells["baseline"] != "standard",
        f"while {WINDOWS[1]}, all populations and baselines": cells["window"] == WINDOWS[1],
        "the chosen population alone": cells["experiment"] == "regression",
    }.items():
        yield instead("c3", choice, share_finding(cells.loc[chosen, "part"]))
    alone = {name: runs for name, runs in summaries.items() if name != claims.FEW_STEADY}
    yield _wider("c4", alone, paper, " dB")
    earlier = {**alone, **{name: summaries[before] for name, before in EARLIER.items()}}
    finding = claims.c4(earlier, specs["c4"], paper)
    yield _instead("c4", f"after {early:,} iterations instead of {late:,}", finding)
    summary = summaries["classification"]
    for choice, case in {
        "a floor of both errors is ignored": "base",
        "half of the training samples positive": BALANCED,
    }.items():
        if case in summary.settings["cases"]:
            yield instead("c5", choice, claims.errors_finding(summary, case, specs["c5"], paper))
    yield _wider("c5", summaries, paper, " (percentage points)")


def _wider(name: str, summaries: Summaries, paper: Paper, unit: str) -> Alternative:
    """Judge a claim with a wider margin."""
    margin = WIDER * paper.claims[name].margin
    return _instead(name, *with_margin(name, margin, summaries, paper, unit))


def _instead(name: str, choice: str, finding: Finding) -> Alternative:
    """Record a finding with only its first numbers, which its rule uses."""
    first = finding.ours if name == "c2" else re.split(r"; |\. ", finding.ours)[0]
    return instead(name, choice, finding, first)
