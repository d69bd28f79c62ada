"""Claims of Fraboni et al. 2021 on training, judged by the rules in its ``paper.yaml``.

Samplers of an experiment share seeds, and so initial models and batches: they are compared in
pairs.  A diverged run leaves a comparison open.  ``claims_gains.py`` has c10, ``claims_draws.py``
the claims on which clients are drawn.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from fedsampling.base.text import listed, show
from fedsampling.evidence.rules import above, equivalence, ordering, stated, verdict
from fedsampling.evidence.statistics import compare, difference, holm, percent, ratio, show_estimate
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import Finding, Part, intervals
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .lines import CLUSTERED, LATE, LINES, MEASURES, METRICS, by_alpha, late


def c3(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether Algorithm 2 is equivalent to target sampling."""
    summary = summaries["mnist"]
    pairs = {
        name: (late(summary, "algorithm2", metric), late(summary, "target", metric))
        for metric, name in METRICS.items()
    }
    quantity = "times target sampling's value"
    return equivalence(pairs, claim.margin, quantity, contrary_decides=False, partly=True)


def c4(
    summaries: Summaries, claim: ClaimSpec, paper: Paper, tolerance: float | None = None
) -> Finding:
    """Judge the order of the late losses for small α, and whether the gain depends on α.

    With a `tolerance`, a loss must not be higher than the next by more than this share; otherwise
    it must be lower.
    """
    summary = summaries["alpha"]
    cases, largest = by_alpha(summary), paper.reported("largest_alpha_better")
    losses = {
        alpha: [late(summary, name, "loss", case) for name in ("md", *CLUSTERED)]
        for alpha, case in cases.items()
    }
    pairs: dict[str, tuple[pd.Series, pd.Series]] = {}
    for alpha, (md, first, second) in losses.items():
        if alpha <= largest:
            pairs[f"MD − Algorithm 1, α = {alpha:g}"] = (md, first)
            pairs[f"Algorithm 1 − Algorithm 2, α = {alpha:g}"] = (first, second)
    if tolerance is None:
        finding = ordering(holm(pairs, difference), claim.margin, "loss")
    else:
        least = 1 / (1 + tolerance)
        finding = ordering(holm(pairs, ratio, least), least, "times the loss")
    gains = {alpha: 1 - second / md for alpha, (md, _, second) in losses.items()}
    least, most = min(cases), max(cases)
    percent_gained = [show(100 * gains[alpha].mean(), 2) for alpha in (least, most)]
    trend = compare(gains[least], gains[most], difference)
    words = (
        f"Algorithm 2 gains {percent_gained[0]} % on MD at α = {least:g} and {percent_gained[1]} % "
        f"at α = {most:g}."
    )
    parts = {**finding.parts, "a larger gain at the smallest α": above(trend, 0)}
    if finding.verdict == "reproduced" and parts["a larger gain at the smallest α"] != "holds":
        finding = replace(finding, verdict="partly reproduced")
    return replace(finding, reason=f"{finding.reason} {words}", parts=parts)


def c5(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether both algorithms' late losses are equivalent to MD's for α = 10 and 0.1."""
    summary, cases = summaries["alpha"], by_alpha(summaries["alpha"])
    even = paper.reported("small_alpha_close"), paper.reported("large_alpha_close")
    pairs = {
        f"{LINES[name].label} at α = {alpha:g}": (
            late(summary, name, "loss", cases[alpha]),
            late(summary, "md", "loss", cases[alpha]),
        )
        for alpha in even
        if alpha in cases
        for name in CLUSTERED
    }
    return equivalence(pairs, claim.margin, "times MD sampling's late loss")


def c6(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether the gain grows with local work and with fewer clients."""
    work, clients = summaries["work"], summaries["clients"]
    steps = {work.setting("work.steps", case): case for case in work.settings["cases"]}
    sampled = [sampler["m"] for sampler in clients.settings["samplers"].values()]
    case = by_alpha(clients)[paper.reported("alpha_of_figure8")]
    pairs = {
        "more work": (_gain(work, case=steps[max(steps)]), _gain(work, case=steps[min(steps)])),
        "fewer clients": (
            _gain(clients, f"-{min(sampled)}", case),
            _gain(clients, f"-{max(sampled)}", case),
        ),
    }
    points = {name: percent(gap) for name, gap in holm(pairs, difference).items()}
    return ordering(points, 100 * claim.margin, "points")


def c7(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether the late losses with L2 and L1 are equivalent to that with arccos."""
    summary = summaries["measures"]
    pairs = {name.upper(): (late(summary, name), late(summary, "arccos")) for name in ("l2", "l1")}
    return equivalence(pairs, claim.margin, "times the late loss with arccos")


def c8(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether both algorithms' late losses are below MD's under FedProx."""
    summary = summaries["prox"]
    md = late(summary, "md")
    pairs = {LINES[name].label: (md, late(summary, name)) for name in CLUSTERED}
    return ordering(holm(pairs, difference), claim.margin, "loss, MD − algorithm")


def c11(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether loss and accuracy are smoother than MD's, over all α."""
    summary = summaries["alpha"]
    roughness = {
        (name, metric): pd.concat(
            [np.log(_roughness(summary, name, metric, case)) for case in summary.settings["cases"]],
            axis=1,
        ).mean(axis=1)
        for name in ("md", *CLUSTERED)
        for metric in ("loss", "accuracy")
    }
    pairs = {
        f"{LINES[name].label} {metric}": (
            np.exp(roughness["md", metric]),
            np.exp(roughness[name, metric]),
        )
        for name in CLUSTERED
        for metric in ("loss", "accuracy")
    }
    return ordering(
        holm(pairs, ratio), claim.margin, "times the algorithm's roughness, MD sampling"
    )


def c12(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether an algorithm is worse than MD in any setting."""
    lines = {name: LINES[name] for name in CLUSTERED} | MEASURES  # Algorithm 2 with a measure
    pairs: dict[str, tuple[pd.Series, pd.Series]] = {}
    for experiment in claim.experiments:
        if experiment not in summaries:
            continue
        summary = summaries[experiment]
        for case in summary.settings["cases"]:
            setting = case.replace("alpha-", "α = ")
            where = summary.settings["title"] + ("" if case == "base" else f", {setting}")
            for sampler in summary.settings["samplers"]:
                algorithm, *variant = sampler.split("-")
                md = "-".join(["md", *variant])
                if algorithm in lines and md in summary.settings["samplers"]:
                    name = ", ".join([lines[algorithm].label, *variant])
                    pairs[f"{name} ({where})"] = (
                        late(summary, sampler, "loss", case),
                        late(summary, md, "loss", case),
                    )
    ratios = {name: compare(*pair, ratio) for name, pair in pairs.items()}
    worse = [name for name, times in holm(pairs, ratio).items() if times.low > 1]
    worst = max(ratios, key=lambda name: ratios[name].high)
    parts: dict[str, Part] = {
        name: "fails" if name in worse else stated(times.high < 1 + claim.margin or None)
        for name, times in ratios.items()
    }
    finding = verdict(
        parts,
        f"{len(ratios)} comparisons; largest upper limit: {worst} {show_estimate(ratios[worst])}",
        {"reproduced": "No interval reaches the margin."},
        partly=False,
        drawn=intervals(
            {worst: ratios[worst]}, "times MD sampling's late loss", most=1 + claim.margin
        ),
    )
    holds = {"reproduced": True, "contradicted": False}.get(finding.verdict)
    return replace(finding, parts={"no worse than MD sampling in any setting": stated(holds)})


def c13(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether both algorithms are below MD for few and for many clients."""
    summary = summaries["clients"]
    case = by_alpha(summary)[paper.reported("alpha_of_figure8")]
    counts = {name: entry["m"] for name, entry in summary.settings["samplers"].items()}
    pairs, open_parts = {}, []
    for name in CLUSTERED:
        for m in sorted(set(counts.values())):
            label = f"{LINES[name].label}, m = {m}"
            if f"{name}-{m}" in counts:
                md, ours = (late(summary, f"{n}-{m}", "loss", case) for n in ("md", name))
                pairs[label] = (md, ours)
            else:
                open_parts.append(label)
    finding = ordering(holm(pairs, difference), claim.margin, "loss, MD − algorithm")
    if open_parts and finding.verdict == "reproduced":
        reason = f"{finding.reason} Not run: {listed(open_parts)}."
        finding = replace(finding, verdict="partly reproduced", reason=reason)
    return replace(finding, parts={**finding.parts, **dict.fromkeys(open_parts, "open")})


def _gain(summary: Summary, suffix: str = "", case: str = "base") -> pd.Series:
    """Return Algorithm 2's relative gain over MD in late loss, by seed."""
    md, ours = (late(summary, f"{name}{suffix}", "loss", case) for name in ("md", "algorithm2"))
    return 1 - ours / md


def _roughness(summary: Summary, sampler: str, metric: str, case: str) -> pd.Series:
    """Return the mean absolute change between measurements in the second half, by seed."""
    rows = summary.select(sampler, metric, case)
    rows = rows[rows["at"] >= LATE * rows["at"].max()].sort_values("at")
    changes: pd.Series = rows.groupby("seed")["value"].apply(
        lambda values: values.diff().abs().mean()
    )
    return changes
