"""The results of ``fedsampling compare`` as lines, from the artefacts of the cross matrix."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from fedsampling.base.columns import align
from fedsampling.evidence.histories import is_at_edge
from fedsampling.experiments.cross_matrix import BENCH

INDENT = "  "
AT_EDGE = "; at the edge of the grid"
WIDEN = ", which --learning-rates extends"


def result_lines(
    artefacts: Path, labels: Iterable[str], titles: Mapping[str, str], own_data: bool
) -> Iterator[str]:
    """Yield the results of each entry: ranks, learning rates, and datasets won and lost.

    `artefacts`: folder of the cross matrix's artefacts. `labels`: labels of the entries. `titles`:
    names of the datasets to show, by experiment. `own_data`: whether the user's data are used, so
    that ``--learning-rates`` can extend the grid.
    """

    def table(name: str) -> pd.DataFrame | None:
        path = artefacts / name / f"{name}.csv"
        return pd.read_csv(path) if path.is_file() else None

    ranks, grid = (
        pd.read_csv(artefacts / name / f"{name}.csv")
        for name in (f"{BENCH}ranks", f"{BENCH}tuning")
    )
    grid["experiment"] = grid["experiment"].replace(dict(titles))
    matrix = table(f"{BENCH}matrix_rounds")
    for label in labels:
        yield f"{label}, with speed-ups over MD and 95 % intervals over families of datasets:"
        yield from ranking(ranks, label)
        if matrix is not None:
            yield from wins_and_losses(matrix, label)
        yield from chosen_steps(grid, label, AT_EDGE + WIDEN * own_data)


def ranking(ranks: pd.DataFrame, label: str) -> list[str]:
    """Tabulate a sampler's ranks and speed-ups, one line per measure below a header.

    `ranks`: the artefact ``bench_ranks``.  Intervals are shown if there are several families.
    """
    rows: list[dict[str, str]] = []
    by_measure = ranks.groupby("measure", sort=False)
    ranked_samplers = by_measure["rank"].count().max()
    for measure, table in by_measure:
        (row,) = table[table["scheme"] == label].to_dict("records")
        rank = "none" if pd.isna(row["rank"]) else f"{row['rank']:g}"
        interval = f" [{row['low']:.2f}, {row['high']:.2f}]" if row["families"] > 1 else ""
        rows.append(
            {
                "cost": str(measure),
                f"rank of {ranked_samplers}": rank,
                "speed-up": f"{row['speed_up']:.2f}{interval}",
                "worst family": f"{row['worst']:.2f}",
                "reached target": f"{row['reached']} of {row['runs']}",
            }
        )
    return align([[*rows[0]], *([*row.values()] for row in rows)], INDENT)


def wins_and_losses(matrix: pd.DataFrame, label: str) -> list[str]:
    """Name the datasets on which the whole interval of the speed-up is above or below 1."""
    rows = matrix[matrix["scheme"] == label]
    wins, losses = rows[rows["speed_up_low"] > 1], rows[rows["speed_up_high"] < 1]
    sides = {"faster": wins, "slower": losses}
    return [
        f"  {side} than MD in rounds: {'; '.join(part['title']) or 'on no dataset'}"
        for side, part in sides.items()
    ]


def chosen_steps(grid: pd.DataFrame, label: str, at_edge: str = AT_EDGE) -> list[str]:
    """Tabulate the learning rates that tuning chose for a sampler, one line per dataset.

    `grid`: the artefact ``tuning``: columns ``experiment``, ``sampler``, ``step`` and ``chosen``.
    At quick scale only md is tuned; the table is then empty. `at_edge`: text after a learning rate
    that is the smallest or largest of its grid.
    """
    rows = []
    for name, table in grid[grid["sampler"] == label].groupby("experiment", sort=False):
        steps = sorted(table["step"].unique())
        tried = ", ".join(f"{step:g}" for step in steps)
        for step in table.loc[table["chosen"], "step"]:
            rows.append((str(name), f"{step:g}", tried + at_edge * is_at_edge(step, steps)))
    return align([("tuned on", "learning rate", "tried"), *rows], INDENT) if rows else []
