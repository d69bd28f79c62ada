"""The lines that ``fedsampling rank`` prints: the advice and the comparison of all samplers."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from fedsampling.base.columns import align
from fedsampling.base.errors import InputError, nearest
from fedsampling.experiments.cross_matrix import PAPER, REFERENCE
from fedsampling.report.all_samplers import INFORMATION_COSTS
from fedsampling.report.which_sampler.comparison import DEPENDS, NOTHING, Comparison, SpeedUp
from fedsampling.report.which_sampler.decision_map import ANSWERS, MAP, read


def advice_lines(folder: Path, yes: frozenset[str]) -> Iterator[str]:
    """Write the advice of the decision map.

    Parameters
    ----------
    folder : Path
        Holds the cross matrix's artefacts.
    yes : frozenset of str
        Keys of ANSWERS whose answer is yes.  Without any, a missing map is no error.
    """
    advice = [advice for (_, answers), advice in read(folder).items() if answers == yes]
    if yes and not advice:
        raise InputError(f"{folder / MAP}: missing; run 'snakemake --cores 2 {PAPER}'")
    situation = ", ".join(words for key, words in ANSWERS.items() if key in yes)
    if advice:
        yield f"Advice ({situation or 'nothing special'}):"
    for of_measure in advice:
        yield f"  {of_measure.measure}: {of_measure.sentence}"


def comparison_lines(comparison: Comparison, needs: Sequence[str] | None = None) -> Iterator[str]:
    """Write the comparison of all samplers as a table.

    Parameters
    ----------
    needs : sequence of str, optional
        Show only samplers that need nothing but this information.

    Raises
    ------
    InputError
        If an entry of `needs` is unknown.
    """
    names = (*INFORMATION_COSTS, NOTHING, DEPENDS)
    if unknown := [name for name in needs or () if name not in names]:
        raise InputError(*(f"--needs {name}: unknown; {nearest(name, names)}" for name in unknown))
    rows = [
        row for row in comparison.rows if needs is None or {*needs, NOTHING}.issuperset(row.needs)
    ]
    columns = (*comparison.overall, *comparison.datasets)
    table = [
        ["sampler", "needs", *(column.title for column in columns)],
        ["", "", *(column.differ for column in columns)],
        *(
            [row.name, ", ".join(row.needs), *(_cell(row.speed_up(c)) for c in columns)]
            for row in rows
        ),
    ]
    yield from align(table)
    yield ""
    yield f"Speed-up over {REFERENCE} (2 = half the cost): over all datasets, with the rank;"
    yield f"then in {comparison.by} on each dataset."
    yield "+ or −: the whole 95 % interval lies above or below 1. Intervals are not corrected for"
    yield "multiple comparisons; expect about 1 in 20 to miss."
    yield "'0 of 3': 0 of 3 runs reached the target; '!': some runs missed it."
    if comparison.badges:
        yield f"These runs: {' · '.join(comparison.badges)}."
    for name in sorted({name for row in rows for name in row.needs} & INFORMATION_COSTS.keys()):
        yield f"{name}: {INFORMATION_COSTS[name]}"


def _cell(speed_up: SpeedUp) -> str:
    rank = "" if speed_up.rank is None else f" ({speed_up.rank:g})"
    return f"{speed_up.text}{speed_up.side}{'!' * bool(speed_up.missed)}{rank}"
