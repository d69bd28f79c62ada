"""What a round costs under each sampler, in bits and in seconds, for models of several sizes."""

from collections.abc import Hashable, Mapping, Set
from typing import Any

import pandas as pd

from fedsampling.base.text import listed, show
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.cross_matrix import REFERENCE
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from .figures_bench import information_needs
from .sampler_rows import label

BITS = ("model_bits", "norm_bits", "exchange_bits", "observation_bits")
METRICS = [*BITS, "seconds", "asking_seconds"]
REQUESTED = ("exchange_bits", "observation_bits")  # where a first request is charged
SENT = {
    "model_bits": "models",
    "norm_bits": "norms of updates",
    "exchange_bits": "label counts or numbers of its protocol",
}


def round_costs(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate bits and seconds of a round, sampler by model, with what clients send."""
    parts = [_costs(summary).assign(set=name) for name, summary in summaries.items()]
    data = pd.concat(parts, ignore_index=True)
    titles = {name: _title(summary) for name, summary in summaries.items()}
    data["model"] = data["set"].map(titles)
    data["cell"] = [_cell(row) for row in data.to_dict("records")]
    wide = data.pivot(index="scheme", columns="model", values="cell").fillna("–")
    wide = wide[list(dict.fromkeys(data["model"]))]
    needs = information_needs(summaries)
    sent = {
        str(scheme): listed(_sent(rows, needs[str(scheme)]))
        for scheme, rows in data.groupby("scheme")
    }
    table = wide.assign(sends=wide.index.map(sent)).rename(index=label)
    table = table.sort_index(key=lambda names: names.str.casefold()).reset_index(names="sampler")
    first = ["sampler", "sends"]
    return Artefact(
        data.drop(columns=["cell", *SENT]),
        table=table[[*first, *table.columns.drop(first)]],
        notes=(
            "Means over rounds, tuned learning rates and worlds. Seconds are those of the slowest "
            "client with simulated delays, and of the wait for what clients send before the "
            "selection.",
        ),
    )


def _costs(summary: Summary) -> pd.DataFrame:
    """Return what a round costs each sampler, and what the first round costs beyond that.

    Columns: ``scheme``; ``bits``, ``seconds``; ``bits_once``, ``seconds_once``; and the bits of
    each kind of :data:`SENT`.
    """
    rows = summary.categorised
    rows = rows[rows["metric"].isin(METRICS) & (rows["at"] >= 1)]
    runs = rows.groupby(["case", "sampler", "seed", "metric"], observed=True)
    first = rows[rows["at"] == 1].set_index(["case", "sampler", "seed", "metric"])["value"]
    # A row holds what was charged since the row before it.
    later = (runs["value"].sum() - first) / (runs["at"].max() - 1)
    by_metric = ["sampler", "metric"]
    each = later.groupby(by_metric, observed=True).mean().unstack("metric").fillna(0.0)
    start = first.groupby(by_metric, observed=True).mean().unstack("metric").fillna(0.0)
    each, start = (table.reindex(columns=METRICS, fill_value=0.0) for table in (each, start))
    once = (start - each).clip(lower=0.0)
    return pd.DataFrame(
        {
            "bits": each[[*BITS]].sum(axis="columns"),
            "seconds": each["seconds"] + each["asking_seconds"],
            "bits_once": once[[*REQUESTED]].sum(axis="columns"),
            "seconds_once": once["asking_seconds"],
            **{name: each[name] for name in SENT},
        }
    ).reset_index(names="scheme")


def _title(summary: Summary) -> str:
    """Name the dataset and the size of its model, from what MD's clients send."""
    sent = summary.select(REFERENCE, "model_bits", since=1, until=1)["value"].mean()
    parameters = sent / 32 / summary.setting("m", sampler=REFERENCE)
    return f"{summary.settings['title']}, {parameters:,.0f} parameters"


def _cell(row: Mapping[Hashable, Any]) -> str:
    """Write bits and seconds of a round, and what the first round costs beyond, if much."""
    text = f"{show(row['bits'] / 1000, 3)} kbit, {show(row['seconds'], 3)} s"
    if row["bits_once"] > 0.5 * row["bits"] or row["seconds_once"] > 0.5 * row["seconds"]:
        once = f"{show(row['bits_once'] / 1000, 3)} kbit, {show(row['seconds_once'], 3)} s"
        text += f" (first round: {once} more)"
    return text


def _sent(rows: pd.DataFrame, needs: Set[str]) -> list[str]:
    """List what clients send: their models, and the information that the sampler needs."""
    kinds = [words for name, words in SENT.items() if (rows[name] > 0).any()]
    covered = {"update_norms", "label_counts", "delays", "updates"}
    return kinds + [name.replace("_", " ") for name in sorted(needs - covered)]
