"""Claims of Fraboni et al. 2021 on which clients are drawn: c1, c2 and c9.

Judged by the rules in its ``paper.yaml``.
"""

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from fedsampling.base.text import show
from fedsampling.evidence.rules import above, close, stated, verdict
from fedsampling.evidence.statistics import Estimate, mean, percent, show_estimate
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import Finding, Verdict, intervals
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .lines import CLUSTERED, LINES

DIGITS = 10


def c1(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge how often all sampled clients are different."""
    summary = summaries["mnist"]
    shares = {name: all_clients_distinct(summary, name) for name in ("md", *CLUSTERED)}
    md_share, expected = mean(shares["md"]), probability_all_distinct(summary)
    share = close(md_share, md_share, expected, claim.margin)
    always = bool(min(shares[name].min() for name in CLUSTERED) == 1)
    result: Verdict = "contradicted"
    if share != "fails":
        agrees: Verdict = "reproduced" if share == "holds" else "inconclusive"
        result = agrees if always else "partly reproduced"
    elif always:
        result = "partly reproduced"
    position = {"holds": "lies within", "open": "crosses", "fails": "lies outside of"}[share]
    repeats = "never draw a client twice" if always else "draw a client twice in some rounds"
    ours = (
        f"MD {show_estimate(percent_of_rounds(md_share), '%')} "
        f"(closed form {100 * expected:.1f} %); "
        + "; ".join(f"{LINES[name].label} {100 * shares[name].mean():.4g} %" for name in CLUSTERED)
    )
    return Finding(
        result,
        ours,
        f"The interval of MD's share {position} the margin; Algorithms 1 and 2 {repeats}.",
        drawn=intervals(
            {"MD": percent_of_rounds(md_share)},
            "% of rounds",
            paper=100 * expected,
            within=100 * claim.margin,
        ),
    )


def c2(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge how often MD sampling selects clients with six to eight digits."""
    rounds = summaries["mnist"].select("md", "labels", since=1)
    usual = rounds["value"].between(paper.reported("least_digits"), paper.reported("most_digits"))
    share = mean(usual.groupby(rounds["seed"]).mean())
    return verdict(
        {"MD sampling": above(share, claim.margin)},
        f"in {show_estimate(percent_of_rounds(share), '%')} of the rounds",
        {
            "reproduced": "The interval lies above the margin.",
            "contradicted": "The interval lies below the margin.",
            "inconclusive": "The interval crosses the margin.",
        },
        drawn=intervals({"MD": percent_of_rounds(share)}, "% of rounds", least=100 * claim.margin),
    )


def c9(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge Proposition 1 and the bounds on every allocation of every run."""
    summary = summaries["allocation_mnist"]
    # Sums (7), (8) and draws are whole numbers; variances and probabilities are rounded.
    rows, columns, variance, inclusion = (
        float(summary.select(CLUSTERED, name)["value"].max())
        for name in ("rows_off", "columns_off", "variance_above_md", "inclusion_below_md")
    )
    draws = float(summary.select("algorithm1", "draws_above_bound")["value"].max())
    ours = (
        f"{len(summary.select(CLUSTERED, 'rows_off'))} allocations: sums off by {rows:g} and "
        f"{columns:g}; largest Var[ω_i] − MD's {show(variance)}, largest MD's P(i ∈ S) − ours "
        f"{show(inclusion)}; draws of Algorithm 1 − bound {draws:g} at most"
    )
    parts = {
        "equations (7), (8)": stated(rows == columns == 0),
        "variances and probabilities": stated(max(variance, inclusion) <= claim.margin),
        "draws of Algorithm 1": stated(draws <= 0),
    }
    return verdict(
        parts,
        ours,
        {
            "reproduced": "Every sum is exact and no client exceeds a bound.",
            "contradicted": "A sum is not exact, or a client exceeds a bound.",
        },
    )


def all_clients_distinct(summary: Summary, sampler: str) -> pd.Series:
    """Return the share of rounds whose m sampled clients are all different, indexed by seed."""
    rounds = summary.select(sampler, "clients", since=1)
    m = summary.setting("m", sampler=sampler)
    shares: pd.Series = (rounds["value"] == m).groupby(rounds["seed"]).mean()
    return shares


def probability_all_distinct(summary: Summary) -> float:
    """Return the probability that MD sampling draws m different clients on MNIST by digit.

    For n clients of equal size, this is n!/((n − m)! n^m), section 6.
    """
    from fedsampling.data.partitions.by_label import ByDigit

    partition = ByDigit.model_validate(summary.setting("dataset.partition"))
    n, m = DIGITS * partition.clients_per_label, summary.setting("m", sampler="md")
    return float(math.perm(n, m) / n**m)


def percent_of_rounds(share: Estimate) -> Estimate:
    """Turn a share into per cent; its interval ends where the share does."""
    low, high = np.clip([share.low, share.high], 0, 1)
    return percent(replace(share, low=float(low), high=float(high)))
