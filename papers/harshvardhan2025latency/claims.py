"""Claims c1 to c18 of harshvardhan2025latency: who is first in the rows of Tables 1 and 2.

Judged by the rules in its ``paper.yaml``; ``claims_trends.py`` has the other claims.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fedsampling.base.records import check
from fedsampling.base.text import listed
from fedsampling.evidence.verdicts import (
    DEPENDS,
    JOINT,
    UNDECIDED,
    Finding,
    Interval,
    Part,
    Verdict,
    intervals,
    over_choices,
    stated,
    verdict,
)
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries
from fedsampling.samplers.flanp import Flanp

from .runtimes import (
    CASES,
    LINES,
    PROPOSED,
    SEVEN,
    PrintedRow,
    Ranking,
    bound_in_words,
    by_problem,
    mean_in_seconds,
    printed_row,
    ranking,
    reading_in_words,
    readings,
    runtimes,
    target,
    with_interval,
)

SIZE = "size of its gain over random"
UNSTATED = "The paper states neither FLANP's stages nor DelayHetSampling's bound and iterations."


def row_finding(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge who is first in a row of Tables 1 and 2, and how far ahead of random selection.

    The claim's first experiment is the row.  Its other experiments vary the stages of FLANP, or the
    bound and iterations of DelayHetSampling; the claim is then judged over all combinations.  It
    holds if the fastest sampler is the paper's fastest, or one of the two that the paper proposes.
    Until all runs of its open choices are finished, it is inconclusive.  It also is if only one
    reading of a sampler was run and the verdict changes without this sampler, because the stages of
    FLANP and the bound in DelayHetSampling change the verdict of another row (c4).
    """
    combinations = row_readings(summaries, spec, paper)
    findings = {
        labels: reading_finding(table, spec, paper) for labels, table in combinations.items()
    }
    main = next(iter(findings))
    finding = findings[main]
    caveat = UNSTATED
    if len(findings) == 1:
        settings = summaries[spec.experiments[0]].settings["samplers"]["sampling"]
        caveat += f" We run one combination, with {bound_in_words(settings)}."
    else:
        samplers: dict[str, Mapping[str, Any]] = {}
        for name in _row_experiments(summaries, spec):
            samplers |= summaries[name].settings["samplers"]
        words = {labels: settings_in_words(labels, samplers) for labels in findings}
        finding = over_choices(
            {words[labels]: reading for labels, reading in findings.items()}, words[main]
        )
        if finding.verdict != DEPENDS:  # whose reason counts the verdicts
            agree = [reading.verdict for reading in findings.values()].count(findings[main].verdict)
            caveat += (
                f" {agree} of the {len(findings)} combinations that were run give the same verdict."
            )
    open_because = ""
    if spec.open_choices and any(name in paper.left_out for name in _variants(spec)):
        open_because = "The runs of its open choices are not finished."
    elif finding.verdict != DEPENDS and (
        unvaried := _unvaried(combinations, findings[main].verdict, spec, paper)
    ):
        open_because = (
            f"{finding.reason} But without {listed(unvaried)} the verdict changes, only one "
            "reading of it was run, and another reading decides c4."
        )
    if open_because:
        finding = replace(finding, verdict="inconclusive", reason=open_because)
    clocks = (
        "The seconds leave out warm-up rounds and candidates' losses; "
        f"`{spec.artefact}` has both clocks."
    )
    return replace(finding, caveat=f"{caveat} {clocks}")


def _unvaried(
    combinations: Mapping[tuple[str, str], pd.DataFrame],
    judged: Verdict,
    spec: ClaimSpec,
    paper: Paper,
) -> list[str]:
    """Name the samplers with a single reading without which the verdict would be another."""
    table = next(iter(combinations.values()))
    names = []
    for position, name in enumerate(("flanp", "sampling")):
        without = table[table["sampler"] != name]
        if (
            len({labels[position] for labels in combinations}) == 1
            and judged not in UNDECIDED
            and reading_finding(without, spec, paper).verdict != judged
        ):
            names.append(LINES[name].label)
    return names


def settings_in_words(labels: tuple[str, str], samplers: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the settings of FLANP and of DelayHetSampling, from their labels."""
    flanp, sampling = (samplers[label] for label in labels)
    stages = check(Flanp, dict(flanp), "")
    rule = {
        "gradient": f"stages end at {stages.accuracy:g} of the first squared norm",
        "statistical": "stages end by the statistical rule",
        "rounds": f"{stages.rounds} round per stage",
    }[stages.stop]
    return (
        f"FLANP: {stages.first} clients first; {rule}, "
        f"DelayHetSampling: {reading_in_words(sampling)}"
    )


def row_readings(
    summaries: Summaries, spec: ClaimSpec, paper: Paper
) -> dict[tuple[str, str], pd.DataFrame]:
    """Return a row's runtimes in each of :func:`.runtimes.readings`, the main first."""
    row, paired_runtimes = row_of(spec)
    case = CASES[spec.artefact]
    names = _row_experiments(summaries, spec)
    tables = [paired_runtimes(summaries[name], target(paper, row, summaries)) for name in names]
    of_case = [runs for table in tables if len(runs := table[table["case"] == case])]
    return readings(*of_case) if of_case else {}


def _row_experiments(summaries: Summaries, spec: ClaimSpec) -> list[str]:
    names = (*spec.experiments, *_variants(spec))
    return [name for name in dict.fromkeys(names) if name in summaries]


def _variants(spec: ClaimSpec) -> list[str]:
    """Name the experiments that repeat a row with other settings of DelayHetSampling or FLANP."""
    row, _ = row_of(spec)
    cases = ("", "_nycmesh") if CASES[spec.artefact] == "nycmesh" else ("",)
    return [f"{row}_{varied}{case}" for varied in ("sampling", "flanp") for case in cases]


def printed_of(spec: ClaimSpec, paper: Paper) -> PrintedRow:
    """Return a claim's row of the paper's Table 1 or 2."""
    return printed_row(paper, spec.artefact, row_of(spec)[0])


def row_of(spec: ClaimSpec) -> tuple[str, Callable[..., pd.DataFrame]]:
    """Return a claim's row, a key of :data:`.runtimes.DATA`, and the function that pairs runs."""
    experiment = spec.experiments[0]
    if experiment == "quadratic_problems":
        return "quadratic", by_problem
    return experiment.removesuffix("_nycmesh"), runtimes


def reading_finding(
    table: pd.DataFrame,
    spec: ClaimSpec,
    paper: Paper,
    may_be_first: frozenset[str] | None = None,
) -> Finding:
    """Judge a row with one reading of FLANP and of DelayHetSampling.

    The size of the effect counts only if the paper's factor exceeds the margin; otherwise the
    margin around it includes 1, no effect. By default the proposed samplers and the paper's fastest
    may be first.
    """
    means = table.groupby("sampler")["counted"].mean().reindex(SEVEN).dropna()
    if not np.isfinite(means.min()):
        return Finding("inconclusive", "no sampler reaches the target", "Nothing to compare.")
    theirs = printed_of(spec, paper)
    ours = ranking(table, may_be_first or {*PROPOSED, theirs.fastest})
    factor = theirs.over_fastest("random")
    size_counts = factor > spec.margin
    first = f"{LINES[ours.best].label} first" if ours.best else "a named sampler first"
    parts: dict[str, Part] = {first: ours.is_first}
    if size_counts and ours.is_first != "open":
        least, most = factor / spec.margin, factor * spec.margin
        parts[SIZE] = stated(ours.gain is not None and least <= ours.gain.value <= most)
    earliest = str(means.idxmin())
    numbers = [
        f"{LINES[name].label} {mean_in_seconds(table.loc[table['sampler'] == name, 'counted'])}"
        for name in dict.fromkeys((*PROPOSED, "random", "flanp", earliest))
        if name in means
    ]
    if ours.best and ours.gain:
        bound = "" if np.isfinite(means["random"]) else "at least "
        numbers.append(f"random over {LINES[ours.best].label} {bound}{with_interval(ours.gain)}")
    cut_off = set(means.index[np.isinf(means)])
    return verdict(
        parts,
        "; ".join(numbers),
        _reasons(ours, earliest, factor, SIZE in parts),
        contrary_decides=False,
        drawn=_drawn(ours, theirs, cut_off, spec.margin),
    )


def _drawn(
    ours: Ranking, theirs: PrintedRow, cut_off: Collection[str], margin: float
) -> tuple[Interval, ...]:
    """Return the intervals of the gain over random selection, and of the lead over each sampler."""
    if ours.best is None:
        return ()
    best, factor = LINES[ours.best].label, theirs.over_fastest("random")
    size_counts = factor > margin
    gain = intervals(
        {f"random over {best}": ours.gain} if ours.gain else {},
        "times",
        least=factor / margin if size_counts else None,
        most=factor * margin if size_counts else None,
        paper=factor,
    )
    names = {
        name: LINES[name].label + (", cut off" if name in cut_off else "") for name in ours.leads
    }
    return gain + intervals(
        {names[name]: lead for name, lead in ours.leads.items()},
        f"times {best}'s seconds{JOINT}",
        least=1,
        effects={
            names[name]: theirs.over_fastest(name)
            for name in ours.leads
            if np.isfinite(theirs.numbers.get(name, np.inf))
        },
    )


def _reasons(
    ours: Ranking, earliest: str, factor: float, size_counts: bool
) -> Mapping[Verdict, str]:
    """Write a sentence for each verdict of :func:`reading_finding`.

    `earliest`: our fastest sampler, whether or not the claim names it. `factor`: random selection's
    seconds over the fastest sampler's, in the paper. `size_counts`: whether the verdict depends on
    this factor.
    """
    best = LINES[ours.best].label if ours.best else ""
    gain = ours.gain.value if ours.gain is not None else np.nan
    rivals = [LINES[name].label for name, lead in ours.leads.items() if not lead.low > 1]
    faster = f"{LINES[earliest].label} is faster than each sampler that the claim names"
    size = ", by about as much as in the paper" if size_counts else ""
    return {
        "reproduced": f"{best} is significantly fastest (Holm-corrected){size}.",
        "partly reproduced": f"{best} is significantly fastest, as claimed, but by a factor of "
        f"{gain:.3g} over random selection, not {factor:.3g}."
        if ours.is_first == "holds"
        else f"{faster}, but random selection's factor is about the paper's.",
        "contradicted": f"{faster}.",
        "inconclusive": f"We could not separate {best}, the fastest sampler that the claim names, "
        f"from {listed(rivals)}."
        if rivals
        else "No sampler that the claim names reaches the target in every run.",
    }


c1 = c2 = c3 = c4 = c5 = c6 = c7 = c8 = c9 = row_finding  # Table 1
c10 = c11 = c12 = c13 = c14 = c15 = c16 = c17 = c18 = row_finding  # Table 2
