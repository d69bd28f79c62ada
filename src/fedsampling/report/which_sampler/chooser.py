"""The chooser: two or three samplers for a reader's situation, with the measurements behind them.

A situation is an answer to each of :data:`QUESTIONS`.  This module picks samplers for every
situation, from the benchmark's decision map, the samplers' needs and the comparison; the page only
looks them up.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from fedsampling.evidence.numbers import show
from fedsampling.experiments.cross_matrix import REFERENCE
from fedsampling.report.which_sampler import decision_map
from fedsampling.report.which_sampler.comparison import (
    NOTHING,
    UNKNOWN,
    Column,
    Comparison,
    SamplerRow,
)
from fedsampling.report.which_sampler.decision_map import Advice

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
Situation = Mapping[str, str]  # an answer to each question, by key
# Information available to a server that observes each client's update.
_UPDATES = frozenset({"updates", "update_norms"})


def lookup_table(
    comparisons: Mapping[str, Comparison], advice: Mapping[decision_map.Situation, Advice]
) -> dict[str, Any]:
    """Recommend samplers for every situation, as data for the page.

    Parameters
    ----------
    comparisons : mapping of str to Comparison
        By the measure of cost.
    advice : mapping
        From :func:`.decision_map.read`; may be empty.

    Returns
    -------
    dict
        ``texts``: a list of [key, name, reason] of samplers.  ``picks``: by the answers joined with
        spaces, indices into ``texts``.
    """
    texts: dict[tuple[str, str, str], int] = {}
    picks = {
        " ".join(situation.values()): [
            texts.setdefault((row.name, row.display.title, reason), len(texts))
            for row, reason in recommendations(comparisons[situation["cost"]], advice, situation)
        ]
        for situation in situations()
        if situation["cost"] in comparisons
    }
    return {"texts": [list(text) for text in texts], "picks": picks}


def situations() -> Iterator[dict[str, str]]:
    """Yield every combination of answers."""
    keys = [question.key for question in QUESTIONS]
    for answers in product(*(question.answers for question in QUESTIONS)):
        yield dict(zip(keys, answers, strict=True))


def recommendations(
    comparison: Comparison, advice: Mapping[decision_map.Situation, Advice], situation: Situation
) -> Iterator[tuple[SamplerRow, str]]:
    """Yield the samplers for a situation, each with the reason.

    The decision map's advice comes first, then measured samplers.  MD sampling is added if there
    are fewer than two.
    """
    rows = {row.name: row for row in comparison.rows}
    advised = advice.get((situation["cost"], _answers_to_map(situation)))
    names = []
    row = rows.get(advised.sampler) if advised else None
    if advised and row and (row.name == REFERENCE or fits(row, situation)):
        names.append(row.name)
        yield row, _reason_of_map(advised, row, comparison)
    column = _column(comparison, situation)
    better = [row for row in faster_than_md(comparison, situation) if row.name not in names]
    for row in better[: MAX_PICKS - len(names)]:
        names.append(row.name)
        yield row, _reason_measured(row, column)
    reference = rows.get(REFERENCE)
    if reference and len(names) < 2 and REFERENCE not in names:
        start = "the reference" if names else "no allowed sampler is significantly better"
        yield reference, f"{start}; {_described(reference, comparison)}."


def faster_than_md(comparison: Comparison, situation: Situation) -> list[SamplerRow]:
    """Return the samplers that fit a situation and are faster than MD sampling, fastest first.

    They reached every target, and their speed-ups' whole intervals are above 1.
    """
    column = _column(comparison, situation)
    better = [
        (speed_up.value, row)
        for row in comparison.rows
        if fits(row, situation)
        and (speed_up := row.speed_up(column)).side == "+"
        and not speed_up.missed
    ]
    return [row for _, row in sorted(better, key=lambda pair: -pair[0])]


def fits(row: SamplerRow, situation: Situation) -> bool:
    """Whether a sampler fits the answers; always False if no practical server can use it."""
    available = {NOTHING, *(["delays"] if situation["delays"] == "yes" else [])}
    if situation["observed"] == "updates":
        available |= _UPDATES
    return (
        row.is_practical
        and (situation["observed"] == "anything" or available.issuperset(row.needs))
        and (situation["delays"] == "yes" or not row.needs_delays)
        and (situation["away"] == "no" or row.allows_absence)
        and (situation["unbiased"] == "no" or row.unbiased == "yes")
    )


def _column(comparison: Comparison, situation: Situation) -> Column:
    """Return the column of all datasets; if clients come and go, of the dataset where they do."""
    away = [column for column in comparison.datasets if column.clients_come_and_go]
    if situation["away"] == "yes" and away:
        return away[0]
    return next(column for column in comparison.overall if column.key == situation["cost"])


def _answers_to_map(situation: Situation) -> frozenset[str]:
    """Return the questions of the decision map whose answer is yes in a situation."""
    yes = {key for key in ("away", "delays", "unequal", "skewed") if situation[key] == "yes"}
    observed = {"updates": {"updates"}, "nothing": set(), "anything": {"updates", "losses"}}
    return frozenset(yes | observed[situation["observed"]])


def _reason_of_map(advice: Advice, row: SamplerRow, comparison: Comparison) -> str:
    mean, worst = map(show, advice.regret)
    gain = of_md = ""
    if row.name != REFERENCE:
        gain = f"{advice.speed_up_in_words}. "
        of_md = f"; for MD sampling, this factor is {show(advice.mean_regret['md'])}"
    return (
        f"{gain}This advice costs {mean} times as much as the best allowed sampler on a dataset "
        f"that it was not learned from (mean; at worst {worst} times){of_md}; "
        f"{_described(row, comparison)}."
    )


def _reason_measured(row: SamplerRow, column: Column) -> str:
    speed_up = row.speed_up(column)
    where = column.title if column.differ else "all datasets"
    return (
        f"{speed_up.text} × as fast as MD sampling {speed_up.interval} on {where}; "
        f"every run reached the target; needs {row.needs_in_words}; {row.bias_in_words}."
    )


def _described(row: SamplerRow, comparison: Comparison) -> str:
    """Write the share of runs that reached the target, the information needed, and the bias."""
    reached = row.speed_ups.get(comparison.by, UNKNOWN).reached
    share = "every run" if reached == 1 else f"{math.floor(100 * reached)} % of runs"
    return f"{share} reached the target; needs {row.needs_in_words}; {row.bias_in_words}"
