"""``verdicts.json`` of the report: all verdicts as data; docs/verdicts.md describes its fields."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from fedsampling.evidence.claims import Claim, Confirmation
from fedsampling.report.content import Chapter


def verdicts_json(chapters: Iterable[Chapter]) -> str:
    """Write all verdicts as a list of records."""
    records = [_record(chapter, claim) for chapter in chapters for claim in chapter.claims]
    return json.dumps(records, ensure_ascii=False, indent=1) + "\n"


def _record(chapter: Chapter, claim: Claim) -> dict[str, Any]:
    """Return a claim's record, whose verdict and numbers are those of the report.

    ``ours``, ``low`` and ``high`` are the first of the claim's numbers, null without an interval
    (of a bound, only ``ours`` is a number);
    ``numbers`` has them all. ``explored`` has the same fields of the runs that explored the claim.
    """
    first = claim.basis.drawn[0] if claim.basis.drawn else None
    return {
        "paper": chapter.key,
        "claim": claim.id,
        "kind": claim.kind,
        "text": claim.statement,
        "paper_value": first and first.paper,
        "paper_text": claim.reported,
        "ours": first and first.value,
        "low": first and (None if first.bound else first.low),
        "high": first and (None if first.bound else first.high),
        **_judged(claim.basis),
        "rule": claim.rule,
        "answered": claim.answered,
        "confirmed": claim.confirmed,
        "confirmation": claim.confirmation and asdict(claim.confirmation),
        "explored": _judged(claim),
        "price": claim.price and asdict(claim.price),
        "declared": claim.declared and asdict(claim.declared),
        "artefact": claim.artefact,
    }


def _judged(basis: Claim | Confirmation) -> dict[str, Any]:
    """Return the verdict that runs lead to, with its reason and numbers."""
    return {
        "ours_text": basis.ours,
        "verdict": basis.verdict,
        "grade": basis.grade,
        "reason": basis.reason,
        "parts": basis.parts,
        "seeds": basis.seeds,
        "numbers": [asdict(interval) for interval in basis.drawn],
    }
