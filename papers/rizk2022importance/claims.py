"""Claims of Rizk et al. 2022, judged by the rules in its ``paper.yaml``."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from fedsampling.base.text import listed, show
from fedsampling.evidence.rules import by_chance, equivalence, over_choices, stated, verdict
from fedsampling.evidence.statistics import Estimate, decibels, is_within, mean, show_estimate
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import Finding, Interval, Part, intervals
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .levels import (
    BALANCED,
    drift,
    error_levels,
    gap,
    gradient_deviations,
    steady,
    steady_levels,
    steady_since,
)
from .lines import STANDARD, TRACKED, TRUE
from .populations import population_in_words
from .steady_states import OURS, every_population, exact, exact_gap, standard_beside
from .theory import Recursion

GAP = "FedAvg over true"
# Other populations, until their curves are level, and further repetitions of some of them.
FEW_STEADY, FURTHER = "few_steady", "few_steady_more"
DISTANCES = {"agent": "agents", "data": "data"}
FLOOR = 0.495  # a classifier that ignores its input has a balanced error of one half


def c1(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge the exact steady-state gap in dB between standard FedAvg and the true probabilities."""
    reported, states = paper.reported("gap"), every_population(summaries)
    findings = {
        state.population: gap_finding(state.fedavg, state.true, spec, reported) for state in states
    }
    chosen, ours = states[0], findings[OURS]
    divided = exact_gap(exact((summaries["steady"], "fedavg", "base")), chosen.true)
    simulated = gap(*chosen.runs)
    drawn = {
        "the same, steps divided by E_k": _without_width(divided),
        f"{GAP}, simulated": simulated,
    }
    findings[OURS] = replace(
        ours,
        ours=f"{ours.ours} (simulated: {show_estimate(simulated, 'dB')}); FedAvg's steps divided "
        f"by E_k: {show(divided)} dB",
        drawn=ours.drawn + intervals(drawn, "dB", paper=reported, within=spec.margin),
    )
    unlimited = [finding for finding in findings.values() if finding.verdict == "not comparable"]
    caveat = (
        f"In {len(unlimited)} of {len(findings)} populations the true probabilities make rare "
        "steps so large that E‖w − w^o‖² grows without bound; our runs are too few to show it."
    )
    return replace(over_choices(findings, main=OURS), caveat=caveat if unlimited else "")


def gap_finding(fedavg: Recursion, true: Recursion, spec: ClaimSpec, reported: float) -> Finding:
    """Judge c1 by the exact gap in one population."""
    growth = max(fedavg.growth, true.growth)
    if growth >= 1:
        return Finding(
            "not comparable",
            f"no steady state: E‖w − w^o‖² grows by a factor of {show(growth)} per iteration",
            "There is no steady state.",
        )
    higher = exact_gap(fedavg, true)
    is_near = abs(higher - reported) <= spec.margin
    return verdict(
        {"the paper's gap": stated(is_near), "any gap": stated(is_near or higher > 0)},
        f"{GAP}: {show(higher)} dB",
        {
            "reproduced": "The gap lies within the margin.",
            "partly reproduced": f"ISFedAvg is lower, but not by {reported} dB in this population.",
            "contradicted": "ISFedAvg is not lower at steady state.",
        },
        contrary_decides=False,
        drawn=intervals({GAP: _without_width(higher)}, "dB", paper=reported, within=spec.margin),
    )


def _without_width(exact: float) -> Estimate:
    """Return an exact number as an estimate of no seeds."""
    return Estimate(exact, exact, exact, 0)


def _named(experiment: str, summary: Summary, case: str) -> str:
    """Name a population with the iterations of its runs."""
    rounds = float(summary.setting("rounds", case))
    return f"{population_in_words(experiment, summary, case)}; {rounds:,.0f} iterations"


def c2(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge the distances of the tracked probabilities at the end, in each population."""
    populations = {OURS: (summaries["longer"], "base"), **few_steady(summaries)}
    findings = {
        name: distances_finding(summary, case, spec, paper)
        for name, (summary, case) in populations.items()
    }
    return over_choices(findings, main=OURS)


def distances_finding(summary: Summary, case: str, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge both distances in one population."""
    agrees, halves, numbers = {}, {}, []
    drifts, margins = {}, {}
    drawn: tuple[Interval, ...] = ()
    for name, label in DISTANCES.items():
        metric = f"{name}_distance"
        end = mean(summary.per_seed(TRACKED, metric, case, since=summary.setting("rounds", case)))
        start = float(summary.select(TRACKED, metric, case, since=0, until=0)["value"].mean())
        reference = paper.reported(metric)
        margins[name] = spec.margin * reference
        drifts[name] = drift(summary, TRACKED, case, metric)
        agrees[label] = is_within(end, reference, margins[name])
        halves[label] = end.value <= start / 2
        numbers.append(f"{label} {show_estimate(end)} from {show(start)}")
        drawn += intervals(
            {f"{name}: distance": end}, "distance", paper=reference, within=margins[name]
        )
    agreeing = listed([label for label in agrees if agrees[label]])
    not_halving = listed([label for label in halves if not halves[label]])
    finding = verdict(
        {
            "both distances": stated(all(agrees.values())),
            "their decrease": stated(all(agrees.values()) or all(halves.values())),
        },
        "; ".join(numbers),
        {
            "reproduced": "Both intervals lie within the margin of the paper's values.",
            "partly reproduced": "Both distances at least halve, but "
            + (f"only that of the {agreeing} agrees" if agreeing else "neither agrees")
            + " with the paper's.",
            "contradicted": f"The distance does not halve from the uniform start: {not_halving}.",
        },
        contrary_decides=False,
        drawn=drawn,
    )
    return _open_unless_steady(finding, drifts, margins, "")


def c4(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether tracked and true probabilities are equivalent at steady state.

    The main reading is the population of the paper's file, the others those of `few_steady`, with
    the further repetitions of `few_steady_more`.
    """
    summary = summaries["steady"]
    standard, fedavg, tracked, true = (
        (summaries["steady_standard"], STANDARD, "base"),
        *((summary, name, "base") for name in ("fedavg", TRACKED, TRUE)),
    )
    higher, below = gap(tracked, true), gap(standard, tracked)
    fraction = below.value / (below.value + higher.value)
    main = equivalence_finding(summary, "base", spec.margin)
    main = replace(
        main,
        ours=f"{main.ours}; FedAvg over tracked: {show_estimate(below, 'dB')}, "
        f"{show_estimate(gap(fedavg, tracked), 'dB')} with its steps divided by E_k",
    )
    if main.verdict == "contradicted":
        why = (
            f"{main.reason} The tracked probabilities keep {100 * fraction:.0f} % of the gain over "
            "FedAvg in dB: much better than FedAvg, but short of the true probabilities."
        )
        main = replace(main, reason=why)
    findings, near = {OURS: main}, []
    reported, width = paper.reported("gap"), paper.claims["c1"].margin
    for name, (further, case) in few_steady(summaries).items():
        finding = equivalence_finding(further, case, spec.margin)
        there = further, TRUE, case
        exactly = exact_gap(standard_beside(there), exact(there))
        ours = f"{finding.ours}; exact gap of FedAvg over true: {show(exactly)} dB"
        findings[name] = replace(finding, ours=ours)
        if abs(exactly - reported) <= width:
            near.append(finding.verdict)
    caveat = (
        f"The margin of {spec.margin:g} dB is ours: “just as well” has no number in the paper. Our "
        f"numbers are from a population in which the true probabilities gain "
        f"{show(below.value + higher.value)} dB over FedAvg; in the paper's they gain "
        f"{reported:g} dB."
    )
    if near:
        caveat += (
            f" In {len(near)} of the {len(findings) - 1} other populations they gain this within "
            f"{width:g} dB; the verdict there is {listed(list(dict.fromkeys(near)))}."
        )
    return replace(over_choices(findings, main=OURS), caveat=caveat)


def few_steady(summaries: Summaries) -> dict[str, tuple[Summary, str]]:
    """Return the runs and the case of each further population at steady state, by its name.

    Joins both experiments; empty if they were not run.
    """
    if FEW_STEADY not in summaries:
        return {}
    parts = [summaries[name].rows for name in (FEW_STEADY, FURTHER) if name in summaries]
    rows = pd.concat(parts, ignore_index=True)
    # Overridden seeds may occur in both.
    rows = rows.drop_duplicates(["case", "sampler", "seed", "at", "metric"], ignore_index=True)
    further = replace(summaries[FEW_STEADY], rows=rows)
    return {
        _named(FEW_STEADY, further, case): (further, case) for case in further.settings["cases"]
    }


def equivalence_finding(summary: Summary, case: str, margin: float) -> Finding:
    """Judge in one population whether tracked and true probabilities are equivalent."""
    tracked, true = (summary, TRACKED, case), (summary, TRUE, case)
    name = "tracked over true"
    finding = equivalence(
        {name: steady_levels(tracked, true)},
        margin,
        "dB",
        decibels,
        why={
            "reproduced": "Equivalent within the margin (90 % interval).",
            "contradicted": f"The 95 % interval lies outside of the margin of {margin:g} dB.",
            "inconclusive": "The interval crosses the margin.",
        },
    )
    finding = replace(finding, ours=f"{name}: {show_estimate(gap(tracked, true), 'dB')}")
    drifts = {"tracked": drift(*tracked), "true": drift(*true)}
    return _open_unless_steady(finding, drifts, dict.fromkeys(drifts, margin), "dB")


def c5(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge the testing errors of FedAvg and ISFedAvg over the last fifth."""
    summary = summaries["classification"]
    finding = errors_finding(summary, "base", spec, paper)
    caveat = ""
    if BALANCED in summary.settings["cases"]:
        balanced = errors_in_words(summary, BALANCED)
        finding = replace(
            finding, ours=f"{finding.ours}. half of the training samples positive: {balanced}"
        )
        _, tracked, gain = error_levels(summary, BALANCED)
        if gain.low <= 0 <= gain.high:
            caveat = (
                "With half of the training samples positive, neither algorithm does so, and "
                f"ISFedAvg's error of {show(tracked.value)} % is not significantly lower than "
                "FedAvg's."
            )
    since = steady_since(summary)
    balanced_errors = (
        float(summary.per_seed(name, "balanced_error", since=since).mean())
        for name in ("fedavg", TRACKED)
    )
    if finding.verdict == "reproduced" or min(balanced_errors) <= FLOOR:
        return finding
    why = (
        "Both algorithms always answer “negative”, so their error is the share of positive test "
        "samples and their difference carries no information."
    )
    return replace(finding, verdict="not comparable", reason=why, caveat=caveat)


def errors_finding(summary: Summary, case: str, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge the testing errors of a case, whether or not both algorithms ignore their input."""
    *levels, lower = error_levels(summary, case)
    drawn = intervals({"FedAvg − ISFedAvg": lower}, "points", least=0)
    are_near = True
    for error, label in zip(levels, ("FedAvg", "ISFedAvg"), strict=True):
        reported = paper.reported(f"error_{label.lower()}")
        are_near &= is_within(error, reported, spec.margin)
        drawn += intervals({label: error}, "% errors", paper=reported, within=spec.margin)
    return verdict(
        {"the paper's errors": stated(are_near), "less": stated(are_near or lower.low > 0)},
        errors_in_words(summary, case),
        {
            "reproduced": "Both errors lie within the margin of the paper's.",
            "partly reproduced": "ISFedAvg errs less, but both errors are not the paper's.",
            "contradicted": "ISFedAvg does not err less than FedAvg on the published data.",
        },
        contrary_decides=False,
        drawn=drawn,
    )


def errors_in_words(summary: Summary, case: str) -> str:
    """Write both algorithms' testing errors and their difference."""
    fedavg, tracked, lower = error_levels(summary, case)
    return (
        f"{show_estimate(fedavg, '%')} to {show_estimate(tracked, '%')}; "
        f"improvement {show_estimate(lower, 'points')}"
    )


def c6(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge Lemma 1: the estimate's mean is the exact gradient."""
    data = gradient_deviations(summaries["gradient"])
    largest = float(data["largest_z"].max(skipna=False))
    return by_chance(largest, int(data["coordinates"].sum()), "coordinates", spec.margin)


def _open_unless_steady(
    finding: Finding, drifts: Mapping[str, Estimate], margins: Mapping[str, float], unit: str
) -> Finding:
    """Return the finding; undecided, with the drifts, if a curve that it uses is not steady."""
    unsteady = [
        f"{name} {show_estimate(move, unit)}"
        for name, move in drifts.items()
        if steady(move, margins[name]) != "holds"
    ]
    if not unsteady:
        return finding
    why = f"Not at a steady state; over the last third of the iterations: {'; '.join(unsteady)}."
    parts: dict[str, Part] = dict.fromkeys(finding.parts, "open")
    return replace(finding, verdict="inconclusive", reason=why, parts=parts)
