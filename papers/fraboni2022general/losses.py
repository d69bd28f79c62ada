"""Losses of training runs, compared seed by seed, for figures and claims of Fraboni et al. 2022.

Training experiments are compared by the loss over all measured rounds, paired by seed: samplers
share the initial model and the batches of a seed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from fedsampling.base.text import show_range
from fedsampling.data.partitions.by_label import Dirichlet
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.learning.models.settings import Lstm
from fedsampling.report.drawing.artefacts import Summaries
from fedsampling.report.drawing.curves import only
from fedsampling.report.drawing.style import SCHEMES as COLOURS
from fedsampling.report.drawing.style import Line

SCHEMES = {
    "full": Line("Full participation", COLOURS["full"]),
    "md": Line("MD", COLOURS["md"]),
    "uniform": Line("Uniform", COLOURS["uniform"]),
    "poisson": Line("Poisson", COLOURS["poisson"]),
    "binomial": Line("Binomial", COLOURS["binomial"]),
    "clustered": Line("Clustered", COLOURS["clustered_size"]),
    "optimal": Line("Optimal", COLOURS["optimal"]),
}
COMPARED = {name: SCHEMES[name] for name in ("md", "uniform")}  # in most figures
TRAINED = {**COMPARED, "clustered": SCHEMES["clustered"]}  # in Figure 2
# Experiments in which half of the clients are sampled, by the number of clients.
HALF = {n: f"shakespeare_{n}" for n in (10, 20, 40, 80)}
SHOWN = ("loss", "diverged_at")


def _of_lstm(name: str) -> Callable[[Mapping[str, Any]], list[int]]:
    """Return how to read a size of the LSTM from an experiment's settings."""
    default = Lstm.model_fields[name].default
    return lambda settings: (
        [settings["model"].get(name, default)] if settings["model"]["name"] == "lstm" else []
    )


def _samples(settings: Mapping[str, Any]) -> list[int]:
    """Read the training samples of CIFAR-10's clients from an experiment's settings."""
    partition = settings["dataset"].get("partition")
    default = Dirichlet.model_fields["groups"].default
    return [size for _, size in partition.get("groups", default)] if partition else []


# Sizes in which our runs may differ from the paper's, read from an experiment's settings.
SIZES: dict[str, Callable[[Mapping[str, Any]], list[int]]] = {
    "{} seeds": lambda settings: [settings["seeds"]],
    "{} rounds": lambda settings: [settings["rounds"]],
    "{} clients": lambda settings: [settings["dataset"].get("clients", 0)],
    "{} samples per client": _samples,
    "{} local steps": lambda settings: [settings["work"]["steps"]],
    "batches of {}": lambda settings: [settings["work"]["batch"]],
    "{} hidden units per layer": _of_lstm("hidden"),
    "network depth {}": _of_lstm("layers"),
}


def half_sampled(summaries: Summaries) -> dict[int, Summary]:
    """Return the experiments in which half of the clients are sampled, by number of clients."""
    return {n: only(summaries[name], SHOWN) for n, name in HALF.items()}


def was_run(summary: Summary, case: str, *samplers: str) -> bool:
    """Whether an experiment was run for a case with these samplers at this scale."""
    settings = summary.settings
    return case in settings["cases"] and set(samplers) <= settings["samplers"].keys()


def comparable(
    summary: Summary, reference: Summary, keys: Sequence[str] = ("model", "work", "rounds")
) -> bool:
    """Whether two experiments train the same network in the same way."""
    return all(summary.settings["settings"][k] == reference.settings["settings"][k] for k in keys)


def paired_losses(
    summary: Summary, first: str, second: str, case: str
) -> tuple[pd.Series, pd.Series]:
    """Return the mean losses of two samplers over all measured rounds, indexed by seed."""
    a, b = (summary.per_seed(name, "loss", case, since=1) for name in (first, second))
    return a, b


def loss_pairs(
    summaries: Summaries, first: str, second: str, case: str
) -> dict[str, tuple[pd.Series, pd.Series]]:
    """Pair the losses of two samplers for each number of clients, if half of them are sampled.

    Experiments without runs of both samplers, or with another network than ten clients have, are
    left out.
    """
    smallest = summaries[HALF[10]]
    return {
        f"{n} clients": paired_losses(summaries[name], first, second, case)
        for n, name in HALF.items()
        if was_run(summaries[name], case, first, second) and comparable(summaries[name], smallest)
    }


def gap_curve(
    summary: Summary, first: str, second: str, case: str, seeds: Iterable[int] | None = None
) -> pd.DataFrame:
    """Return the difference of two samplers' losses, by seed, at every measured round after 0.

    Mean and 95 % t-interval over seeds; NaN where a run of either sampler has diverged. Empty if a
    sampler or the case was not run.
    """
    if not was_run(summary, case, first, second):
        return pd.DataFrame(columns=["at", "mean", "low", "high", "n"])
    rows = summary.select((first, second), "loss", case, since=1)
    if seeds is not None:
        rows = rows[rows["seed"].isin(list(seeds))]
    index = ["case", "metric", "seed", "at"]
    a, b = (
        rows[rows["sampler"] == name].set_index(index)["value"].sort_index()
        for name in (first, second)
    )
    paired = (a - b).reset_index().assign(sampler=f"{first} − {second}", metric="difference")
    return replace(summary, rows=paired).curves[["at", "mean", "low", "high", "n"]]


def departures(summaries: Summaries, paper: Paper) -> str:
    """Write the seeds and what differs from the paper: ``"Here: 5 to 20 seeds (paper: 30)."``."""
    parts = []
    for words, read in SIZES.items():
        ours, theirs = set(), set()
        for name, summary in summaries.items():
            settings = {**summary.settings["settings"], "seeds": len(summary.settings["seeds"])}
            ours.update(read(settings))
            theirs.update(read(paper.experiments[name]))
        if ours != theirs:
            parts.append(f"{words.format(show_range(ours))} (paper: {show_range(theirs)})")
        elif "seeds" in words:
            parts.append(words.format(show_range(ours)))
    return f"Here: {', '.join(parts)}."
