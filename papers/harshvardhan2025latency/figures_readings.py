"""Tables by settings that Harshvardhan et al. 2025 does not state: readings, and link speeds."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from fedsampling.clients.delays import SyntheticDelays
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from . import claims
from .printed_tables import CASES, DATA, DELAYS
from .run_settings import bound_in_words, iterations, record
from .time_to_target import MAIN_READING, nan_if_infinite, row_summary, runtimes, target

CLIENTS = 10  # that train in a round
POPULATIONS = 1_000  # draws of clients for the mean largest delay


def image_readings(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate the rows of MNIST and FashionMNIST in Tables 1 and 2 by DelayHetSampling's readings.

    The verdict of a reading is that of its row's claim, with our choice of FLANP's stages.
    """
    data = [
        entry
        for name, spec in paper.claims.items()
        if spec.kind == "empirical"
        and spec.artefact in CASES
        and spec.experiments[0] in DATA
        and row_summary(summaries, f"{spec.experiments[0]}_sampling", CASES[spec.artefact])
        is not None
        for entry in _row_by_reading(name, summaries, paper)
    ]
    note = (
        "First row of each: the main reading. Least and most single: smallest and largest share, "
        "over seeds, of the rounds in which one client trains."
    )
    formats = {"seconds": 3, "sd": 2, "least_single": 2, "most_single": 2}
    return Artefact(pd.DataFrame(data), notes=(note,), formats=formats)


def _row_by_reading(name: str, summaries: Summaries, paper: Paper) -> Iterator[dict[str, Any]]:
    """Yield DelayHetSampling's runtime in a claim's row and the claim's verdict, by reading."""
    spec = paper.claims[name]
    row = spec.experiments[0]
    case = CASES[spec.artefact]
    readings = claims.row_readings(summaries, spec, paper)
    for (flanp, label), table in readings.items():
        if flanp == "flanp":
            summary = row_summary(
                summaries, row if label == "sampling" else f"{row}_sampling", case
            )
            assert summary is not None  # it was read for row_readings
            yield _reading(name, summary, label, table, paper)
    inside = summaries.get(f"{row}_feasible")
    if inside is not None and case in inside.settings["cases"]:
        others = next(iter(readings.values())).query("sampler != 'sampling'")
        runs = runtimes(inside, target(paper, row, summaries)).assign(sampler="sampling")
        runs = runs[runs["case"] == case]
        yield _reading(name, inside, MAIN_READING, pd.concat([others, runs]), paper)


def _reading(
    name: str, summary: Summary, label: str, table: pd.DataFrame, paper: Paper
) -> dict[str, Any]:
    """Describe a reading of DelayHetSampling in a claim's row.

    `label`: of the sampler in `summary`. `table`: the runtimes of all samplers in this reading.
    """
    spec = paper.claims[name]
    case = CASES[spec.artefact]
    settings = summary.settings["samplers"][label]
    seconds = table.loc[table["sampler"] == "sampling", "counted"]
    clients = summary.select(metric="clients", case=case, sampler=label, since=0)
    single = (clients["value"] == 1).groupby(clients["seed"]).mean()  # share of the rounds
    return {
        "data": DATA[spec.experiments[0]],
        "delays": DELAYS[case],
        "bound": bound_in_words(settings),
        "iterations": f"{iterations(settings):,}",
        "seconds": nan_if_infinite(float(seconds.mean())),
        "sd": float(seconds.std()) if np.isfinite(seconds).all() else np.nan,
        "reached": int(np.isfinite(seconds).sum()),
        "runs": len(seconds),
        "least_single": float(single.min()),
        "most_single": float(single.max()),
        "claim": name,
        "verdict": claims.reading_finding(table, spec, paper).verdict,
    }


def link_speeds(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate clients' synthetic delays by the largest link speed and the size of the sent model.

    If an experiment names no size, clients send the trained network.
    """
    data = []
    for name in ("dirichlet_mnist", "links", "links_model"):
        summary = summaries[name]
        for case in summary.settings["cases"]:
            delays = record(summary, case).delays
            if not isinstance(delays, SyntheticDelays):
                continue
            size = delays.model_bytes or _trained_bytes(summary, case)
            slowest, fastest = delays.speed
            largest = [
                delays.draw(seed, clients=CLIENTS, model_bytes=size).mean.max()
                for seed in range(POPULATIONS)
            ]
            data.append(
                {
                    "model": size / 1e6,
                    "speed": fastest / 1e6,
                    "least_sending": size / fastest,
                    "most_sending": size / slowest,
                    "largest": float(np.mean(largest)),
                }
            )
    note = f"Largest: mean over {POPULATIONS:,} draws of {CLIENTS} clients."
    table = pd.DataFrame(data).sort_values(["model", "speed"], ignore_index=True)
    return Artefact(table, notes=(note,), formats=dict.fromkeys(table.columns, 3))


def _trained_bytes(summary: Summary, case: str) -> float:
    """Compute the size in bytes of the trained network: the bits sent per report, over eight."""
    sent = summary.select(metric=["model_bits", "reports"], case=case, since=0)
    totals = sent.groupby("metric")["value"].sum()
    return float(totals["model_bits"] / totals["reports"] / 8)
