"""Tables of Harshvardhan et al. 2025 by settings that the paper does not state.

DelayHetSampling's readings on images, and the size of the model that clients send.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fedsampling.base.text import plural
from fedsampling.clients.delays import Synthetic
from fedsampling.evidence.rules import stated, verdict
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import Finding
from fedsampling.experiments.papers import Paper, judge_function
from fedsampling.report.drawing.artefacts import (
    Alternative,
    Artefact,
    Summaries,
    by_reason,
    instead,
    tabulate,
)

from . import claims, claims_trends
from .runtimes import (
    CASES,
    DATA,
    DELAYS,
    PROPOSED,
    bound_in_words,
    iterations,
    main_reading,
    nan_if_infinite,
    record,
    row_summary,
)

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
    for (flanp, label), table in claims.row_readings(summaries, spec, paper).items():
        if flanp != "flanp":
            continue
        summary = row_summary(summaries, row if label == "sampling" else f"{row}_sampling", case)
        assert summary is not None  # it was read for row_readings
        settings = summary.settings["samplers"][label]
        seconds = table.loc[table["sampler"] == "sampling", "counted"]
        clients = summary.select(metric="clients", case=case, sampler=label, since=0)
        single = (clients["value"] == 1).groupby(clients["seed"]).mean()  # share of the rounds
        yield {
            "data": DATA[row],
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
            if not isinstance(delays, Synthetic):
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


# Choices that could change verdicts of Harshvardhan et al. 2025.


ROWS = ("c1", "c2", "c3", "c4", "c5", "c10", "c11", "c12", "c13", "c14")
FURTHER = {  # experiments with other choices
    "c21": ("rotation_sampling",),
    "c22": ("links_sampling", "links_model"),
}


def alternatives(summaries: Summaries, paper: Paper) -> Artefact:
    """Judge the claims that have their runs under the choices most likely to change them."""
    varied = {
        **dict.fromkeys(ROWS, _of_row),
        "c21": _of_sweep,
        "c22": _of_sweep,
        "c24": _of_overheads,
    }
    judged: dict[str, Finding] = {}
    rows: list[Alternative] = []
    for name, vary in varied.items():
        spec = paper.claims[name]
        used = spec.experiments or paper.artefacts[spec.artefact].experiments
        if name in ROWS and not claims.row_readings(summaries, spec, paper):
            continue  # no runs with its kind of delays
        if summaries.keys() >= {*used, *FURTHER.get(name, ())}:
            judged[name] = judge_function(paper, name)(summaries, spec, paper)
            rows += vary(name, summaries, paper)
    return tabulate(judged, rows)


def _of_row(name: str, summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Vary the clock, and who may be first in a row of Tables 1 and 2."""
    spec = paper.claims[name]
    table = next(iter(claims.row_readings(summaries, spec, paper).values()))

    def instead_of(
        choice: str, runs: pd.DataFrame, allowed: frozenset[str] | None = None
    ) -> Alternative:
        return _instead(name, choice, claims.reading_finding(runs, spec, paper, allowed))

    # For runs that miss the target, the paper's seconds are a lower bound.
    ends = table["end"].where(np.isinf(table["all"]), table["all"])
    warm_up = "seconds of warm-up rounds and candidates' losses count as well"
    yield instead_of(warm_up, table.assign(counted=table["all"], end=ends))
    if name == "c1":
        missed = table.loc[(table["sampler"] == "submodular") & np.isinf(table["counted"]), "seed"]
        draws = plural(len(missed), "draw")
        reaching = f"without the {draws} in which DelayHetSubmodular misses the target"
        yield instead_of(reaching, table[~table["seed"].isin(missed)], frozenset(PROPOSED))
    elif claims.printed_of(spec, paper).fastest != "flanp":
        either = frozenset({*PROPOSED, "flanp"})
        yield instead_of("FLANP may be first, too", table, either)
    else:
        only = "only the proposed samplers may be first, not FLANP"
        yield instead_of(only, table, frozenset(PROPOSED))


def _of_sweep(name: str, summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Judge c21 or c22 by means, and by every seed."""
    artefact = paper.claims[name].artefact
    main = main_reading(summaries, artefact)
    tables = claims_trends.seconds_along_sweep(summaries, paper, artefact, main)
    steps = {label: np.diff(table.mean()) for label, table in tables.items()}
    changes = {label: table.iloc[:, -1] - table.iloc[:, 0] for label, table in tables.items()}
    yield _by_sign(name, "the order of the means decides", steps)
    yield _by_sign(name, "the sign of every seed's ends decides", changes)


def _by_sign(name: str, choice: str, differences: Mapping[str, ArrayLike]) -> Alternative:
    """Judge a claim by the signs of each sampler's differences, without intervals.

    It holds if all are positive, and fails if all are negative.
    """
    signs = {label: set(np.sign(values)) for label, values in differences.items()}
    parts = {
        label: stated(each == {1} if each in ({1}, {-1}) else None) for label, each in signs.items()
    }
    return by_reason(name, choice, verdict(parts, "", {}, contrary_decides=False))


def _of_overheads(name: str, summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Vary the solver and the problem."""
    spec = paper.claims[name]
    changed: dict[str, dict[str, Any]] = {
        "ApproxOptSampling solved by SLSQP": {"approx_opt": "approx_opt_slsqp"},
        "on Shakespeare instead of Quadratic": {"case": "shakespeare"},
    }
    for choice, changes in changed.items():
        yield _instead(name, choice, claims_trends.c24(summaries, spec, paper, **changes))


def _instead(name: str, choice: str, finding: Finding) -> Alternative:
    """Record a finding with only its last number, the size of the effect."""
    return instead(name, choice, finding, finding.ours.rpartition("; ")[2])
