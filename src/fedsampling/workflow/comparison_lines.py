"""The results of ``fedsampling compare`` as lines, from the artefacts of the cross matrix."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from fedsampling.report.choosing import size

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

    ranks, grid = (
        pd.read_csv(artefacts / name / f"{name}.csv")
        for name in (f"{size(artefacts)}ranks", f"{size(artefacts)}tuning")
    )
    grid["experiment"] = grid["experiment"].replace(dict(titles))
    optional = [
        (tuned, table("bench_defaults")),
        (wins_and_losses, table("bench_matrix_rounds")),
        (chances, table("bench_improvement")),
        (properties, table("factors_effects")),
    ]
    for label in labels:
        yield from ranking(ranks, label)
        for line in chosen_steps(grid, label):  # at quick scale only md is tuned
            yield line + (WIDEN if own_data and line.endswith(AT_EDGE) else "")
        for describe, drawn in optional:
            if drawn is not None:
                yield from describe(drawn, label)


def ranking(ranks: pd.DataFrame, label: str) -> list[str]:
    """Describe a sampler's ranks in the artefact ``ranks``, one line per measure."""
    lines = []
    for measure, table in ranks.groupby("measure", sort=False):
        (row,) = table[table["scheme"] == label].to_dict("records")
        place = "no rank" if pd.isna(row["rank"]) else f"rank {row['rank']:g}"
        if not pd.isna(row["rank"]):
            place += f" [{row['rank_low']:g}, {row['rank_high']:g}] of {table['rank'].count()}"
        speed = f"{row['speed_up']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
        reached = f"{row['reached']} of its {row['runs']} runs reached the target"
        lines.append(f"{label}: {measure}: {place}; {speed} times as fast as md; {reached}")
    return lines


def chosen_steps(grid: pd.DataFrame, label: str) -> list[str]:
    """Describe the learning rates that tuning chose for a sampler, one line per dataset.

    Parameters
    ----------
    grid : DataFrame
        The artefact ``tuning``: columns ``experiment``, ``sampler``, ``step`` and ``chosen``.
    """
    lines = []
    for name, table in grid[grid["sampler"] == label].groupby("experiment", sort=False):
        steps = sorted(table["step"].unique())
        for step in table.loc[table["chosen"], "step"]:
            line = f"{label}: {name}: step {step:g} of {', '.join(f'{each:g}' for each in steps)}"
            at_edge = len(steps) > 1 and step in (steps[0], steps[-1])
            lines.append(line + (AT_EDGE if at_edge else ""))
    return lines


def tuned(defaults: pd.DataFrame, label: str) -> list[str]:
    """Describe the gain of tuning, from the artefact ``bench_defaults``."""
    (row,) = defaults[defaults["scheme"] == label].to_dict("records")
    return [
        f"{label}: rounds: {row['default_speed_up']:.2f} times as fast as md with its defaults, "
        f"{row['speed_up']:.2f} at the best of its six trials"
    ]


def wins_and_losses(matrix: pd.DataFrame, label: str) -> list[str]:
    """Name the datasets on which the whole interval of the speed-up is above or below 1."""
    rows = matrix[matrix["scheme"] == label]
    wins, losses = rows[rows["speed_up_low"] > 1], rows[rows["speed_up_high"] < 1]
    named = (", ".join(part["title"]) or "no dataset" for part in (wins, losses))
    return [f"{label}: rounds: faster than md on {next(named)}; slower on {next(named)}"]


def chances(better: pd.DataFrame, label: str) -> list[str]:
    """Describe how often a sampler beats MD, from the artefact ``bench_improvement``."""
    return [
        f"{label}: {row['measure']}: cheaper than md in {row['probability']:.0%} of runs "
        f"[{row['low']:.0%}, {row['high']:.0%}]; on other datasets "
        f"[{row['set_low']:.0%}, {row['set_high']:.0%}]"
        for row in better[better["scheme"] == label].to_dict("records")
    ]


def properties(effects: pd.DataFrame, label: str) -> list[str]:
    """Name the clients' properties that help or harm, from the artefact ``factors_effects``."""
    lines = []
    for measure in ("rounds", "seconds"):
        rows = effects[(effects["scheme"] == label) & (effects["measure"] == measure)]
        rows = rows[rows["counts"]].sort_values("effect", ascending=False)
        named = [f"{row.factor} {row.level} × {row.effect:.2f}" for row in rows.itertuples()]
        lines.append(
            f"{label}: {measure}: properties that change its speed-up over md: "
            f"{', '.join(named) or 'none'}"
        )
    return lines
