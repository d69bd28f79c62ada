"""Learning rates of the benchmark: those of the best trials, and what tuning them gains."""

import numpy as np
import pandas as pd

from fedsampling.base.text import show, show_interval
from fedsampling.evidence.scores import is_at_edge
from fedsampling.experiments.cross_matrix import BENCH
from fedsampling.experiments.papers import Paper
from fedsampling.experiments.shorthand import TUNING
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.which_sampler.cells import over_families

from .costs_to_target import grid_scores
from .sampler_rows import label
from .speed_ups import UNTUNED, compared_datasets, dataset_facts, gains_from_tuning


def bench_tuning(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate the learning rate of each sampler's best trial."""
    names = [name.removeprefix(TUNING) for name in summaries if name.startswith(TUNING)]
    table = pd.concat(
        [grid_scores(summaries[TUNING + name]).assign(experiment=name) for name in names],
        ignore_index=True,
    )
    best = table[table["chosen"] & table["experiment"].str.startswith(BENCH)]
    wide = best.assign(step=best["step"].map(lambda step: f"{step:g}")).pivot(
        index="sampler", columns="experiment", values="step"
    )
    wide = wide.rename(index=label, columns=lambda name: name.removeprefix(BENCH))
    wide = wide.fillna("–").sort_index(key=lambda index: index.str.casefold())
    grids = table.groupby("experiment")["step"].agg(set)
    ends = map(is_at_edge, best["step"], best["experiment"].map(grids))
    return Artefact(
        table,
        table=wide.rename_axis("sampler", axis=0).rename_axis(None, axis=1).reset_index(),
        notes=(f"{sum(ends)} of {len(best):,} choices lie at an end of the grid.",),
    )


def bench_defaults(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate what tuning gains for MD itself, next to the best sampler's gain over tuned MD."""
    names = [name for name in compared_datasets(summaries) if "away" not in name]
    gains = gains_from_tuning(summaries, names)
    if gains.empty:
        reason = "MD has no run with an untuned learning rate."
        return Artefact(gains, table=pd.DataFrame({"": [reason]}), notes=(reason,))
    family = {name: dataset_facts(paper.folder, name, summaries[name])["family"] for name in names}
    rows = []
    for case, words in UNTUNED.items():
        if (part := gains[gains["case"] == case]).empty:
            continue
        logs = np.log(part["gain"]).groupby(part["set"].map(family)).mean().to_numpy()
        rows.append(
            {
                "case": case,
                "learning rate": words,
                **over_families(logs).columns("gain"),
                "families": len(logs),
                "largest": float(np.exp(logs.max())),
                "missed": int(part["missed"].sum()),
                "runs": int(part["runs"].sum()),
            }
        )
    table = pd.DataFrame(rows)
    shown = pd.DataFrame(
        {
            "MD's learning rate": table["learning rate"],
            "cost over tuned MD": [
                show_interval(*row) for row in table[["gain", "low", "high"]].to_numpy()
            ],
            "largest": table["largest"].map(show),
            "families": table["families"],
            "missed": [f"{row.missed} of {row.runs}" for row in table.itertuples()],
        }
    )
    return Artefact(table, table=shown)
