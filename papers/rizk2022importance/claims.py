"""Claims of Rizk et al. 2022, judged by the rules in its ``paper.yaml``."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from fedsampling.base.text import listed, show
from fedsampling.evidence.statistics import Estimate, decibels, is_within, mean, show_estimate
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import (
    JOINT,
    Finding,
    Interval,
    by_chance,
    equivalence,
    intervals,
    over_choices,
    stated,
    verdict,
)
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .measures import (
    BALANCED,
    BASELINE_NAMES,
    CELL,
    STANDARD,
    TRACKED,
    TRUE,
    WINDOWS,
    Run,
    drift,
    error_levels,
    fastest,
    gap,
    gradient_deviations,
    population_in_words,
    sensitivity_populations,
    steady,
    steady_levels,
    steady_since,
)

OURS = "the chosen population"
# Other populations, until their curves are level, and further repetitions of some of them.
FEW_STEADY, FURTHER, FEW_STANDARD = "few_steady", "few_steady_more", "few_steady_standard"
DISTANCES = {"agent": "agents", "data": "data"}
FLOOR = 0.495  # a classifier that ignores its input has a balanced error of one half
# c3 is decided if more than this fraction of the cells agree, and at most that fraction oppose.
MIN_AGREEING, MAX_OPPOSING = 0.5, 0.05


def c1(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge the steady-state gap in dB between standard FedAvg and the true probabilities."""
    summary, reported = summaries["steady"], paper.reported("gap")

    def finding_of(panel: Summary, fedavg: Run) -> Finding:
        # Intervals over few seeds exceed the margin, so elsewhere only the mean is compared.
        true = panel, TRUE, fedavg[2]
        return gap_finding(fedavg, true, spec, reported, by_mean=panel is not summary)

    ours = finding_of(summary, (summaries["steady_standard"], STANDARD, "base"))
    corrected = gap((summary, "fedavg", "base"), (summary, TRUE, "base"))
    ours = replace(
        ours,
        ours=f"{ours.ours}; FedAvg's steps divided by E_k: {show_estimate(corrected, 'dB')}",
        drawn=ours.drawn
        + intervals(
            {"the same, steps divided by E_k": corrected}, "dB", paper=reported, within=spec.margin
        ),
    )
    if ours.verdict == "inconclusive":
        return ours
    findings = {OURS: ours}
    if FEW_STANDARD in summaries:
        for name, (panel, case) in few_steady(summaries).items():
            findings[name] = finding_of(panel, (summaries[FEW_STANDARD], STANDARD, case))
    early = {
        _named(experiment, panel, standard[2]): finding_of(panel, standard)
        for experiment, panel, standard in sensitivity_populations(summaries)
    }
    finding = over_choices({**findings, **early}, main=OURS)
    return replace(finding, caveat=_unsteady_populations(early))


def gap_finding(
    fedavg: Run, true: Run, spec: ClaimSpec, reported: float, by_mean: bool = False
) -> Finding:
    """Judge c1 in one population: by the interval of the gap, or by its mean alone."""
    estimate = gap(fedavg, true)
    is_near = is_within(estimate, reported, spec.margin)
    if by_mean:
        is_near = abs(estimate.value - reported) <= spec.margin
    finding = verdict(
        {"the paper's gap": stated(is_near), "any gap": stated(is_near or estimate.low > 0)},
        show_estimate(estimate, "dB"),
        {
            "reproduced": "The interval of the gap lies within the margin.",
            "partly reproduced": f"ISFedAvg is lower, but not by {reported} dB in this population.",
            "contradicted": "ISFedAvg is not lower at steady state.",
        },
        contrary_decides=False,
        drawn=intervals({"FedAvg over true": estimate}, "dB", paper=reported, within=spec.margin),
    )
    drifts = {"FedAvg": drift(*fedavg), "true": drift(*true)}
    return _open_unless_steady(finding, drifts, dict.fromkeys(drifts, spec.margin), "dB")


def _named(experiment: str, summary: Summary, case: str) -> str:
    """Name a population with the iterations of its runs."""
    rounds = float(summary.setting("rounds", case))
    return f"{population_in_words(experiment, summary, case)}; {rounds:,.0f} iterations"


def _unsteady_populations(findings: Mapping[str, Finding]) -> str:
    """Write the gaps of the populations whose runs end before the steady state; empty if none."""
    gaps = [
        finding.drawn[0].value
        for finding in findings.values()
        if finding.verdict == "inconclusive" and finding.drawn
    ]
    if not gaps:
        return ""
    return (
        f"In {len(gaps)} of the populations the runs are too short for the test of steadiness; "
        f"their gaps are {show(min(gaps))} to {show(max(gaps))} dB."
    )


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


def c3(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge over baselines and populations which sampler's MSD falls fastest."""
    compared = fastest(summaries)
    findings: dict[str, Finding] = {}
    ours: list[str] = []
    drawn: tuple[Interval, ...] = ()
    for (baseline, window), rows in compared.groupby(["baseline", "window"], sort=False):
        chosen: Any = rows[rows["experiment"] == "regression"].itertuples()
        leads = {row.other: Estimate(row.higher_db, row.low, row.high, row.seeds) for row in chosen}
        names = {f"{rival} above (49)–(50), FedAvg {baseline}": leads[rival] for rival in leads}
        shown = intervals(names, f"dB{JOINT}", least=spec.margin)
        finding = share_finding(rows.drop_duplicates(CELL)["part"])
        findings[f"FedAvg {baseline}, while {window}"] = replace(finding, drawn=shown)
        if window == WINDOWS[0]:
            texts = (f"{rival} {show_estimate(lead, 'dB')}" for rival, lead in leads.items())
            ours.append(f"FedAvg {baseline}: {', '.join(texts)}")
            drawn += shown
    finding = over_choices(findings, main=next(iter(findings)))
    cells = compared.drop_duplicates(CELL)
    populations = len(cells[CELL[:2]].drop_duplicates())
    whole = share_finding(cells["part"])
    return replace(
        finding,
        ours=f"above (49)–(50) in the chosen population: {'; '.join(ours)}",
        reason=f"{finding.reason} In {populations} populations, with two baselines and two windows "
        f"each, it {whole.ours}.".strip(),
        drawn=drawn,
        caveat=_failing_cells(cells[cells["part"] == "fails"]),
    )


def _failing_cells(failing: pd.DataFrame) -> str:
    """Count the failing cells of each baseline; empty if the claim never fails."""
    if failing.empty:
        return ""
    undivided = int((failing["baseline"] == BASELINE_NAMES[0]).sum())
    return (
        "The paper states neither its noise variances nor whether FedAvg's steps are divided by "
        f"E_k; in {undivided} of the {len(failing)} cells in which the claim fails, they are not."
    )


def share_finding(parts: "pd.Series[str]") -> Finding:
    """Judge an order over many cells: more than half must agree and at most 5 % may oppose."""
    holding, failing = (float((parts == part).mean()) for part in ("holds", "fails"))
    words = {"holds": "holds", "fails": "fails", "open": "is undecided"}
    ours = ", ".join(f"{word} in {(parts == part).sum()}" for part, word in words.items())
    if holding > MIN_AGREEING and failing <= MAX_OPPOSING:
        return Finding("reproduced", ours, "")
    if failing > MIN_AGREEING and holding <= MAX_OPPOSING:
        return Finding("contradicted", ours, "")
    return Finding("inconclusive", ours, "")


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
    above, below = gap(tracked, true), gap(standard, tracked)
    fraction = below.value / (below.value + above.value)
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
    findings = {OURS: main} | {
        name: equivalence_finding(further, case, spec.margin)
        for name, (further, case) in few_steady(summaries).items()
    }
    caveat = (
        f"The margin of {spec.margin:g} dB is ours: “just as well” has no number in the paper. Our "
        f"numbers are from a population in which the true probabilities gain "
        f"{show(below.value + above.value)} dB over FedAvg; in the paper's they gain "
        f"{paper.reported('gap'):g} dB."
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
    return replace(finding, verdict="inconclusive", reason=why)
