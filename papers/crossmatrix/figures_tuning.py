"""What tuning changes: defaults and best trials of the benchmark's samplers."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from fedsampling.base.streams import stream
from fedsampling.evidence.numbers import show, show_interval
from fedsampling.experiments.cross_matrix import TUNING
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from .bench import (
    aggregated_speed_ups,
    bench_datasets,
    costs_by_dataset,
    interval_over_datasets,
    log_relative_costs,
)
from .presentation import label, requires_benchmark
from .runs import grid_scores

UNTUNED = ("untuned", "untuned_low", "untuned_high")  # speed-up of defaults over MD's defaults


@requires_benchmark
def bench_defaults(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate what tuning gains: speed-ups of defaults and of the best trial over tuned MD."""
    costs, default_costs = costs_by_dataset(summaries), costs_by_dataset(summaries, "default")
    table = aggregated_speed_ups(costs, default_costs, "rounds")
    ratio = table["speed_up"] / table["default_speed_up"]
    table = table.assign(label=table["scheme"].map(label), gain_of_tuning=ratio)
    table = table.merge(untuned_speed_ups(default_costs, "rounds"), on="scheme")
    numbers = ["default_speed_up", "speed_up", "gain_of_tuning", "set_low", "set_high"]
    table = table[["scheme", "label", "sets", *numbers, *UNTUNED]]
    table = table.sort_values("speed_up", ascending=False).reset_index(drop=True)

    def intervals(*columns: str) -> list[str]:
        return [show_interval(*numbers) for numbers in table[list(columns)].to_numpy()]

    cells = pd.DataFrame(
        {
            "label": table["label"],
            "datasets": table["sets"],
            "defaults over MD's best trial": table["default_speed_up"].map(show),
            "best trial over MD's best trial": intervals("speed_up", "set_low", "set_high"),
            "defaults over MD's defaults": intervals(*UNTUNED),
        }
    )
    grids = [grid_scores(summaries[TUNING + name]) for name in bench_datasets(summaries)]
    best = pd.concat([grid.loc[grid["chosen"], "case"] for grid in grids])
    random_trials = int(best.str.startswith("own").sum())
    return Artefact(
        table,
        table=cells,
        notes=(
            "In rounds, geometric mean over datasets; the unit is MD at its best trial. "
            f"{random_trials} of {len(best)} best trials have settings or steps other than the "
            "defaults' grid. Intervals are over datasets.",
            lead_lost_by_tuning(table),
        ),
    )


def untuned_speed_ups(default_costs: Mapping[str, pd.DataFrame], measure: str) -> pd.DataFrame:
    """Return the speed-ups of defaults over MD's defaults, with intervals over datasets."""
    logs = -log_relative_costs(default_costs, measure)
    rng = stream(0, f"crossmatrix bench defaults {measure}")
    ends = np.exp(interval_over_datasets(logs.to_numpy(), rng))
    values = np.exp(logs.mean().to_numpy()), *ends
    return pd.DataFrame({"scheme": logs.columns, **dict(zip(UNTUNED, values, strict=True))})


def lead_lost_by_tuning(table: pd.DataFrame) -> str:
    """Name the samplers that are faster than MD with defaults, and not if both are tuned."""
    value, low, _ = UNTUNED
    lost = table[(table[low] > 1) & (table["set_low"] <= 1)].sort_values(value, ascending=False)
    texts = [
        f"{row['label']} ({show(row[value])}; tuned {show(row['speed_up'])})"
        for _, row in lost.iterrows()
    ]
    return (
        "Significantly faster than MD over datasets if both have default settings, but not if both "
        f"have their best trials: {'; '.join(texts) or 'none'}."
    )
