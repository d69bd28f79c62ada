"""Claims c19 and c20 of harshvardhan2025latency: other samplers against random selection, Figure 2.

Judged by the rules in the paper's ``paper.yaml``.
"""

import numpy as np
import pandas as pd

from fedsampling.base.text import show
from fedsampling.evidence.rules import TIE, faster, ordering, over_choices, verdict
from fedsampling.evidence.statistics import LEVEL, compare, holm, ratio
from fedsampling.evidence.verdicts import Finding, intervals
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .printed_tables import LINES
from .run_settings import stages_in_words
from .time_to_target import NARROW, at_least, runtimes, target, with_interval


def c19(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether samplers for heterogeneous data are faster than random on IID data."""
    goal = target(paper, "quadratic")
    table = runtimes(summaries["quadratic_iid"], goal)
    if np.isinf(table.loc[table["sampler"] == "random", "counted"]).any():
        missed = f"Random selection does not reach {goal:g} in every run."
        return Finding("inconclusive", missed, missed)
    seconds = at_least(table)
    pairs = {
        LINES[name].label: (seconds[name], seconds["random"])
        for name in ("divfl", "power_of_choice")
    }
    return ordering(
        holm(pairs, ratio, spec.margin),
        spec.margin,
        "times random selection's seconds",
        {
            "reproduced": "Neither is faster than random selection by the margin.",
            "contradicted": "One or both are faster than random selection by the margin.",
            "inconclusive": "Seeds vary too much to decide.",
        },
        contrary_decides=False,
    )


FLANP_RULE = "FLANP's main rule"  # the reading of `quadratic_no_delays`


def c20(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether FLANP is slower than random selection without delays, by any rule of FLANP's.

    With fresh seeds, all rules for its stages were run without delays.  The exploring runs of other
    rules have synthetic delays: these decide which clients are fastest, and are drawn independently
    of the data.
    """
    goal, main = target(paper, "quadratic"), summaries["quadratic_no_delays"]
    table = runtimes(main, goal)
    last = float(main.rows["at"].max())
    own = {k: v for k, v in main.settings["samplers"].items() if k.startswith("flanp-")}
    stages = {"flanp": FLANP_RULE}  # in words, by label
    stages |= {label: stages_in_words(settings) for label, settings in own.items()}
    if "quadratic_variants" in summaries:
        others = summaries["quadratic_variants"]
        rules = {k: v for k, v in others.settings["samplers"].items() if k.startswith("flanp")}
        stages |= {label: stages_in_words(settings) for label, settings in rules.items()}
        variants = runtimes(others, goal)
        table = pd.concat([table, variants[variants["case"] == "synthetic"]], ignore_index=True)
    wide = table.pivot(index="seed", columns="sampler", values=["rounds", "last"])
    rounds, ends = wide["rounds"], wide["last"].clip(upper=last)
    readings = {
        stages[label]: flanp_over_random(rounds[label], rounds["random"], goal, ends[label])
        for label in map(str, rounds)
        if label in stages
    }
    return over_choices(readings, main=FLANP_RULE)


def flanp_over_random(flanp: pd.Series, random: pd.Series, goal: float, last: pd.Series) -> Finding:
    """Judge whether FLANP takes more rounds than random selection, paired by seed.

    A run of FLANP that misses the target in its `last` rounds counts with these, a lower bound.
    """
    is_cut_off = bool(np.isinf(flanp).any())
    bound = flanp.clip(upper=last)
    times, narrow = (compare(bound, random, ratio, level) for level in (LEVEL, NARROW))
    part = faster(times, narrow)
    if np.isinf(random).any() or (is_cut_off and part != "holds"):
        part = "open"
    number = with_interval(times) if np.isfinite(times.low) else show(times.value)
    ours = f"{number} times random's rounds ({times.n} seeds)"
    if is_cut_off:
        missed = f"misses a loss of {goal:g} in {np.isinf(flanp).sum()} of {times.n} runs"
        bounded = f"> {show(times.value)} times random's rounds"
        ours = f"FLANP {missed} of at most {last.max():g} rounds; {bounded}"
    return verdict(
        {"FLANP slower than random": part},
        ours,
        {
            "reproduced": "FLANP takes more rounds.",
            "contradicted": f"FLANP and random selection tie, within {100 * TIE:g} %."
            if part == "tie"
            else "FLANP takes fewer rounds.",
            "inconclusive": "Seeds vary too much to decide.",
        },
        drawn=()
        if is_cut_off
        else intervals({"FLANP": times}, "times random selection's rounds", least=1),
    )
