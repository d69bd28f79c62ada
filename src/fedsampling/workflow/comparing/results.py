"""The results of ``fedsampling compare`` as lines, from the artefacts of the cross matrix."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from fedsampling.base.errors import InputError
from fedsampling.base.text import align
from fedsampling.evidence.scores import is_at_edge
from fedsampling.experiments.cross_matrix import BENCH, CROSS_MATRIX, MEASURES
from fedsampling.workflow.draw import draw
from fedsampling.workflow.project import Project
from fedsampling.workflow.report import build_report

INDENT = "  "
AT_EDGE = "; at the edge of the grid"
WIDEN = ", which --learning-rates extends"


def show_results(
    compared: Project,
    labels: Iterable[str],
    titles: Mapping[str, str],
    note: str,
    echo: Callable[[str], None],
    own_data: bool = False,
) -> int:
    """Draw the results of a comparison, print them with a note, and return the exit status.

    See :func:`result_lines` for `labels`, `titles` and `own_data`.
    """
    if status := draw(CROSS_MATRIX, compared):
        return status
    report = build_report(compared)
    artefacts = compared.folder / "artefacts" / CROSS_MATRIX
    for line in result_lines(artefacts, labels, titles, own_data):
        echo(line)
    if note:
        echo(note)
    echo(f"page: {report.with_name('schemes.html')}")
    return 0


def result_lines(
    artefacts: Path, labels: Iterable[str], titles: Mapping[str, str], own_data: bool
) -> Iterator[str]:
    """Yield the results of each entry: ranks, learning rates, and datasets won and lost.

    `artefacts`: folder of the cross matrix's artefacts. `titles`: names of the datasets to show, by
    experiment. `own_data`: whether ``--learning-rates`` can extend the grid.
    """
    ranks, grid = _table(artefacts, "ranks"), _table(artefacts, "tuning")
    if ranks is None or grid is None:
        raise InputError(f"{artefacts}: holds no ranks; run the same command again")
    by_dataset = {measure: _table(artefacts, f"matrix_{measure}") for measure in MEASURES}
    matrix = by_dataset["rounds"]
    grid["experiment"] = grid["experiment"].replace(dict(titles))
    over = "families of datasets"
    if ranks["families"].max() == 1:
        has_worlds = matrix is not None and matrix["worlds"].max() > 1
        over = "worlds" if has_worlds else "seeds"
    for label in labels:
        yield f"{label}, with speed-ups over MD and 95 % intervals over {over}:"
        yield from ranking(ranks, label, by_dataset)
        if matrix is not None:
            yield from wins_and_losses(matrix, label)
        yield from chosen_steps(grid, label, AT_EDGE + WIDEN * own_data)


def _table(artefacts: Path, name: str) -> pd.DataFrame | None:
    path = artefacts / f"{BENCH}{name}" / f"{BENCH}{name}.csv"
    return pd.read_csv(path) if path.is_file() else None


def ranking(
    ranks: pd.DataFrame, label: str, by_dataset: Mapping[str, pd.DataFrame | None] | None = None
) -> list[str]:
    """Tabulate a sampler's ranks and speed-ups, one line per measure below a header.

    `ranks`: the artefact ``bench_ranks``.  Intervals are over families of datasets; for a single
    dataset, over its seeds, from the artefact of the measure in `by_dataset`.
    """
    by_measure = ranks.groupby("measure", sort=False)
    ranked = f"rank of {by_measure['rank'].count().max()}"
    rows = [("cost", ranked, "speed-up", "worst family", "reached target")]
    for measure, table in by_measure:
        (row,) = table[table["scheme"] == label].to_dict("records")
        rank = "none" if pd.isna(row["rank"]) else f"{row['rank']:g}"
        low, high = row["low"], row["high"]
        if row["families"] == 1:
            low, high = _interval_over_seeds((by_dataset or {}).get(str(measure)), label)
        interval = f" [{low:.2f}, {high:.2f}]" if pd.notna(low) and pd.notna(high) else ""
        speed_up, worst = f"{row['speed_up']:.2f}{interval}", f"{row['worst']:.2f}"
        rows.append((str(measure), rank, speed_up, worst, f"{row['reached']} of {row['runs']}"))
    return align(rows, INDENT)


def _interval_over_seeds(matrix: pd.DataFrame | None, label: str) -> tuple[float, float]:
    """Return a sampler's interval on the only dataset of a matrix, NaN if there are several."""
    rows = matrix[matrix["scheme"] == label] if matrix is not None else pd.DataFrame()
    if len(rows) != 1:
        return float("nan"), float("nan")
    low, high = rows[["speed_up_low", "speed_up_high"]].iloc[0]
    return float(low), float(high)


def wins_and_losses(matrix: pd.DataFrame, label: str) -> list[str]:
    """Name the datasets by the side of 1 on which the whole interval of the speed-up lies."""
    rows = matrix[matrix["scheme"] == label]
    faster, slower = rows["speed_up_low"] > 1, rows["speed_up_high"] < 1
    sides = {
        "significantly faster than MD in rounds": faster,
        "significantly slower than MD in rounds": slower,
        "undecided (interval includes 1, or too few seeds)": ~faster & ~slower,
    }
    return [
        f"{INDENT}{words}: {'; '.join(rows.loc[side, 'title']) or 'on no dataset'}"
        for words, side in sides.items()
    ]


def chosen_steps(grid: pd.DataFrame, label: str, at_edge: str = AT_EDGE) -> list[str]:
    """Tabulate the learning rates that tuning chose for a sampler, one line per dataset.

    `grid`: the artefact ``tuning``; at quick scale it has only md.  `at_edge`: text after a
    learning rate that is the smallest or largest of its grid.
    """
    rows = []
    for name, table in grid[grid["sampler"] == label].groupby("experiment", sort=False):
        steps = sorted(table["step"].unique())
        tried = ", ".join(f"{step:g}" for step in steps)
        for step in table.loc[table["chosen"], "step"]:
            rows.append((str(name), f"{step:g}", tried + at_edge * is_at_edge(step, steps)))
    return align([("tuned on", "learning rate", "tried"), *rows], INDENT) if rows else []
