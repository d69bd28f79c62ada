"""The lines that ``fedsampling rank`` prints: the advice, or the comparison of all samplers."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import shorten

from fedsampling.base.errors import InputError, nearest
from fedsampling.base.plain_text import align
from fedsampling.experiments.cross_matrix import REFERENCE
from fedsampling.report.all_samplers import INFORMATION_COSTS
from fedsampling.report.which_sampler.advice import Situation
from fedsampling.report.which_sampler.comparison import DEPENDS, NOTHING, Comparison, SpeedUp

WIDTH = 100  # characters of a line


def advice_lines(comparisons: Mapping[str, Comparison], situation: Situation) -> Iterator[str]:
    """Write the advice in a situation: at most ten lines.

    `comparisons`: by the measure of cost.
    """
    yield f"Advice ({situation.in_words}):"
    for measure, comparison in comparisons.items():
        first, *others = comparison.advice(situation).lines
        yield shorten(f"{measure}: {first}", WIDTH, placeholder=" …")
        for line in others:
            yield shorten(f"  {line}", WIDTH - 2, placeholder=" …").join(["  ", ""])


def comparison_lines(comparison: Comparison, needs: Sequence[str] | None = None) -> Iterator[str]:
    """Write the comparison of all samplers as a table.

    `needs`: show only samplers that need nothing but this information.
    """
    names = (*INFORMATION_COSTS, NOTHING, DEPENDS)
    if unknown := [name for name in needs or () if name not in names]:
        raise InputError(*(f"--needs {name}: unknown; {nearest(name, names)}" for name in unknown))
    rows = [
        row for row in comparison.rows if needs is None or {*needs, NOTHING}.issuperset(row.needs)
    ]
    table = [
        ["sampler", "needs", *(column.title for column in comparison.overall)],
        *(
            [
                row.name,
                shorten(",".join(row.needs), 17, placeholder="…"),
                *(_cell(row.speed_up(column)) for column in comparison.overall),
            ]
            for row in rows
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
