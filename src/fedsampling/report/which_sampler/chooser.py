"""The chooser and ``fedsampling rank``: the advice for a reader's situation, by :mod:`.advice`.

A situation is an answer to each of :data:`QUESTIONS`.  This module looks up the advice for every
situation; the page only shows it.  ``fedsampling rank`` prints the advice or all samplers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from textwrap import shorten
from typing import Any

from fedsampling.base.text import align
from fedsampling.experiments.cross_matrix import REFERENCE
from fedsampling.report.which_sampler.advice import Situation
from fedsampling.report.which_sampler.comparison import Comparison, SpeedUp


@dataclass(frozen=True)
class Question:
    """A question; its answers are keys with their text on the page."""

    key: str
    text: str
    answers: Mapping[str, str]


NO_YES = {"no": "no", "yes": "yes"}
ANY_NO_YES = {"any": "not known", **NO_YES}
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
            "losses": "only their sum, and each client's loss",
            "anything": "also losses, norms and gradients",
        },
    ),
    Question("delays", "Does it know the clients' delays?", NO_YES),
    Question("away", "Do clients come and go?", NO_YES),
    Question("unequal", "Do they have very unequal sizes?", ANY_NO_YES),
    Question("skewed", "Do their labels differ?", ANY_NO_YES),
    Question("unbiased", "Must the sampler be unbiased?", NO_YES),
)
OBSERVED: Mapping[str, frozenset[str]] = {
    "updates": frozenset({"updates"}),
    "nothing": frozenset(),
    "losses": frozenset({"losses"}),
    "anything": frozenset({"updates", "losses"}),
}


def lookup_table(comparisons: Mapping[str, Comparison]) -> dict[str, Any]:
    """Return the advice for every situation: ``texts``, and ``picks`` by the answers."""
    texts: dict[tuple[str, ...], int] = {}
    picks = {
        " ".join(answers.values()): texts.setdefault(
            comparisons[answers["cost"]]
            .advice(situation_of(answers), answers["unbiased"] == "yes")
            .lines(),
            len(texts),
        )
        for answers in all_answers()
        if answers["cost"] in comparisons
    }
    return {"texts": [list(lines) for lines in texts], "picks": picks}


def all_answers() -> Iterator[dict[str, str]]:
    """Yield every combination of answers."""
    keys = [question.key for question in QUESTIONS]
    for answers in product(*(question.answers for question in QUESTIONS)):
        yield dict(zip(keys, answers, strict=True))


def situation_of(answers: Mapping[str, str]) -> Situation:
    """Return the situation that answers describe."""
    observed = OBSERVED[answers["observed"]] | ({"delays"} if answers["delays"] == "yes" else set())
    truth = {"any": None, "no": False, "yes": True}
    return Situation(
        frozenset(observed),
        answers["away"] == "yes",
        truth[answers["unequal"]],
        truth[answers["skewed"]],
    )


WIDTH = 100  # characters of a line


def advice_lines(comparisons: Mapping[str, Comparison], situation: Situation) -> Iterator[str]:
    """Write the advice in a situation, by the measure of cost: at most ten lines."""
    yield f"Advice ({situation.in_words}); 'missed': runs that did not reach the target:"
    for measure, comparison in comparisons.items():
        advice = comparison.advice(situation)
        first, *others = advice.lines(candidates=1)
        yield shorten(f"{measure}: {first}", WIDTH, placeholder=" …")
        for line in others:
            # Of a long line, the first sentences.
            short = line if len(line) <= WIDTH - 2 else line[: line.rfind(". ", 0, WIDTH - 2) + 1]
            yield f"  {shorten(short or line, WIDTH - 2, placeholder=' …')}"


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """Write a table of all samplers."""
    table = [
        ["sampler", "needs", *(column.title for column in comparison.overall)],
        *(
            [
                row.name,
                shorten(",".join(row.needs), 17, placeholder="…"),
                *(_cell(row.speed_up(column)) for column in comparison.overall),
            ]
            for row in comparison.rows
        ),
    ]
    yield from align(table)
    yield ""
    yield f"Speed-up over {REFERENCE} until the late target (2 = half the cost): geometric mean"
    yield "over families of datasets, and its 95 % interval. '!': some runs missed the target."
    if comparison.badges:
        yield f"These runs: {' · '.join(comparison.badges)}."


def _cell(speed_up: SpeedUp) -> str:
    return f"{speed_up.text} {speed_up.interval}{'!' * bool(speed_up.missed)}".strip()
