"""A declared test of a recommended sampler on families of datasets that are new to its situation.

The rule for advice reads the speed-ups with the benchmark's delays.  Those with delays that vary
are shown beside them and decide nothing.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from fedsampling.base.text import show_interval
from fedsampling.experiments.cross_matrix import MEASURES, REFERENCE
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.which_sampler.cells import over_families

from .sampler_rows import label
from .speed_ups import speed_ups_on

NEW_FAMILIES = "mixed_"  # how the names of the experiments begin
DELAYS = {  # what else they begin with, and what it means
    "": "delays of the benchmark",
    "varying_": "delays vary around each client's mean",
}
OVER_ALL = "geometric mean"


def new_families(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate the speed-ups in seconds on each new family and over all, for each model of delays.

    The data has all measures.
    """
    parts = [
        _with_mean(runs[runs["measure"] == measure]).assign(delays=words)
        for start, words in DELAYS.items()
        if len(runs := speed_ups_on_new_families(summaries, paper.folder, start))
        for measure in MEASURES
    ]
    if not parts:
        reason = "No new family has been run yet."
        return Artefact(pd.DataFrame(), table=pd.DataFrame({"": [reason]}), notes=(reason,))
    table = pd.concat(parts, ignore_index=True)
    seconds = table[table["measure"] == "seconds"]
    cells = [show_interval(*row) for row in seconds[["speed_up", "low", "high"]].to_numpy()]
    columns = seconds["scheme"].map(label) + ", " + seconds["delays"]
    shown = seconds.assign(cell=cells, column=columns).pivot(
        index="family", columns="column", values="cell"
    )
    shown = shown.loc[seconds["family"].unique(), columns.unique()]
    over_all = seconds[seconds["family"] == OVER_ALL]
    missed = over_all["runs"].sum() - over_all["reached"].sum()
    return Artefact(
        table,
        table=shown.rename_axis(columns=None).reset_index(),
        notes=(f"{missed} runs missed the target." if missed else "No run missed the target.",),
    )


def speed_ups_on_new_families(summaries: Summaries, folder: Path, start: str = "") -> pd.DataFrame:
    """Return the speed-ups over MD on the new families that were run, possibly none.

    `start`: a key of :data:`DELAYS`.
    """
    names = [name for name in summaries if name.startswith(start + NEW_FAMILIES)]
    parts = [speed_ups_on(name.removeprefix(start), name, summaries, folder) for name in names]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _with_mean(speed_ups: pd.DataFrame) -> pd.DataFrame:
    """Return rows for each sampler: its families with intervals over worlds, then their mean.

    The mean is geometric; its interval is Student's, over families.
    """
    ends = {"speed_up_low": "low", "speed_up_high": "high"}
    columns = ["measure", "scheme", "family", "speed_up", "low", "high", "reached", "runs"]
    families = speed_ups[speed_ups["scheme"] != REFERENCE].rename(columns=ends)[columns]
    parts = []
    for scheme, rows in families.groupby("scheme"):
        over_all = over_families(np.log(rows["speed_up"].to_numpy()))
        mean = {
            "measure": rows["measure"].iloc[0],
            "scheme": scheme,
            "family": OVER_ALL,
            **over_all.columns("speed_up"),
            "reached": int(rows["reached"].sum()),
            "runs": int(rows["runs"].sum()),
        }
        parts += [rows, pd.DataFrame([mean])]
    return pd.concat(parts, ignore_index=True)
