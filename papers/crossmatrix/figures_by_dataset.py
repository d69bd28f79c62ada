"""Tables and figures of the cross matrix for each dataset.

:mod:`.runs` computes the costs; :mod:`.figures_over_datasets` draws all datasets together.
"""

import re
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import to_rgba

from fedsampling.evidence.numbers import show, show_interval
from fedsampling.evidence.statistics import Estimate, compare, mean, ratio
from fedsampling.experiments.cross_matrix import REFERENCE, TUNING
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.style import BLUE, panels, style

from .presentation import DIFFER, NOT_COMPARED, UNITS, alphabetical, by_dataset, label, title
from .runs import costs_by_dataset, grid_scores, target_score

UNKNOWN = Estimate(np.nan, np.nan, np.nan, 0)
LABEL_WIDTH = 16  # characters of a dataset's name on a line below its column


def matrix_rounds(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate rounds to the target."""
    return _matrix(summaries, "rounds")


def matrix_bits(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate bits to the target."""
    return _matrix(summaries, "bits")


def matrix_seconds(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate seconds to the target."""
    return _matrix(summaries, "seconds")


def tuning(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw each sampler's tuned learning rate on each dataset."""
    names = [name.removeprefix(TUNING) for name in summaries if name.startswith(TUNING)]
    grids = {name: grid_scores(summaries[TUNING + name]) for name in names}
    titles = [
        re.sub(", (learning rates|trials) on a holdout", "", title(summaries, TUNING + name))
        for name in names
    ]
    table = pd.concat(
        [grid.assign(experiment=name) for name, grid in grids.items()], ignore_index=True
    )
    samplers = sorted(table["sampler"].unique(), key=alphabetical, reverse=True)
    at_an_end = choices = 0
    with style():
        width = 3.4 + 1.35 * len(names)
        figure, (axis,) = panels(1, 1, width=width, height=1.2 + 0.26 * len(samplers))
        for column, grid in enumerate(grids.values()):
            steps = sorted(grid["step"].unique())
            tuned = grid[grid["chosen"]].set_index("sampler")["step"].to_dict()
            rows, colours = [], []
            for row, sampler in enumerate(samplers):
                if sampler not in tuned:
                    axis.text(column, row, "–", ha="center", va="center")
                    continue
                position = steps.index(tuned[sampler])
                choices += len(steps) > 1
                at_an_end += len(steps) > 1 and position in (0, len(steps) - 1)
                rows.append(row)
                shade = 0.12 + 0.6 * position / max(len(steps) - 1, 1)
                colours.append(to_rgba(BLUE, shade))
                axis.text(column, row, f"{steps[position]:g}", ha="center", va="center")
            axis.barh(rows, 0.94, 0.9, column - 0.47, color=colours, linewidth=0)
        axis.set_xticks(range(len(names)), [fill(name, LABEL_WIDTH) for name in titles])
        axis.set_yticks(range(len(samplers)), [label(name) for name in samplers])
        axis.tick_params(length=0)
        axis.set(xlim=(-0.5, len(names) - 0.5), ylim=(-0.5, len(samplers) - 0.5))
        axis.grid(False)
    scores = [show(target_score(summaries[TUNING + name])) for name in names]
    targets = "; ".join(map(" ".join, zip(titles, scores, strict=True)))
    return Artefact(
        table[["experiment", "sampler", "case", "step", "score", "chosen"]],  # as in chosen.csv
        figure,
        alt="The tuned learning rate of each sampler on each dataset.",
        notes=(
            f"Targets: {targets} (accuracy; on Quadratic −log of the test loss).",
            f"{at_an_end} of {choices} choices lie at an end of the grid."
            if choices
            else "The grid is a single learning rate: there was nothing to choose.",
            *_overridden_steps(table, paper),
        ),
    )


def _overridden_steps(grid: pd.DataFrame, paper: Paper) -> list[str]:
    """List where chosen.csv has another step than this holdout favours."""
    best = grid[grid["chosen"]]
    names = [
        f"{label(sampler)} on {name}"
        for name, sampler, case in best[["experiment", "sampler", "case"]].to_numpy()
        if paper and paper.chosen.get(name, {}).get(sampler, case) != case
    ]
    return [f"chosen.csv has another step, which is run, for {', '.join(names)}."] if names else []


def _matrix(summaries: Summaries, measure: str) -> Artefact:
    costs = costs_by_dataset(summaries)
    if not costs:
        return Artefact(pd.DataFrame({"scheme": []}), notes=(NOT_COMPARED,))
    name, unit = UNITS[measure]
    paired = {
        key: part.pivot(index="seed", columns="sampler", values=measure)
        for key, part in costs.items()
    }
    table = pd.DataFrame(
        {
            "scheme": sampler,
            "set": key,
            "title": title(summaries, key),
            "differ": _difference(summaries, key),
            "unit": name,
            **_cost(runs, measure, unit),
            **_speed_up(paired[key], str(sampler)),
        }
        for key, part in costs.items()
        for sampler, runs in part.groupby("sampler")
    )
    table["least"] = table["mean"] == table.groupby("set")["mean"].transform("min")
    cells = table.assign(
        scheme=table["scheme"].map(label), cell=[_cell(row) for row in table.itertuples()]
    )
    missed = int((table["runs"] - table["reached"]).sum())
    return Artefact(
        table,
        notes=(
            f"In {name}: geometric mean over seeds with its 95 % interval; an asterisk marks the "
            "smallest mean of a dataset. If runs missed the target, the cell shows the smallest "
            "total cost of a run that missed it, and how many runs reached it.",
            f"{missed} of {table['runs'].sum()} runs did not reach the target.",
        ),
        table=by_dataset(cells),
    )


def _difference(summaries: Summaries, key: str) -> str:
    """Describe how the clients of a dataset differ; empty for a user's own samples."""
    dataset = summaries[key].settings["settings"].get("dataset", {})
    return "" if dataset.get("name") == "files" else DIFFER.get(key.removeprefix("long_"), "")


def _cost(runs: pd.DataFrame, measure: str, unit: float) -> dict[str, float]:
    """Return a sampler's mean costs to the target of a dataset, NaN if a run missed it."""
    values = runs[measure].to_numpy() / unit
    met = np.isfinite(values)
    log_cost = mean(np.log(values if met.all() else np.full(len(values), np.nan)))
    missed = runs.loc[~met, f"all_{measure}"].min() / unit
    return {
        "cost": float(np.exp(log_cost.value)),
        "low": float(np.exp(log_cost.low)),
        "high": float(np.exp(log_cost.high)),
        "mean": float(values.mean()) if met.all() else np.nan,
        "reached": int(met.sum()),
        "runs": len(values),
        "missed_after": float(missed),
    }


def _speed_up(by_seed: pd.DataFrame, sampler: str) -> dict[str, float]:
    """Compare a sampler's costs with MD's, by seed; NaN if a run of either missed the target."""
    pair = by_seed[[REFERENCE, sampler]].dropna().to_numpy().T
    estimate = compare(pair[0], pair[-1], ratio) if np.isfinite(pair).all() else UNKNOWN
    return {
        "speed_up": estimate.value,
        "speed_up_low": estimate.low,
        "speed_up_high": estimate.high,
    }


def _cell(row: Any) -> str:
    if row.reached < row.runs:
        return f">{show(row.missed_after)} ({row.reached} of {row.runs})"
    has_interval = np.isfinite(row.low)
    cost = show_interval(row.cost, row.low, row.high) if has_interval else show(row.cost)
    return f"{cost}{' *' if row.least else ''}"


long_matrix_rounds, long_matrix_bits, long_matrix_seconds = (
    matrix_rounds,
    matrix_bits,
    matrix_seconds,
)
long_tuning = tuning
