"""Speed-ups to another target: the one that full participation sets, in place of MD's.

MD always reaches the target that its own run sets, which favours MD.  Full participation's target
favours no sampler that selects, and MD may miss it, like all others.
"""

import numpy as np
import pandas as pd

from fedsampling.base.text import listed, show_interval
from fedsampling.experiments.cross_matrix import FULL, MEASURES, REFERENCE
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from .figures_ranks import aggregated
from .sampler_rows import label
from .speed_ups import compared_datasets, speed_ups_by_dataset

TARGETS = {REFERENCE: "MD's", FULL: "full participation's"}  # whose target
COLUMNS = ["measure", "target", "scheme", "speed_up", "low", "high", "families", "missed", "runs"]


def bench_targets(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate speed-ups over MD in rounds and seconds to both targets; the data has all measures.

    Both use the same datasets, those on which full participation was run.
    """
    if not (datasets := compared_datasets(summaries, FULL)):
        reason = "Full participation has not been run yet."
        return Artefact(pd.DataFrame(), table=pd.DataFrame({"": [reason]}), notes=(reason,))
    parts = []
    for target in TARGETS:
        speed_ups = speed_ups_by_dataset(summaries, paper.folder, target)
        speed_ups = speed_ups[speed_ups["set"].isin(datasets) & ~speed_ups["away"]]
        parts += [_over_families(speed_ups, measure, target) for measure in MEASURES]
    table = pd.concat(parts, ignore_index=True)
    return Artefact(table, table=_shown(table), notes=(_misses_of_md(table), *_changes(table)))


def _over_families(speed_ups: pd.DataFrame, measure: str, target: str) -> pd.DataFrame:
    """Aggregate the speed-ups in a measure: a row for each sampler, with its runs that missed."""
    table = aggregated(speed_ups[speed_ups["measure"] == measure], measure)
    table = table.assign(target=target, missed=table["runs"] - table["reached"])
    return table[COLUMNS]


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Arrange the speed-ups in rounds and seconds, a row for each sampler, the fastest first."""
    by_target = {
        key: rows.set_index("scheme") for key, rows in table.groupby(["measure", "target"])
    }
    in_rounds = by_target["rounds", FULL]
    order = in_rounds.sort_values("speed_up", ascending=False).index
    shown = {"sampler": [label(name) for name in order]}
    for measure in ("rounds", "seconds"):
        for target, words in TARGETS.items():
            cells = by_target[measure, target].loc[order, ["speed_up", "low", "high"]].to_numpy()
            shown[f"{measure} to {words} target"] = [show_interval(*row) for row in cells]
    for target, words in TARGETS.items():
        rows = by_target["rounds", target].loc[order]
        counts = zip(rows["missed"], rows["runs"], strict=True)
        shown[f"misses of {words} target"] = [f"{missed} of {runs}" for missed, runs in counts]
    return pd.DataFrame(shown)


def _misses_of_md(table: pd.DataFrame) -> str:
    of_md = table[(table["scheme"] == REFERENCE) & (table["measure"] == "rounds")]
    missed, runs = of_md.set_index("target").loc[FULL, ["missed", "runs"]]
    return f"MD misses full participation's target in {missed} of {runs} runs."


def _changes(table: pd.DataFrame) -> list[str]:
    """Name the samplers whose interval lies on one side of MD with one of the targets only."""
    sides = table.assign(side=np.sign(table["low"] - 1) + np.sign(table["high"] - 1))
    sentences = []
    for measure in ("rounds", "seconds"):
        rows = sides[(sides["measure"] == measure) & (sides["scheme"] != REFERENCE)]
        wide = rows.pivot(index="scheme", columns="target", values="side").dropna()
        for side, word in ((2, "faster"), (-2, "slower")):
            for target, other in ((REFERENCE, FULL), (FULL, REFERENCE)):
                names = wide.index[(wide[target] == side) & (wide[other] != side)]
                if len(names):
                    sentences.append(
                        f"In {measure}, {word} than MD to {TARGETS[target]} target, but not to "
                        f"{TARGETS[other]} (intervals over families): "
                        f"{listed([label(name) for name in names])}."
                    )
    return sentences
