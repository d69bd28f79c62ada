"""Claims c1 to c18 of harshvardhan2025latency: who is first in the rows of Tables 1 and 2.

Judged by the rules in its ``paper.yaml``. The other claims are in ``claims_random.py``,
``claims_trends.py``, ``claims_clients.py``, ``claims_overhead.py`` and ``claims_text.py``.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pandas as pd

from fedsampling.base.text import listed, show
from fedsampling.evidence.rules import JOINT, TIE, in_range, over_choices, verdict
from fedsampling.evidence.verdicts import DEPENDS, Finding, Interval, Part, Verdict, intervals
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .printed_tables import CASES, LINES, PROPOSED, SEVEN, PrintedRow, printed_row
from .row_ranking import Ranking, ranking
from .run_settings import bound_in_words, reading_in_words, stages_in_words
from .time_to_target import by_problem, mean_in_seconds, readings, runtimes, target, with_interval

# The parts of a claim.
FASTER, NO_SLOWER = "proposed faster than random", "proposed no slower than random"
SIZE, FIRST = "size of the gain over random", "a named sampler first"
UNSTATED = "The paper states neither FLANP's stages nor DelayHetSampling's bound and iterations."


def row_finding(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge a row of Tables 1 and 2 in parts: order, size of the gain, and who is first.

    The claim's first experiment is the row.  Its other experiments vary the stages of FLANP, or the
    bound and iterations of DelayHetSampling; the claim is then judged over all combinations.
    Until all runs of its open choices are finished, who is first is open.  It also is if only one
    reading of a sampler was run and the answer changes without this sampler, because the stages of
    FLANP change who is first in another row (c4).
    """
    combinations = row_readings(summaries, spec, paper)
    if not combinations:
        return Finding("not run", "–", "Not run: the row's delays or samplers are left out.")
    findings = {
        labels: reading_finding(table, spec, paper) for labels, table in combinations.items()
    }
    main = next(iter(findings))
    if open_because := _open_because(combinations, findings[main], spec, paper):
        findings = {
            labels: _with_first_open(reading, open_because) for labels, reading in findings.items()
        }
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
    clocks = (
        "The seconds leave out warm-up rounds and candidates' losses; "
        f"`{spec.artefact}` has both clocks."
    )
    return replace(finding, caveat=f"{caveat} {clocks}")


def _with_first_open(finding: Finding, why: str) -> Finding:
    """Return a finding in which who is first is open, for a reason."""
    if FIRST not in finding.parts:
        return finding
    parts = {**finding.parts, FIRST: "open"}
    reasons = dict.fromkeys(get_args(Verdict), f"{finding.reason} {why}")
    return verdict(parts, finding.ours, reasons, contrary_decides=False, drawn=finding.drawn)


def _open_because(
    combinations: Mapping[tuple[str, str], pd.DataFrame],
    finding: Finding,
    spec: ClaimSpec,
    paper: Paper,
) -> str:
    """Explain why readings that were not run leave open who is first; empty if they do not.

    `finding`: that of the main reading, the first of the combinations.
    """
    if spec.open_choices and any(name in paper.left_out for name in spec.variants):
        return "The runs of its open choices are not finished."
    first = finding.parts.get(FIRST, "open")
    table = next(iter(combinations.values()))
    unvaried = [
        LINES[name].label
        for position, name in enumerate(("flanp", "sampling"))
        if len({labels[position] for labels in combinations}) == 1
        and first != "open"
        and reading_finding(table[table["sampler"] != name], spec, paper).parts.get(FIRST) != first
    ]
    if not unvaried:
        return ""
    return (
        f"But without {listed(unvaried)} the answer changes, only one reading of it was run, and "
        "another reading decides c4."
    )


def settings_in_words(labels: tuple[str, str], samplers: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the settings of FLANP and of DelayHetSampling, from their labels."""
    flanp, sampling = (samplers[label] for label in labels)
    return f"FLANP: {stages_in_words(flanp)}, DelayHetSampling: {reading_in_words(sampling)}"


def row_readings(
    summaries: Summaries, spec: ClaimSpec, paper: Paper
) -> dict[tuple[str, str], pd.DataFrame]:
    """Return a row's runtimes in each of :func:`.time_to_target.readings`, the main first."""
    row, paired_runtimes = row_of(spec)
    case = CASES[spec.artefact]
    names = _row_experiments(summaries, spec)
    tables = [paired_runtimes(summaries[name], target(paper, row, summaries)) for name in names]
    of_case = [runs for table in tables if len(runs := table[table["case"] == case])]
    return readings(*of_case) if of_case else {}


def _row_experiments(summaries: Summaries, spec: ClaimSpec) -> list[str]:
    names = (*spec.experiments, *spec.variants)
    return [name for name in dict.fromkeys(names) if name in summaries]


def printed_of(spec: ClaimSpec, paper: Paper) -> PrintedRow:
    """Return a claim's row of the paper's Table 1 or 2."""
    return printed_row(paper, spec.artefact, row_of(spec)[0])


def row_of(spec: ClaimSpec) -> tuple[str, Callable[..., pd.DataFrame]]:
    """Return a claim's row, as in :data:`.printed_tables.DATA`, and what pairs its runs."""
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

    It has three parts: whether a proposed sampler is faster than random selection, or no slower if
    the paper's are as fast; the size of the fastest sampler's gain over random selection, if the
    paper's factor exceeds the margin (otherwise the margin around it includes 1, no effect); and
    who is first. By default the proposed samplers and the paper's fastest may be first.
    """
    means = table.groupby("sampler")["counted"].mean().reindex(SEVEN).dropna()
    if not np.isfinite(means.min()):
        return Finding("inconclusive", "no sampler reaches the target", "Nothing to compare.")
    theirs = printed_of(spec, paper)
    ours = ranking(table, may_be_first or {*PROPOSED, theirs.fastest})
    factor = theirs.over_fastest("random")
    size_counts = factor > spec.margin
    is_cut_off = not np.isfinite(means.get("random", np.inf))
    parts: dict[str, Part] = {}
    if factor > 1 + TIE:
        parts[FASTER] = ours.beats_random
    else:
        parts[NO_SLOWER] = "holds" if ours.beats_random == "tie" else ours.beats_random
    if size_counts:
        least, most = factor / spec.margin, factor * spec.margin
        parts[SIZE] = in_range(ours.gain, least, most, is_cut_off) if ours.gain else "open"
    parts[FIRST] = ours.is_first
    earliest = str(means.idxmin())
    numbers = [
        f"{LINES[name].label} {mean_in_seconds(table.loc[table['sampler'] == name, 'counted'])}"
        for name in dict.fromkeys((*PROPOSED, "random", "flanp", earliest))
        if name in means
    ]
    if ours.best and ours.gain:
        gain = f"> {show(ours.gain.value)}, cut off" if is_cut_off else with_interval(ours.gain)
        numbers.append(f"random over {LINES[ours.best].label} {gain}")
    cut_off = set(means.index[np.isinf(means)])
    return verdict(
        parts,
        "; ".join(numbers),
        _reasons(ours, earliest, factor, parts),
        contrary_decides=False,
        drawn=_drawn(ours, theirs, cut_off, spec.margin),
    )


def _drawn(
    ours: Ranking, theirs: PrintedRow, cut_off: Collection[str], margin: float
) -> tuple[Interval, ...]:
    """Return the intervals that decide: of the gain over random selection, and of the leads."""
    drawn: tuple[Interval, ...] = ()
    factor = theirs.over_fastest("random")
    size_counts = factor > margin
    if ours.best and ours.gain and "random" not in cut_off:
        drawn += intervals(
            {f"random over {LINES[ours.best].label}": ours.gain},
            "times",
            least=factor / margin if size_counts else None,
            most=factor * margin if size_counts else None,
            paper=factor,
            part=SIZE if size_counts else "",
        )
    # A ratio of two bounds says nothing.
    over = {
        name: lead
        for name, lead in ours.over_proposed.items()
        if not {name, "random"} <= set(cut_off)
    }
    drawn += intervals(
        {LINES[name].label: lead for name, lead in over.items()},
        f"times, random selection's seconds over{JOINT}",
        least=1,
        part=FASTER if factor > 1 + TIE else NO_SLOWER,
        bounds={
            LINES[name].label: "<" if name in cut_off else ">"
            for name in over
            if not {name, "random"}.isdisjoint(cut_off)
        },
    )
    if ours.leader is None:
        return drawn
    printed_leads = {
        LINES[name].label: theirs.over_fastest(name)
        for name in ours.leads
        if ours.leader == ours.best and np.isfinite(theirs.numbers.get(name, np.inf))
    }
    return drawn + intervals(
        {LINES[name].label: lead for name, lead in ours.leads.items()},
        f"times {LINES[ours.leader].label}'s seconds{JOINT}",
        least=1,
        effects=printed_leads,
        bounds={LINES[name].label: ">" for name in ours.leads if name in cut_off},
        part=FIRST,
    )


def _reasons(
    ours: Ranking, earliest: str, factor: float, parts: Mapping[str, Part]
) -> Mapping[Verdict, str]:
    """Write a sentence for each verdict of :func:`reading_finding`.

    `earliest`: our fastest sampler, whether or not the claim names it. `factor`: random selection's
    seconds over the fastest sampler's, in the paper.
    """
    best = LINES[ours.best].label if ours.best else "a sampler that the claim names"
    rivals = [
        LINES[name].label
        for name, lead in ours.leads.items()
        if ours.leader == ours.best and not lead.low > 1
    ]
    first = {
        "holds": f"{best} is significantly fastest (Holm-corrected)",
        "fails": f"{LINES[earliest].label} is faster than each sampler that the claim names",
        "tie": f"{best} and the fastest other sampler take equally long, within {100 * TIE:g} %",
        "open": f"we could not separate {best}, the fastest sampler that the claim names, from "
        f"{listed(rivals)}"
        if rivals
        else "no sampler that the claim names reaches the target in every run",
    }[parts[FIRST]]
    over_random = {
        "holds": "a proposed sampler is faster than random selection",
        "fails": "random selection is faster than both proposed samplers",
        "tie": f"the faster proposed sampler and random selection tie, within {100 * TIE:g} %",
        "open": "whether a proposed sampler is faster than random selection is undecided",
    }[ours.beats_random]
    size = {
        "holds": "random selection's factor is about the paper's",
        "fails": f"random selection's factor is not the paper's {factor:.3g}",
        "open": f"whether random selection's factor is about the paper's {factor:.3g} is undecided",
    }.get(parts.get(SIZE, ""), "")
    sentence = "; ".join(filter(None, (first, over_random, size)))
    return dict.fromkeys(get_args(Verdict), f"{sentence[:1].upper()}{sentence[1:]}.")


c1 = c2 = c3 = c4 = c5 = c6 = c7 = c8 = c9 = row_finding  # Table 1
c10 = c11 = c12 = c13 = c14 = c15 = c16 = c17 = c18 = row_finding  # Table 2
