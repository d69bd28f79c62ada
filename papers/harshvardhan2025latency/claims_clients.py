"""Claim c23 of harshvardhan2025latency: runtime over the number of clients, Table 3d.

Judged by the rule in the paper's ``paper.yaml``.
"""

from dataclasses import replace

import numpy as np

from fedsampling.base.text import listed
from fedsampling.evidence.rules import above, ordering, over_choices
from fedsampling.evidence.statistics import holm, ratio
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import Finding
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .time_to_target import at_least, mean_in_seconds, runtimes, target

BOUNDS = {
    "quadratic_clients_draws": "Assumption 3 alone",
    "quadratic_clients_draws_bounded": "B_p < 1 everywhere",
}


def c23(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge the U-shape over the number of clients, with each bound in DelayHetSampling."""
    findings = {
        label: u_shape(summaries[name], spec, paper)
        for name, label in BOUNDS.items()
        if name in summaries
    }
    return over_choices(findings, main=next(iter(findings)))


def u_shape(summary: Summary, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether the runtime is least for a middle number of clients."""
    goal = target(paper, "quadratic")
    table = runtimes(summary, goal)
    table = table.assign(m=[summary.setting("m", sampler=name) for name in table["sampler"]])
    runs = {m: table.loc[table["m"] == m, "counted"] for m in sorted(set(table["m"]))}
    fewest, *middle, most = runs
    part_of = {m: f"{m} clients take longer" for m in (fewest, most)}
    means = {m: mean_in_seconds(seconds) for m, seconds in runs.items()}
    if len(set(means.values())) == 1:  # N/A for each
        ours = f"{', '.join(map(str, means))} clients: {means[min(means)]}"
    else:
        ours = "; ".join(f"{m} clients: {mean}" for m, mean in means.items())
    best = min(middle, key=lambda m: float(runs[m].mean()))
    if np.isinf(runs[best]).any():
        why = f"No middle number of clients reaches {goal:g} in every run."
        return Finding("inconclusive", ours, why, parts=dict.fromkeys(part_of.values(), "open"))
    seconds = at_least(table.assign(sampler=table["m"]))
    pairs = {part: (seconds[end], seconds[best]) for end, part in part_of.items()}
    ratios = holm(pairs, ratio, spec.margin)
    shorter = listed(
        [str(m) for m, part in part_of.items() if above(ratios[part], spec.margin) == "fails"]
    )
    finding = ordering(
        ratios,
        spec.margin,
        f"times the seconds of {best} clients",
        {
            "reproduced": f"Both ends take longer than {best} clients.",
            "contradicted": f"{shorter} clients take less time than {best}.",
            "inconclusive": "Seeds vary too much to decide.",
        },
        partly=False,
    )
    return replace(finding, ours=ours)
