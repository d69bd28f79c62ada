"""Claims c4 and c5 of Chen et al. 2022, which hold by its theory: they check our code."""

import numpy as np
import pandas as pd

from fedsampling.base.text import show
from fedsampling.evidence.rules import by_chance
from fedsampling.evidence.statistics import bound
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import Finding
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries
from fedsampling.theory.improvement import improvement_factor

from .courses import population

DIVERGED = Finding("inconclusive", "a run diverged", "The norms of a run are no longer finite.")


def c4(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge the ranges of α^k and γ^k of OCS on quadratics, over all rounds and runs."""
    summary = summaries["dsgd"]
    settings = summary.settings["settings"]
    rounds = len(summary.select("optimal", "alpha"))
    return _in_ranges(
        claim,
        _extremes(summary, "alpha"),
        _extremes(summary, "gamma"),
        settings["m"] / settings["clients"],
        f"{rounds} rounds and all runs of OCS on quadratics",
    )


def _extremes(summary: Summary, metric: str) -> tuple[float, float]:
    """Return the extremes of a metric over all runs of OCS on quadratics."""
    low, high = (summary.select("optimal", f"{metric}_{end}")["value"] for end in ("low", "high"))
    return float(low.min()), float(high.max())


def c4_network(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge the ranges of α^k and γ^k over all rounds of networks' runs."""
    summary = summaries["writers_training"]
    n, m = population(summary)
    alpha = summary.select("optimal", "alpha_exact")["value"].to_numpy()
    if not np.isfinite(alpha).all():
        return DIVERGED
    gamma = np.asarray(improvement_factor(alpha, n, m))
    return _in_ranges(
        claim,
        (float(alpha.min()), float(alpha.max())),
        (float(gamma.min()), float(gamma.max())),
        m / n,
        f"{len(alpha):,} rounds",
    )


def _in_ranges(
    claim: ClaimSpec,
    alpha: tuple[float, float],
    gamma: tuple[float, float],
    share: float,
    where: str,
) -> Finding:
    """Judge α^k in [0, 1] and γ^k in [m/n, 1] from their extremes and the share m/n."""
    beyond = max(-alpha[0], alpha[1] - 1, share - gamma[0], gamma[1] - 1)
    holds = beyond <= claim.margin
    return Finding(
        "reproduced" if holds else "contradicted",
        ours=f"α^k in [{show(alpha[0])}, {show(alpha[1])}], "
        f"γ^k in [{show(gamma[0])}, {show(gamma[1])}], m/n = {show(share)}",
        reason=f"The extremes over {where} {'lie' if holds else 'do not lie'} in the ranges.",
    )


def c5(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether G^k − Σ w_i U_i has mean zero, coordinate by coordinate."""
    experiments = [summaries[name] for name in ("dsgd", "dsgd_exchanges")]
    z = pd.concat([summary.select(metric="bias")["value"] for summary in experiments])
    dimension = int(experiments[0].settings["settings"]["dimension"])
    return by_chance(float(z.max()), len(z) * dimension, "coordinates", claim.margin)


def c5_network(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether Σ (ω_i − w_i) ‖U_i‖ has mean zero along networks' runs."""
    deviation = summaries["writers_training"].select("optimal", "deviation")["value"]
    z, limit = float(deviation.mean() * np.sqrt(len(deviation))), bound(claim.margin)
    if not np.isfinite(z):
        return DIVERGED
    holds = abs(z) < limit
    return Finding(
        "reproduced" if holds else "contradicted",
        ours=f"z = {z:.2f} of {len(deviation):,} rounds (limit {limit:.2f})",
        reason=f"The standardised mean is {'within' if holds else 'beyond'} the limit; the "
        f"probability of exceeding it by chance is {100 * claim.margin:g} %.",
    )
