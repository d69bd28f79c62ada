"""Claims of harshvardhan2025latency, judged by the rules in its ``paper.yaml``."""

import numpy as np

from fedsampling.artefacts.harshvardhan2025latency_quadratic import (
    LINES,
    PROPOSED,
    SEVEN,
    mean_runtimes,
    runtimes,
)
from fedsampling.artefacts.kit import Judge, Summaries
from fedsampling.evidence.numbers import show
from fedsampling.evidence.verdicts import Finding
from fedsampling.papers import ClaimSpec


def c1(summaries: Summaries, spec: ClaimSpec) -> Finding:
    """Judge Quadratic's row of Table 1."""
    return _winner(summaries, spec, "synthetic")


def c10(summaries: Summaries, spec: ClaimSpec) -> Finding:
    """Judge Quadratic's row of Table 2."""
    return _winner(summaries, spec, "nycmesh")


def c19(summaries: Summaries, spec: ClaimSpec) -> Finding:
    """Judge whether schemes for heterogeneous data gain where clients are alike."""
    means = mean_runtimes(runtimes(summaries["quadratic_iid"]), "nycmesh")
    ratios = {name: means[name] / means["random"] for name in ("divfl", "power_of_choice")}
    listed = ", ".join(f"{LINES[name].label} {show(ratio)}" for name, ratio in ratios.items())
    ours = f"of random's runtime: {listed}"
    if not np.isfinite(means["random"]):
        return Finding("inconclusive", ours, "Random selection does not reach 2.95 in every run.")
    better = [LINES[name].label for name, ratio in ratios.items() if ratio <= spec.margin]
    if not better:
        return Finding("reproduced", ours, "Neither is faster than random by the margin.")
    why = f"Faster than random by the margin: {', '.join(better)}."
    both = len(better) == len(ratios)
    return Finding("contradicted" if both else "partly", ours, why)


def c20(summaries: Summaries, spec: ClaimSpec) -> Finding:
    """Judge FLANP against random selection without delays."""
    table = runtimes(summaries["quadratic_no_delays"]).set_index(["sampler", "seed"])["rounds"]
    ratio = (table["flanp"] / table["random"]).to_numpy()
    ours = f"{show(float(ratio.mean()))} times random's rounds ({len(ratio)} seeds)"
    if np.isnan(ratio).any():
        return Finding("inconclusive", ours, "Neither reaches 2.95 in some seed.")
    if (ratio > spec.margin).all():
        return Finding("reproduced", ours, "FLANP takes more rounds in every seed.")
    if (ratio <= spec.margin).all():
        return Finding("contradicted", ours, "FLANP takes no more rounds in any seed.")
    return Finding("partly", ours, "FLANP takes more rounds in some seeds.")


def c23(summaries: Summaries, spec: ClaimSpec) -> Finding:
    """Judge the U-shape over the number of clients."""
    table = runtimes(summaries["quadratic_clients"])
    wide = table.pivot(index="seed", columns="sampler", values="counted")
    names = ["m-5", "m-10", "m-20", "m-30"]
    means = wide[names].mean()
    listed = ", ".join(f"{name[2:]}: {show(means[name])} s" for name in names)
    ours = f"runtime by clients: {listed}"
    best = str(means.idxmin())
    if not np.isfinite(means[best]):
        return Finding("inconclusive", ours, "No number of clients reaches 2.95 in every run.")
    if best in ("m-5", "m-30"):
        return Finding("contradicted", ours, f"The least is at the end, {best[2:]} clients.")
    if all((wide[end] > wide[best] + spec.margin).all() for end in ("m-5", "m-30")):
        return Finding("reproduced", ours, "Both ends take longer in every seed.")
    return Finding("inconclusive", ours, "An end is faster than the middle in some seed.")


def c24(summaries: Summaries, spec: ClaimSpec) -> Finding:
    """Judge the overheads' order."""
    curves = summaries["overhead"].curves
    here = curves[(curves["case"] == "quadratic") & (curves["at"] == 0)]
    seconds = here.set_index("metric")["mean"]
    names = ["heterogeneity", "minnorm", "trust-constr", "approx_opt"]
    ours = "Quadratic: " + ", ".join(f"{name} {show(seconds[name], 2)} s" for name in names)
    quick = seconds["minnorm"] <= spec.margin
    slowest = seconds["approx_opt"] > seconds[names[:3]].sum()
    if quick and slowest:
        return Finding("reproduced", ours, "Both statements hold.")
    if quick:
        return Finding("partly", ours, "MinNorm is fast; ApproxOptSampling is not the slowest.")
    if slowest:
        return Finding("partly", ours, "ApproxOptSampling is the slowest; MinNorm is not fast.")
    return Finding("contradicted", ours, "Neither statement holds.")


CLAIMS: dict[str, Judge] = {
    "c1": c1,
    "c10": c10,
    "c19": c19,
    "c20": c20,
    "c23": c23,
    "c24": c24,
}


def _winner(summaries: Summaries, spec: ClaimSpec, case: str) -> Finding:
    """Compare the least runtime, of a proposed scheme or not, with random selection's."""
    found = mean_runtimes(runtimes(summaries["quadratic"]), case)
    means = {name: found[name] for name in SEVEN if name in found}
    best = min(means, key=lambda name: means[name])
    if not np.isfinite(means[best]):
        return Finding("inconclusive", "no scheme reaches 2.95", "Nothing to compare.")
    ratio = means["random"] / means[best]
    proposed = ", ".join(f"{LINES[name].label} {show(means[name])} s" for name in PROPOSED)
    ours = (
        f"{proposed.replace('∞ s', 'N/A')}; random {show(means['random'])} s; best "
        f"{LINES[best].label}, random {show(ratio)} times as long"
    )
    wins = best in PROPOSED
    reported = spec.reference["random over best"]
    near = reported / spec.margin <= ratio <= reported * spec.margin
    if wins and near:
        return Finding("reproduced", ours, "A proposed scheme is first, by about as much.")
    if wins or near:
        why = "by another factor" if wins else "a baseline is first, by about as much"
        return Finding("partly", ours, f"First is {LINES[best].label}: {why}.")
    return Finding("contradicted", ours, f"First is {LINES[best].label}, by another factor.")
