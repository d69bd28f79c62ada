"""The chooser: two or three samplers for a user's situation, with the measurements behind them.

A situation is an answer to each of :data:`QUESTIONS`.  This module picks samplers for every
situation, from the benchmark's decision map, the samplers' declared needs and the cross matrix; the
page only looks them up.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from fedsampling.evidence.numbers import show
from fedsampling.experiments.cross_matrix import REFERENCE
from fedsampling.report.choosing import (
    EVERYBODY,
    IMPRACTICAL,
    NOTHING,
    Choice,
    Choices,
    Column,
    Gain,
)
from fedsampling.report.deciding import Decision

MAX_PICKS = 3  # recommended samplers


@dataclass(frozen=True)
class Question:
    """A question; its answers are keys with their text on the page."""

    key: str
    text: str
    answers: Mapping[str, str]


QUESTIONS = (
    Question(
        "cost",
        "Which cost matters?",
        {"rounds": "rounds", "bits": "bits sent by clients", "seconds": "seconds"},
    ),
    Question(
        "observed",
        "What may the server observe?",
        {
            "updates": "each client's update",
            "nothing": "only their sum (secure aggregation)",
            "anything": "also losses, norms and gradients",
        },
    ),
    Question("delays", "Does it know the clients' delays?", {"no": "no", "yes": "yes"}),
    Question("away", "Do clients come and go?", {"no": "no", "yes": "yes"}),
    Question("unequal", "Do they have very unequal sizes?", {"no": "no", "yes": "yes"}),
    Question("skewed", "Do their labels differ?", {"no": "no", "yes": "yes"}),
    Question("unbiased", "Must the sampler be unbiased?", {"no": "no", "yes": "yes"}),
)
# Information available to a server that observes each client's update.
_UPDATES = frozenset({"updates", "update_norms"})


@dataclass(frozen=True)
class Pick:
    """A sampler that fits a situation.

    Parameters
    ----------
    choice : Choice
    gain : Gain
        Its speed-up over MD sampling on the datasets of `column`.
    column : Column
        The datasets that match the situation.
    """

    choice: Choice
    gain: Gain
    column: Column


def advise(measured: Mapping[str, Choices], situation: Mapping[str, str]) -> tuple[Pick, ...]:
    """Recommend samplers for a situation, the fastest first.

    A recommended sampler fits the answers, reached every target, and has a speed-up over MD
    sampling whose whole interval is above 1.

    Parameters
    ----------
    measured : mapping of str to Choices
        By the cost that counts.
    situation : mapping of str to str
        An answer to each question, by key.

    Returns
    -------
    tuple of Pick
        At most :data:`MAX_PICKS`; empty if MD sampling is the best choice.
    """
    comparison = measured[situation["cost"]]
    column = _column(comparison, situation)
    picks = [
        Pick(row, row.gain(column), column) for row in comparison.rows if allowed(row, situation)
    ]
    better = [pick for pick in picks if pick.gain.way == "+" and not pick.gain.missed]
    return tuple(sorted(better, key=lambda pick: -pick.gain.value)[:MAX_PICKS])


def allowed(row: Choice, situation: Mapping[str, str]) -> bool:
    """Whether a sampler fits the answers; always False if no practical server can use it."""
    needs = set(row.observes)
    free = {NOTHING, *(["delays"] if situation["delays"] == "yes" else [])}
    if situation["observed"] == "updates":
        free |= _UPDATES
    observable = situation["observed"] == "anything" or needs <= free
    return (
        row.name not in (REFERENCE, EVERYBODY)
        and observable
        and not needs & IMPRACTICAL
        and (situation["delays"] == "yes" or not row.needs_delays)
        and (situation["away"] == "no" or row.comes_and_goes)
        and (situation["unbiased"] == "no" or row.unbiased == "yes")
    )


def situations() -> Iterator[dict[str, str]]:
    """Yield every combination of answers."""
    keys = [question.key for question in QUESTIONS]
    for answers in product(*(question.answers for question in QUESTIONS)):
        yield dict(zip(keys, answers, strict=True))


def as_lookup(
    measured: Mapping[str, Choices], decided: Mapping[tuple[str, frozenset[str]], Decision]
) -> dict[str, Any]:
    """Recommend samplers for every situation, as data for the page.

    The decision map's advice comes first, then measured samplers.  MD sampling is added if there
    are fewer than two.

    Parameters
    ----------
    measured : mapping of str to Choices
        By the cost that counts.
    decided : mapping
        From :func:`.deciding.decision_map`; may be empty.

    Returns
    -------
    dict
        ``texts``: a list of [key, name, reason] of samplers.  ``picks``: by the answers joined with
        spaces, indices into ``texts``.
    """
    texts: dict[tuple[str, str, str], int] = {}
    picks = {
        " ".join(situation.values()): [
            texts.setdefault(text, len(texts)) for text in _texts(measured, decided, situation)
        ]
        for situation in situations()
        if situation["cost"] in measured
    }
    return {"texts": [list(text) for text in texts], "picks": picks}


def _texts(
    measured: Mapping[str, Choices],
    decided: Mapping[tuple[str, frozenset[str]], Decision],
    situation: Mapping[str, str],
) -> Iterator[tuple[str, str, str]]:
    """Yield key, name and reason of the samplers for a situation."""
    comparison = measured[situation["cost"]]
    rows = {row.name: row for row in comparison.rows}
    decision = decided.get((situation["cost"], _answers(situation)))
    names = []
    if decision and (row := rows.get(decision.sampler)) and _may_decide(row, situation):
        names.append(row.name)
        yield row.name, row.display.title, _why_decided(decision, row, comparison)
    better = [pick for pick in advise(measured, situation) if pick.choice.name not in names]
    for pick in better[: MAX_PICKS - len(names)]:
        names.append(pick.choice.name)
        yield pick.choice.name, pick.choice.display.title, _why(pick)
    reference = rows.get(REFERENCE)
    if reference and len(names) < 2 and REFERENCE not in names:
        start = "the reference" if names else "no allowed sampler is significantly better"
        yield REFERENCE, reference.display.title, f"{start}; {_described(reference, comparison)}."


def _answers(situation: Mapping[str, str]) -> frozenset[str]:
    """Return the questions of the decision map whose answer is yes in a situation."""
    yes = {key for key in ("away", "delays", "unequal", "skewed") if situation[key] == "yes"}
    known = {"updates": {"updates"}, "nothing": set(), "anything": {"updates", "losses"}}
    return frozenset(yes | known[situation["observed"]])


def _may_decide(row: Choice, situation: Mapping[str, str]) -> bool:
    return row.name == REFERENCE or allowed(row, situation)


def _why_decided(decision: Decision, row: Choice, comparison: Choices) -> str:
    mean, worst = map(show, decision.expected)
    gain = always = ""
    if row.name != REFERENCE:
        gain = f"{decision.gain}. "
        always = f"; for MD sampling, this factor is {show(decision.regret[REFERENCE])}"
    return (
        f"{gain}This advice costs {mean} times as much as the best allowed sampler on a dataset "
        f"that it was not learned from (mean; at worst {worst} times){always}; "
        f"{_described(row, comparison)}."
    )


def _described(row: Choice, comparison: Choices) -> str:
    """Write the share of runs that reached the target, the information needed, and the bias."""
    reached = row.gain(
        next(column for column in comparison.overall if column.key == comparison.by)
    ).reached
    share = "every run" if reached == 1 else f"{math.floor(100 * reached)} % of runs"
    bias = {"yes": "unbiased", "no": "biased"}.get(row.unbiased, "unbiased in some settings")
    return f"{share} reached the target; needs {row.needs}; {bias}"


def _column(comparison: Choices, situation: Mapping[str, str]) -> Column:
    """Return the column of all datasets; if clients come and go, of the dataset where they do."""
    away = (each for each in comparison.sets if "presence" in each.differ)
    if situation["away"] == "yes" and (column := next(away, None)):
        return column
    return next(each for each in comparison.overall if each.key == situation["cost"])


def _why(pick: Pick) -> str:
    where = pick.column.title if pick.column.differ else "all datasets"
    bias = {"yes": "unbiased", "no": "biased"}.get(
        pick.choice.unbiased, "unbiased in some settings"
    )
    return (
        f"{pick.gain.number} × as fast as MD sampling {pick.gain.interval} on {where}; "
        f"every run reached the target; needs {pick.choice.needs}; {bias}."
    )
