"""Claims c1 to c18 of harshvardhan2025latency: who is first in the rows of Tables 1 and 2.

Judged by the rules in its ``paper.yaml``; ``claims_trends.py`` has the other claims.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fedsampling.evidence.numbers import listed
from fedsampling.evidence.verdicts import (
    DEPENDS,
    JOINT,
    UNDECIDED,
    Finding,
    Part,
    intervals,
    over_choices,
    stated,
    verdict,
)
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries
from fedsampling.samplers.latency import ITERATIONS

from .runtimes import (
    LINES,
    PROPOSED,
    SEVEN,
    TABLES,
    by_problem,
    in_seconds,
    mean_in_seconds,
    order,
    printed,
    readings,
    runtimes,
    target,
    with_interval,
)

NEAR_TIE = 1.05  # times the fastest sampler's seconds in the paper


def first(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge who is first in a row of Tables 1 and 2, and how far ahead of random selection.

    The claim's first experiment is the row.  Its other experiments vary the stages of FLANP, or the
    bound and iterations of DelayHetSampling; the claim is then judged over all combinations.  It
    holds if the fastest sampler is the paper's fastest, or one of the two that the paper proposes.
    """
    row, seconds = row_of(spec)
    others = (f"{row}_sampling", f"{row}_flanp")
    names = [name for name in (*spec.experiments, *others) if name in summaries]
    (case,) = (case for case, table in TABLES.items() if table == spec.artefact)
    tables = [seconds(summaries[name], target(paper, row)) for name in dict.fromkeys(names)]
    tables = [table[table["case"] == case] for table in tables]
    combined = {
        ", ".join(labels): table
        for labels, table in readings(*(table for table in tables if len(table))).items()
    }
    findings = {
        name: who_is_first(combination, spec, paper, row) for name, combination in combined.items()
    }
    assumption3_only = (name for name in findings if name.endswith("sampling-start"))
    main = next(assumption3_only, next(iter(findings)))
    finding = findings[main]
    if len(findings) > 1:
        runs = (summaries[name].settings["samplers"] for name in names)
        samplers = {label: settings for group in runs for label, settings in group.items()}
        words = {name: settings_in_words(name, samplers) for name in findings}
        finding = over_choices(
            {words[name]: reading for name, reading in findings.items()}, words[main]
        )
    settings = summaries[spec.experiments[0]].settings["samplers"]["sampling"]
    bounded = settings.get("bound") != "start" and not main.endswith("sampling-start")
    one_rule = len({name.partition(", ")[0] for name in findings}) == 1
    caveat = _caveat(finding, combined[main], bounded, one_rule) + _near_tie(spec, paper, row)
    if spec.open_choices and not finding.readings:
        caveat += " The runs of its open choices are not finished."
    return replace(finding, caveat=caveat)


def settings_in_words(labels: str, samplers: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the settings of FLANP and of DelayHetSampling behind a pair of labels.

    Parameters
    ----------
    labels : str
        Both labels, joined with a comma.
    samplers : mapping
        Settings by label.
    """
    flanp, sampling = (samplers[label] for label in labels.split(", "))
    if "accuracy" in flanp:
        rule = f"stages end at {flanp['accuracy']:g} of the first squared norm"
    elif flanp.get("stop") == "rounds":
        rule = f"{flanp['rounds']} round per stage"
    else:
        rule = "stages end by the statistical rule"
    alone = sampling.get("bound") == "start"
    bound = "Assumption 3 alone" if alone else "B_p < 1 everywhere"
    iterations = sampling.get("iterations", ITERATIONS)
    return (
        f"FLANP: {flanp['first']} clients first; {rule}, "
        f"DelayHetSampling: {bound}; {iterations} iterations"
    )


def _caveat(finding: Finding, table: pd.DataFrame, bounded: bool, one_rule: bool) -> str:
    """Describe the effect of the paper's unstated choices, and of counting all seconds.

    Parameters
    ----------
    bounded : bool
        Whether DelayHetSampling's runs have B_p < 1 for every distribution.
    one_rule : bool
        Whether FLANP's runs have a single rule for its stages.
    """
    sentences = []
    if finding.readings:
        verdicts = [reading.verdict for reading in finding.readings]
        counts = [f"{verdicts.count(word)} {word}" for word in dict.fromkeys(verdicts)]
        every = "Both" if len(verdicts) == 2 else f"All {len(verdicts)}"
        agree = f"{every} combinations that were run give the same verdict."
        differ = f"The {len(verdicts)} combinations that were run give: {listed(counts)}."
        sentences.append(
            "The paper does not state FLANP's stages, nor DelayHetSampling's bound and iterations."
        )
        if finding.verdict != DEPENDS:  # whose reason gives the counts
            sentences.append(agree if len(counts) == 1 else differ)
        sentences += _undecided(finding)
    if one_rule:
        unstated = "" if finding.readings else "; the paper states none"
        sentences.append(f"FLANP is run with a single rule for its stages{unstated}.")
    if bounded:
        sentences.append(
            "DelayHetSampling is run with B_p < 1 for every distribution, which is stricter than "
            "the paper's Assumption 3."
        )
    everything = table.groupby("sampler")["all"].mean().reindex(SEVEN).dropna()
    if np.isfinite(everything.get("random", np.inf)):
        first = str(everything.drop("random").idxmin())
        sentences.append(
            "If the seconds of warm-up rounds and of candidates' losses count as well, random "
            f"takes {in_seconds(everything['random'])}, and {LINES[first].label}, the fastest of "
            f"the others, {in_seconds(everything[first])}."
        )
    return " ".join(sentences)


def _undecided(finding: Finding) -> Iterator[str]:
    """Explain an undecided verdict where all combinations that decide agree."""
    decided = {reading.verdict for reading in finding.readings} - UNDECIDED
    if finding.verdict in UNDECIDED and len(decided) == 1:
        yield (
            f"The verdict is not “{decided.pop()}”, because our main combination is undecided, and "
            f"not “{DEPENDS}”, because all combinations that decide agree."
        )


def _near_tie(spec: ClaimSpec, paper: Paper, row: str) -> str:
    """Say if the paper's own table hardly separates the sampler that the claim names first."""
    reported = {name: cell.number for name, cell in printed(paper, spec.artefact)[row].items()}
    best = min(reported, key=lambda name: reported[name])
    rivals = {name: n for name, n in reported.items() if name not in {*PROPOSED, best}}
    rival = min(rivals, key=lambda name: rivals[name])
    times = rivals[rival] / reported[best]
    if times > NEAR_TIE:
        return ""
    return (
        f" In the paper, too, {LINES[rival].label} takes only {times:.3g} times the seconds of "
        f"{LINES[best].label}."
    )


def row_of(spec: ClaimSpec) -> tuple[str, Callable[..., pd.DataFrame]]:
    """Return the experiment of a claim's row, and the function that pairs its runs."""
    experiment = spec.experiments[0]
    if experiment == "quadratic_problems":
        return "quadratic", by_problem
    return experiment, runtimes


def who_is_first(
    table: pd.DataFrame,
    spec: ClaimSpec,
    paper: Paper,
    experiment: str,
    allowed: frozenset[str] | None = None,
) -> Finding:
    """Judge the row of an experiment.

    The size of the effect counts only if the paper's factor exceeds the margin; otherwise the
    margin around it includes 1, no effect.

    Parameters
    ----------
    table : DataFrame
        One case of :func:`runtimes`.
    allowed : set of str, optional
        Samplers that may be first; by default the proposed samplers and the paper's fastest.
    """
    seconds = {str(name): float(part["counted"].mean()) for name, part in table.groupby("sampler")}
    means = {name: seconds[name] for name in SEVEN if name in seconds}
    if not np.isfinite(min(means.values(), default=np.inf)):
        goal = target(paper, experiment)
        return Finding("inconclusive", f"no sampler reaches {goal:g}", "Nothing to compare.")
    reported = {
        name: cell.number for name, cell in printed(paper, spec.artefact)[experiment].items()
    }
    their_first = min(reported, key=lambda name: reported[name])
    factor = reported["random"] / reported[their_first]
    result = order(table, allowed or {*PROPOSED, their_first})
    earliest = min(means, key=lambda name: means[name])
    shown = dict.fromkeys((*PROPOSED, "random", "flanp", earliest))
    listed_seconds = "; ".join(
        f"{LINES[name].label} {mean_in_seconds(table.loc[table['sampler'] == name, 'counted'])}"
        for name in shown
        if name in means
    )
    parts: dict[str, Part] = {"who is first": result.part}
    size, drawn = "", intervals({}, "")
    if result.gain is not None and result.best is not None:
        least = "" if np.isfinite(means["random"]) else "at least "
        size = f"; random over {LINES[result.best].label} {least}{with_interval(result.gain)}"
        sized = factor > spec.margin
        drawn = intervals(
            {f"random over {LINES[result.best].label}": result.gain},
            "times",
            least=factor / spec.margin if sized else None,
            most=factor * spec.margin if sized else None,
            paper=factor,
        )
    gain = result.gain.value if result.gain is not None else np.nan
    if factor > spec.margin and result.part != "open":
        near = factor / spec.margin <= gain <= factor * spec.margin
        parts["by how much"] = stated(bool(near))
    if result.best is not None:
        lines = {
            name: LINES[name].label + ("" if np.isfinite(means[name]) else ", cut off")
            for name in result.against
        }
        drawn += intervals(
            {lines[name]: times for name, times in result.against.items()},
            f"times {LINES[result.best].label}'s seconds{JOINT}",
            least=1,
            effects={  # leads of the paper's own fastest sampler
                lines[name]: reported[name] / reported[their_first]
                for name in result.against
                if np.isfinite(reported.get(name, np.inf))
            },
        )
    rivals = [LINES[n].label for n, times in result.against.items() if not times.low > 1]
    best = LINES[result.best].label if result.best else ""
    return verdict(
        parts,
        listed_seconds + size,
        {
            "reproduced": "A sampler that the claim names is significantly fastest (Holm-corrected)"
            + (", by about as much as in the paper." if len(parts) > 1 else "."),
            "partly reproduced": f"{best} is significantly fastest, as claimed, but by a factor "
            f"of {gain:.3g} over random selection, not {factor:.3g}."
            if result.part == "holds"
            else f"{LINES[earliest].label} is faster than each sampler that the claim names, but "
            "random selection's factor is about the paper's.",
            "contradicted": f"{LINES[earliest].label} is faster than each sampler that the claim "
            "names.",
            "inconclusive": f"{best}, the fastest sampler that the claim names, is not "
            f"distinguishable from {listed(rivals)}."
            if rivals
            else "No sampler that the claim names reaches the target in every run.",
        },
        contrary_decides=False,
        drawn=drawn,
    )


c1 = c2 = c3 = c4 = c5 = c6 = c7 = c8 = c9 = first  # Table 1
c10 = c11 = c12 = c13 = c14 = c15 = c16 = c17 = c18 = first  # Table 2
