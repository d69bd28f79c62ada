"""The results of ``fedsampling compare`` as lines, from the artefacts of the cross matrix."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from fedsampling.base.columns import align
from fedsampling.report.which_sampler.reading import largest

INDENT = "  "
AT_EDGE = "; at the edge of the grid"
WIDEN = ", which --learning-rates extends"


def result_lines(
    artefacts: Path, labels: Iterable[str], titles: Mapping[str, str], own_data: bool
) -> Iterator[str]:
    """Yield the results of each entry: ranks, learning rates and, if drawn, the benchmark's tables.

    Parameters
    ----------
    artefacts : Path
        Folder of the cross matrix's artefacts.
    labels : iterable of str
        Labels of the entries.
    titles : mapping of str to str
        Names of the datasets to show, by experiment.
    own_data : bool
        Whether the user's data are used, so that ``--learning-rates`` can extend the grid.
    """

    def table(name: str) -> pd.DataFrame | None:
        path = artefacts / name / f"{name}.csv"
        return pd.read_csv(path) if path.is_file() else None

    prefix = largest(artefacts)
    ranks, grid = (
        pd.read_csv(artefacts / name / f"{name}.csv")
        for name in (f"{prefix}ranks", f"{prefix}tuning")
    )
    grid["experiment"] = grid["experiment"].replace(dict(titles))
    optional = [
        (tuned, table("bench_defaults")),
        (wins_and_losses, table("bench_matrix_rounds")),
        (properties, table("factors_effects")),
    ]
    for label in labels:
        yield f"{label}, with speed-ups over MD and 95 % intervals:"
        yield from ranking(ranks, table("bench_improvement"), label)
        for describe, drawn in optional:
            if drawn is not None:
                yield from describe(drawn, label)
        yield from chosen_steps(grid, label, AT_EDGE + WIDEN * own_data)


def ranking(ranks: pd.DataFrame, better: pd.DataFrame | None, label: str) -> list[str]:
    """Tabulate a sampler's ranks and speed-ups, one line per measure below a header.

    Parameters
    ----------
    ranks : DataFrame
        The artefact ``ranks``.  Intervals over datasets are shown if there are several datasets.
    better : DataFrame or None
        The artefact ``bench_improvement``: how often a run is cheaper than a run of MD.
    """
    rows: list[dict[str, str]] = []
    by_measure = ranks.groupby("measure", sort=False)
    ranked_samplers = by_measure["rank"].count().max()
    has_several_datasets = bool((ranks.loc[ranks["scheme"] == label, "sets"] > 1).any())
    for measure, table in by_measure:
        (row,) = table[table["scheme"] == label].to_dict("records")
        ranked = not pd.isna(row["rank"])
        place = f"{row['rank']:g} [{row['rank_low']:g}, {row['rank_high']:g}]" if ranked else "none"
        cells = {
            "cost": str(measure),
            f"rank of {ranked_samplers}": place,
            "speed-up": f"{row['speed_up']:.2f} [{row['low']:.2f}, {row['high']:.2f}]",
        }
        if has_several_datasets:
            interval = f"{row['set_low']:.2f} to {row['set_high']:.2f}"
            cells["on other datasets"] = interval if row["sets"] > 1 else ""
        cells["reached target"] = f"{row['reached']} of {row['runs']}"
        if better is not None:
            of_measure = better[(better["scheme"] == label) & (better["measure"] == measure)]
            cells["cheaper than MD"] = f"{of_measure['probability'].item():.0%} of runs"
        rows.append(cells)
    return align([[*rows[0]], *([*row.values()] for row in rows)], INDENT)


def tuned(defaults: pd.DataFrame, label: str) -> list[str]:
    """Describe the gain of tuning, from the artefact ``bench_defaults``."""
    (row,) = defaults[defaults["scheme"] == label].to_dict("records")
    return [
        f"  speed-up in rounds: {row['default_speed_up']:.2f} with default settings, "
        f"{row['speed_up']:.2f} at its best trial"
    ]


def wins_and_losses(matrix: pd.DataFrame, label: str) -> list[str]:
    """Name the datasets on which the whole interval of the speed-up is above or below 1."""
    rows = matrix[matrix["scheme"] == label]
    wins, losses = rows[rows["speed_up_low"] > 1], rows[rows["speed_up_high"] < 1]
    sides = {"faster": wins, "slower": losses}
    return [
        f"  {side} than MD in rounds: {'; '.join(part['title']) or 'on no dataset'}"
        for side, part in sides.items()
    ]


def properties(effects: pd.DataFrame, label: str) -> list[str]:
    """Name the clients' properties that help or harm, from the artefact ``factors_effects``."""
    lines = []
    for measure in ("rounds", "seconds"):
        rows = effects[(effects["scheme"] == label) & (effects["measure"] == measure)]
        rows = rows[rows["counts"]].sort_values("effect", ascending=False)
        texts = [f"{row.factor} {row.level} × {row.effect:.2f}" for row in rows.itertuples()]
        lines.append(f"  effects on its speed-up in {measure}: {', '.join(texts) or 'none'}")
    return lines


def chosen_steps(grid: pd.DataFrame, label: str, at_edge: str = AT_EDGE) -> list[str]:
    """Tabulate the learning rates that tuning chose for a sampler, one line per dataset.

    Parameters
    ----------
    grid : DataFrame
        The artefact ``tuning``: columns ``experiment``, ``sampler``, ``step`` and ``chosen``.
        At quick scale only md is tuned; the table is then empty.
    at_edge : str
        Text after a learning rate that is the smallest or largest of its grid.
    """
    rows = []
    for name, table in grid[grid["sampler"] == label].groupby("experiment", sort=False):
        steps = sorted(table["step"].unique())
        tried = ", ".join(f"{step:g}" for step in steps)
        for step in table.loc[table["chosen"], "step"]:
            is_at_edge = len(steps) > 1 and step in (steps[0], steps[-1])
            rows.append((str(name), f"{step:g}", tried + at_edge * is_at_edge))
    return align([("tuned on", "learning rate", "tried"), *rows], INDENT) if rows else []
