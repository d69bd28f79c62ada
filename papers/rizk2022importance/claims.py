"""Claims of rizk2022importance, judged by the rules in its ``paper.yaml``."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from fedsampling.evidence.numbers import listed, show, show_estimate, show_estimates
from fedsampling.evidence.statistics import Estimate, equivalence, mean
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import (
    JOINT,
    Finding,
    Interval,
    Part,
    Reading,
    by_chance,
    close,
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
    BASELINES,
    CELL,
    STANDARD,
    TRACKED,
    WINDOWS,
    drift,
    error_levels,
    fastest,
    gap,
    gradient_deviations,
    population_in_words,
    steady,
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
    summary, standard = summaries["steady"], summaries["steady_standard"]
    reported = paper.reported("gap")
    estimate = gap(summary, STANDARD, "isfedavg-optimal", baseline=standard)
    corrected = gap(summary, "fedavg", "isfedavg-optimal")
    ours = (
        f"{show_estimate(estimate, 'dB')}; FedAvg's steps divided by E_k: "
        f"{show_estimate(corrected, 'dB')}"
    )
    drawn = intervals(
        {"FedAvg over true": estimate, "the same, steps divided by E_k": corrected},
        "dB",
        paper=reported,
        within=spec.margin,
    )
    moves = {
        "FedAvg": drift(standard, STANDARD, "msd"),
        "true": drift(summary, "isfedavg-optimal", "msd"),
    }
    if unsteady := _unsteady(moves, dict.fromkeys(moves, spec.margin), "dB"):
        return Finding("inconclusive", ours, unsteady, drawn=drawn)
    near = equivalence(estimate, reported, spec.margin) == "equivalent"
    findings = {OURS: gap_finding(estimate, near, reported, ours, drawn)}
    level = few_steady(summaries)
    if level and FEW_STANDARD in summaries:
        for case in level.settings["cases"]:
            name = _named(FEW_STEADY, level, case)
            findings[name] = _gap_elsewhere(
                (summaries[FEW_STANDARD], STANDARD), level, case, reported, spec.margin
            )
    early = {}
    for experiment, (other, sampler) in BASELINES.items():
        if experiment not in summaries or other not in summaries:
            continue
        panel = summaries[experiment]
        for case in panel.settings["cases"]:
            early[_named(experiment, panel, case)] = _gap_elsewhere(
                (summaries[other], sampler), panel, case, reported, spec.margin
            )
    finding = over_choices({**findings, **early}, main=OURS)
    return replace(finding, caveat=_unsteady_populations(early))


def _named(experiment: str, summary: Summary, case: str) -> str:
    """Name a population with the iterations of its runs."""
    rounds = float(summary.setting("rounds", case))
    return f"{population_in_words(experiment, summary, case)}; {rounds:,.0f} iterations"


def _gap_elsewhere(
    baseline: tuple[Summary, str], panel: Summary, case: str, reported: float, margin: float
) -> Finding:
    """Judge c1 in another population, by the estimate, if both curves are steady.

    Parameters
    ----------
    baseline : (Summary, str)
        Runs and sampler of standard FedAvg.
    panel : Summary
        Runs of the true probabilities.
    """
    summary, sampler = baseline
    estimate = gap(panel, sampler, "isfedavg-optimal", case, summary)
    ours = show_estimate(estimate, "dB")
    drawn = intervals(
        {"FedAvg over true": estimate},
        "dB",
        paper=reported,
        within=margin,
    )
    moves = {
        "FedAvg": drift(summary, sampler, "msd", case),
        "true": drift(panel, "isfedavg-optimal", "msd", case),
    }
    if unsteady := _unsteady(moves, dict.fromkeys(moves, margin), "dB"):
        return Finding("inconclusive", ours, unsteady, drawn=drawn)
    # Intervals over so few seeds exceed the margin, so only the mean is compared.
    near = abs(estimate.value - reported) <= margin
    return gap_finding(estimate, near, reported, ours, drawn)


def _unsteady_populations(findings: Mapping[str, Finding]) -> str:
    """Give the range of the gap in populations that fail the test of steadiness."""
    gaps = [
        row.drawn[0].value
        for row in findings.values()
        if row.verdict == "inconclusive" and row.drawn
    ]
    if not gaps:
        return ""
    return (
        f"In {len(gaps)} more populations the runs are too short for the test of steadiness, so "
        f"they do not count; their gaps are {show(min(gaps))} to {show(max(gaps))} dB."
    )


def gap_finding(
    estimate: Estimate,
    near: bool,
    reported: float,
    ours: str,
    drawn: tuple[Interval, ...] = (),
) -> Finding:
    """Judge the gap in one population; `near`: whether it is within the margin of the paper's."""
    return verdict(
        {"the paper's gap": stated(near), "any gap": stated(near or estimate.low > 0)},
        ours,
        {
            "reproduced": "The interval of the gap lies within the margin.",
            "partly reproduced": f"ISFedAvg is lower, but not by {reported} dB in this population.",
            "contradicted": "ISFedAvg is not lower at steady state.",
        },
        contrary_decides=False,
        drawn=drawn,
    )


def c2(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge the distances of the tracked probabilities at the end, in each population."""
    findings = {OURS: distances_finding(summaries["longer"], "base", spec, paper)}
    if others := few_steady(summaries):
        findings |= {
            _named(FEW_STEADY, others, case): distances_finding(others, case, spec, paper)
            for case in others.settings["cases"]
        }
    return over_choices(findings, main=OURS)


def distances_finding(summary: Summary, case: str, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge both distances in one population."""
    parts: dict[str, Part] = {}
    halved, texts, drawn = {}, {}, intervals({}, "")
    moves, margins = {}, {}
    for name, label in DISTANCES.items():
        metric = f"{name}_distance"
        end = mean(summary.per_seed(TRACKED, metric, case, since=summary.setting("rounds", case)))
        start = float(summary.select(TRACKED, metric, case, since=0, until=0)["value"].mean())
        reference = paper.reported(metric)
        margins[name] = spec.margin * reference
        near = equivalence(end, reference, margins[name])
        parts[label] = stated(near == "equivalent")
        drawn += intervals(
            {f"{name}: distance": end}, "distance", paper=reference, within=margins[name]
        )
        halved[label] = end.value <= start / 2
        moves[name] = drift(summary, TRACKED, metric, case)
        texts[label] = f"{label} {show_estimate(end)} from {show(start)}"
    ours = "; ".join(texts.values())
    if unsteady := _unsteady(moves, margins, ""):
        return Finding("inconclusive", ours, unsteady, drawn=drawn)
    if set(parts.values()) == {"holds"}:
        why = "Both intervals lie within the margin of the paper's values."
        return Finding("reproduced", ours, why, drawn=drawn)
    if all(halved.values()):
        agree = [label for label, part in parts.items() if part == "holds"]
        why = "Both distances at least halve, but "
        if agree:
            others = [label for label in parts if label not in agree]
            why += f"only that of the {agree[0]} agrees with the paper's, not that of the "
            why += f"{others[0]}."
        else:
            why += "neither agrees with the paper's."
        return Finding("partly reproduced", ours, why, drawn=drawn)
    which = listed([label for label, halves in halved.items() if not halves])
    why = f"The distance does not halve from the uniform start: {which}."
    return Finding("contradicted", ours, why, drawn=drawn)


def c3(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge over baselines and populations which sampler's MSD falls fastest."""
    compared = fastest(summaries)
    cells = compared.drop_duplicates(CELL)
    chosen = compared[compared["experiment"] == "regression"]
    in_windows = {
        (str(baseline), str(window)): {
            row["other"]: Estimate(row["higher_db"], row["low"], row["high"], row["seeds"])
            for _, row in rows.iterrows()
        }
        for (baseline, window), rows in chosen.groupby(["baseline", "window"], sort=False)
    }
    estimates = {
        baseline: higher
        for (baseline, window), higher in in_windows.items()
        if window == WINDOWS[0]
    }
    shown = "; ".join(
        f"FedAvg {baseline}: {show_estimates(higher, 'dB')}"
        for baseline, higher in estimates.items()
    )
    groups = {
        (str(baseline), str(window)): share_finding(parts)
        for (baseline, window), parts in cells.groupby(CELL[2:], sort=False)["part"]
    }
    whole = share_finding(cells["part"])
    judged = whole.verdict
    if judged == "inconclusive" and (cells["part"] != "open").mean() > MAX_OPPOSING:
        judged = "depends on unstated choices"
    count = len(cells[CELL[:2]].drop_duplicates())
    why = f"In {count} populations, with two baselines and two windows each, it {whole.ours}."
    drawn = {
        (baseline, window): intervals(
            {f"{name} above (49)–(50), FedAvg {baseline}": value for name, value in higher.items()},
            f"dB{JOINT}",
            least=spec.margin,
        )
        for (baseline, window), higher in in_windows.items()
    }
    return Finding(
        judged,
        f"above (49)–(50) in the chosen population: {shown}",
        why,
        drawn=sum((drawn[baseline, WINDOWS[0]] for baseline in estimates), ()),
        readings=tuple(
            Reading(
                f"FedAvg {baseline}, while {window}",
                finding.verdict,
                finding.ours,
                drawn.get((baseline, window), ()),
            )
            for (baseline, window), finding in groups.items()
        ),
        caveat=_failing_cells(cells[cells["part"] == "fails"]),
    )


def _failing_cells(failing: pd.DataFrame) -> str:
    """Say with which baseline the claim fails; empty if it fails nowhere."""
    if failing.empty:
        return ""
    undivided = int((failing["baseline"] == BASELINE_NAMES[0]).sum())
    return (
        "The paper states neither its noise variances nor whether FedAvg's steps are divided by "
        f"E_k; in {undivided} of the {len(failing)} cells in which the claim fails, they are not."
    )


def share_finding(parts: "pd.Series[str]") -> Finding:
    """Judge an order over many cells: more than half must agree and at most 5 % may oppose."""
    shares = {part: float((parts == part).mean()) for part in ("holds", "fails")}
    ours = ", ".join(
        f"{word} in {(parts == part).sum()}"
        for part, word in (("holds", "holds"), ("fails", "fails"), ("open", "is undecided"))
    )
    if shares["holds"] > MIN_AGREEING and shares["fails"] <= MAX_OPPOSING:
        return Finding("reproduced", ours, "")
    if shares["fails"] > MIN_AGREEING and shares["holds"] <= MAX_OPPOSING:
        return Finding("contradicted", ours, "")
    return Finding("inconclusive", ours, "")


def c4(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether tracked and true probabilities are equivalent at steady state.

    The main reading is the population of the paper's file, the others those of `few_steady`, with
    the further repetitions of `few_steady_more`.
    """
    summary, standard = summaries["steady"], summaries["steady_standard"]
    tracked = gap(summary, TRACKED, "isfedavg-optimal")
    below = gap(summary, STANDARD, TRACKED, baseline=standard)
    corrected = gap(summary, "fedavg", TRACKED)
    kept = below.value / (below.value + tracked.value)
    gains = (
        f"FedAvg over tracked: {show_estimate(below, 'dB')}, {show_estimate(corrected, 'dB')} with "
        "its steps divided by E_k"
    )
    short = (
        f"The tracked probabilities keep {100 * kept:.0f} % of the gain over FedAvg in dB: much "
        "better than FedAvg, but short of the true probabilities."
    )
    main = equivalence_finding(summary, "base", spec.margin, gains, short)
    findings = {OURS: main}
    if others := few_steady(summaries):
        findings |= {
            _named(FEW_STEADY, others, case): equivalence_finding(others, case, spec.margin)
            for case in others.settings["cases"]
        }
    finding = over_choices(findings, main=OURS)
    caveat = (
        f"The margin of {spec.margin:g} dB is ours: “just as well” has no number in the paper. Our "
        f"numbers are from a population in which the true probabilities gain "
        f"{show(below.value + tracked.value)} dB over FedAvg; in the paper's they gain "
        f"{paper.reported('gap'):g} dB."
    )
    return replace(finding, caveat=caveat)


def few_steady(summaries: Summaries) -> Summary | None:
    """Join both experiments on other populations at steady state; None if they were not run."""
    if FEW_STEADY not in summaries:
        return None
    parts = [summaries[name].rows for name in (FEW_STEADY, FURTHER) if name in summaries]
    rows = pd.concat(parts, ignore_index=True)
    own = rows.drop_duplicates(["case", "sampler", "seed", "at", "metric"])  # of overridden seeds
    return replace(summaries[FEW_STEADY], rows=own.reset_index(drop=True))


def equivalence_finding(
    summary: Summary, case: str, margin: float, gains: str = "", short: str = ""
) -> Finding:
    """Judge in one population whether tracked and true probabilities are equivalent.

    Parameters
    ----------
    gains, short : str
        Further numbers, and a sentence that explains a contradiction.
    """
    estimate = gap(summary, TRACKED, "isfedavg-optimal", case)
    narrow = gap(summary, TRACKED, "isfedavg-optimal", case, level=0.9)
    ours = "; ".join(filter(None, (f"tracked over true: {show_estimate(estimate, 'dB')}", gains)))
    drawn = intervals({"tracked over true": estimate}, "dB", paper=0, within=margin)
    moves = {
        "tracked": drift(summary, TRACKED, "msd", case),
        "true": drift(summary, "isfedavg-optimal", "msd", case),
    }
    if unsteady := _unsteady(moves, dict.fromkeys(moves, margin), "dB"):
        return Finding("inconclusive", ours, unsteady, drawn=drawn)
    outside = f"The 95 % interval lies outside of the margin of {margin:g} dB."
    return verdict(
        {"the MSD": close(estimate, narrow, 0.0, margin)},
        ours,
        {
            "reproduced": "Equivalent within the margin (90 % interval).",
            "contradicted": " ".join(filter(None, (outside, short))),
            "inconclusive": "The interval crosses the margin.",
        },
        drawn=drawn,
    )


def c5(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge the testing errors of FedAvg and ISFedAvg over the last fifth."""
    summary = summaries["classification"]
    fedavg, tracked, lower = error_levels(summary)
    since = steady_since(summary)
    pairs = ((fedavg, "error_fedavg"), (tracked, "error_isfedavg"))
    near = all(
        equivalence(error, paper.reported(name), spec.margin) == "equivalent"
        for error, name in pairs
    )
    drawn = intervals({"FedAvg − ISFedAvg": lower}, "points", least=0)
    for (error, name), label in zip(pairs, ("FedAvg", "ISFedAvg"), strict=True):
        reported = paper.reported(name)
        drawn += intervals({label: error}, "% errors", paper=reported, within=spec.margin)
    ours = [
        f"{show_estimate(fedavg, '%')} to {show_estimate(tracked, '%')}; "
        f"improvement {show_estimate(lower, 'points')}"
    ]
    caveat = ""
    if BALANCED in summary.settings["cases"]:
        balanced_fedavg, balanced_tracked, gain = error_levels(summary, BALANCED)
        if gain.low <= 0 <= gain.high:
            caveat = (
                "With half of the training samples positive, neither algorithm does so, and "
                f"ISFedAvg's error of {show(balanced_tracked.value)} % is not significantly lower "
                "than FedAvg's."
            )
        ours.append(
            f"half of the training samples positive: {show_estimate(balanced_fedavg, '%')} to "
            f"{show_estimate(balanced_tracked, '%')}; improvement {show_estimate(gain, 'points')}"
        )
    floors = [
        float(summary.per_seed(name, "balanced_error", since=since).mean())
        for name in ("fedavg", TRACKED)
    ]
    if not near and min(floors) > FLOOR:
        return Finding(
            "not comparable",
            ". ".join(ours),
            "Both algorithms always answer “negative”, so their error is the share of positive "
            "test samples and their difference carries no information.",
            drawn=drawn,
            caveat=caveat,
        )
    return errors_finding(near, lower, ". ".join(ours), drawn)


def errors_finding(
    near: bool, lower: Estimate, ours: str, drawn: tuple[Interval, ...] = ()
) -> Finding:
    """Judge c5; `near`: whether both errors are the paper's, `lower`: FedAvg's minus ISFedAvg's."""
    return verdict(
        {"the paper's errors": stated(near), "less": stated(near or lower.low > 0)},
        ours,
        {
            "reproduced": "Both errors lie within the margin of the paper's.",
            "partly reproduced": "ISFedAvg errs less, but both errors are not the paper's.",
            "contradicted": "ISFedAvg does not err less than FedAvg on the published data.",
        },
        contrary_decides=False,
        drawn=drawn,
    )


def c6(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge Lemma 1: the estimate's mean is the exact gradient."""
    data = gradient_deviations(summaries["gradient"])
    largest = float(data["largest_z"].max(skipna=False))
    return by_chance(largest, int(data["coordinates"].sum()), "coordinates", spec.margin)


def _unsteady(moves: Mapping[str, Estimate], margins: Mapping[str, float], unit: str) -> str:
    """Name the curves that are not steady, with their drifts; empty if all are."""
    named = [
        f"{name} {show_estimate(move, unit)}"
        for name, move in moves.items()
        if steady(move, margins[name]) != "holds"
    ]
    if not named:
        return ""
    return f"Not at a steady state; over the last third of the iterations: {'; '.join(named)}."
