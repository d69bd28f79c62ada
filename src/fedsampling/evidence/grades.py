"""Grades of verdicts, by the runs behind them.

The grade is the paper's size, the paper's size on data for which nobody publishes a checksum,
other data of the paper's size (transfer), or smaller runs (preliminary).  Grades are never
counted together.  Runs that are no evidence give no verdict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fedsampling.base.text import listed
from fedsampling.evidence.provenance import RunEvidence, has_unverified_data
from fedsampling.evidence.verdicts import DEPENDS, Finding, Verdict, disagreement

# Labels of grades next to verdicts and in column heads; other grades are their own label.
LABELS: Mapping[str, str] = {
    "paper's size on unverified data": "unverified data",
    "transfer": "other data",
    "preliminary": "smaller runs",
}
# The preliminary verdict in place of a rule's verdict, for runs smaller than the paper's.
PRELIMINARY: Mapping[Verdict, Verdict] = {
    "reproduced": "supports",
    "partly reproduced": "partly supports",
    "contradicted": "opposes",
    "inconclusive": "insufficient data",
}


def graded(finding: Finding, evidence: RunEvidence, transfer: bool = False) -> Finding:
    """Grade a finding by the evidence of the runs behind it.

    Its verdict is preliminary if the runs are smaller than the paper's, and ``not run`` if they are
    no evidence. With `transfer`, the runs use other data than the paper.
    """
    if finding.verdict == "not run":
        return replace(finding, grade="not run")
    if not evidence.obstacles:
        return replace(finding, grade="transfer" if transfer else "paper's size")
    if evidence.preliminary and all(has_unverified_data([word]) for word in evidence.obstacles):
        return replace(finding, grade="paper's size on unverified data")
    why = listed(evidence.obstacles)
    if not evidence.preliminary:
        reason = f"These runs are not evidence: {why}. Trial of the rule: {finding.verdict}."
        return Finding("not run", finding.ours, reason, grade="not run")
    readings = tuple(
        replace(reading, verdict=PRELIMINARY.get(reading.verdict, reading.verdict))
        for reading in finding.readings
    )
    is_counted = finding.verdict == DEPENDS and len({row.verdict for row in readings}) > 1
    words = disagreement(readings) if is_counted else finding.reason
    return replace(
        finding,
        verdict=PRELIMINARY.get(finding.verdict, finding.verdict),
        reason=f"Preliminary ({why}). {words}",
        readings=readings,
        grade="preliminary",
    )


def not_run(experiments: Mapping[str, str]) -> Finding:
    """Withhold the verdict of a claim with experiments that were not run, by their reasons."""
    by_reason: dict[str, list[str]] = {}
    for name, why in experiments.items():
        by_reason.setdefault(why, []).append(name)
    reasons = "; ".join(f"{', '.join(names)}: {why}" for why, names in by_reason.items())
    return Finding("not run", "–", f"Not run: {reasons}.", grade="not run")


def not_judged(changes: Sequence[str]) -> Finding:
    """Withhold the verdict where settings were changed, so that the runs are not the claim's."""
    reason = f"Not judged: {listed(list(changes))} changed, with the paper's value in brackets."
    return Finding("not run", "–", reason, grade="not run")


def unfit(changes: Sequence[str]) -> Finding:
    """Withhold the verdict where a claim's rule does not fit the settings that were changed."""
    keys = listed(list(changes)) or "other experiments are left out"
    reason = f"The rule does not fit the changed settings: {keys}."
    return Finding("not run", "–", reason, grade="not run")
