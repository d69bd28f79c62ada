"""Verdicts: what a claim's evidence amounts to, and when it may be judged at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["reproduced", "partly", "contradicted", "inconclusive", "not evaluated"]
VERDICTS: tuple[Verdict, ...] = (
    "reproduced",
    "partly",
    "contradicted",
    "inconclusive",
    "not evaluated",
)


@dataclass(frozen=True)
class Finding:
    """What came out for a claim.

    Parameters
    ----------
    verdict : str
        One of :data:`VERDICTS`.
    ours : str
        Our value with its interval, as the claims table shows it.
    reason : str
        One sentence: what decided.
    """

    verdict: Verdict
    ours: str
    reason: str


def judge(finding: Finding, obstacles: list[str]) -> Finding:
    """Withhold the verdict where the evidence is not of the paper's scale or data.

    Parameters
    ----------
    finding : Finding
        What the runs at hand show.
    obstacles : list of str
        Why they are no evidence, such as ``"quick scale"``; empty if they are.
    """
    if not obstacles:
        return finding
    why = " and ".join(obstacles)
    return Finding(
        "not evaluated",
        finding.ours,
        f"Not judged on {why}; these runs alone would say: {finding.verdict}.",
    )


def not_run(experiments: Sequence[str]) -> Finding:
    """Withhold the verdict where some of the claim's experiments are not run at this scale."""
    return Finding("not evaluated", "–", f"Not run at this scale: {', '.join(experiments)}.")
