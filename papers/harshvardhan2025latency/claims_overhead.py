"""Claim c24 of harshvardhan2025latency: the overhead of ApproxOptSampling.

Judged by the rule in the paper's ``paper.yaml``.
"""

from collections.abc import Mapping

from fedsampling.base.text import show
from fedsampling.evidence.rules import above, in_range, stated, verdict
from fedsampling.evidence.statistics import compare, ratio
from fedsampling.evidence.verdicts import Finding, Part, intervals
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .printed_tables import printed
from .time_to_target import with_interval

SIZE_FACTOR = 1.5  # tolerance around the paper's ratio, as in c1
OUTCOMES: Mapping[Part, str] = {"holds": "yes", "fails": "no", "open": "undecided"}
TASKS = {
    "heterogeneity": "heterogeneity of the features",
    "minnorm": "MinNorm",
    "trust-constr": "trust-constr",
    "approx_opt": "ApproxOptSampling",
}


def c24(
    summaries: Summaries,
    spec: ClaimSpec,
    paper: Paper,
    case: str = "quadratic",
    approx_opt: str = "approx_opt",
) -> Finding:
    """Judge whether ApproxOptSampling's overhead exceeds all others, and by what factor.

    `case`: the problem. `approx_opt`: the metric of ApproxOptSampling's seconds.
    """
    summary = summaries["overhead"]
    device = "; ".join(summary.provenance.get("device", ())) or "an unknown machine"
    device = device.replace(", 1 threads", ", 1 thread")
    rows = summary.select(case=case, since=0, until=0)
    seconds = rows.pivot(index="seed", columns="metric", values="value")
    reported_seconds = {
        name: cell.number for name, cell in printed(paper, "overheads")[case].items()
    }
    other_tasks = [name for name in reported_seconds if name != "approx_opt"]
    times = compare(seconds[approx_opt], seconds[other_tasks].sum(axis=1), ratio)
    reported = reported_seconds["approx_opt"] / sum(reported_seconds[name] for name in other_tasks)
    least, most = reported / SIZE_FACTOR, reported * SIZE_FACTOR
    means = seconds.mean()
    parts = {
        f"MinNorm takes at most {spec.margin:g} s": stated(bool(means["minnorm"] <= spec.margin)),
        "ApproxOptSampling takes longer than all else": above(times, 1),
        f"by a factor of {least:.3g} to {most:.3g}": in_range(times, least, most),
    }
    task_seconds = {name: means[name] for name in other_tasks} | {"approx_opt": means[approx_opt]}
    return verdict(
        parts,
        f"{case.capitalize()}, on {device}: "
        + ", ".join(f"{TASKS[name]} {show(s, 2)} s" for name, s in task_seconds.items())
        + f"; ApproxOptSampling over all else {with_interval(times)}",
        {
            "reproduced": "The order and the size are the paper's.",
            "partly reproduced": "; ".join(
                f"{name}: {OUTCOMES[part]}" for name, part in parts.items()
            )
            + ".",
        },
        contrary_decides=False,
        drawn=intervals(
            {"ApproxOptSampling over all else": times},
            "times",
            least=least,
            most=most,
            paper=reported,
        ),
    )
