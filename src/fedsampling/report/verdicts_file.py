"""``verdicts.json`` of the report: all verdicts as data; docs/verdicts.md describes its fields."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from fedsampling.evidence.claims import Claim
from fedsampling.report.content import Chapter


def verdicts_json(chapters: Iterable[Chapter]) -> str:
    """Write all verdicts as a list of records."""
    records = [_record(chapter, claim) for chapter in chapters for claim in chapter.claims]
    return json.dumps(records, ensure_ascii=False, indent=1) + "\n"


def _record(chapter: Chapter, claim: Claim) -> dict[str, Any]:
    """Return a claim's record.

    ``ours``, ``low`` and ``high`` are the first of the claim's numbers, null without an interval;
    ``numbers`` has them all.
    """
    return {
        "paper": chapter.key,
        "claim": claim.id,
        "kind": claim.kind,
        "text": claim.statement,
        "paper_value": claim.drawn[0].paper if claim.drawn else None,
        "paper_text": claim.reported,
        "ours": claim.drawn[0].value if claim.drawn else None,
        "low": claim.drawn[0].low if claim.drawn else None,
        "high": claim.drawn[0].high if claim.drawn else None,
        "ours_text": claim.ours,
        "verdict": claim.verdict,
        "grade": claim.grade,
        "rule": claim.rule,
        "reason": claim.reason,
        "parts": claim.parts,
        "answered": claim.answered,
        "confirmed": claim.confirmed,
        "confirmation": claim.confirmation and asdict(claim.confirmation),
        "price": claim.price and asdict(claim.price),
        "seeds": claim.seeds,
        "declared": claim.declared and asdict(claim.declared),
        "artefact": claim.artefact,
        "numbers": [asdict(interval) for interval in claim.drawn],
    }
