"""Judge a paper's claims: on the runs that explored them, and on fresh seeds that confirm them.

Both use the same function of the paper, with the rule's margin. For the confirmation it gets the
twins of the claim's experiments in their place, and its intervals allow for the declared looks.
"""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import shorten

from fedsampling.base.errors import WARNING
from fedsampling.evidence import grades
from fedsampling.evidence.claims import Claim, Confirmation, Declaration, Price
from fedsampling.evidence.looks import Looks
from fedsampling.evidence.power import price, seeds_sentence
from fedsampling.evidence.provenance import (
    RunEvidence,
    Summaries,
    assess_runs,
    changed,
    has_unverified_data,
)
from fedsampling.evidence.statistics import allowing_for
from fedsampling.evidence.summaries import load_summaries
from fedsampling.evidence.verdicts import UNDECIDED, Finding
from fedsampling.experiments.papers import ClaimSpec, Paper, judge_function, load_paper
from fedsampling.experiments.resolving import load_kinds
from fedsampling.experiments.specs import Job
from fedsampling.report import content
from fedsampling.workflow.project import Project
from fedsampling.workflow.summarise import summarise


@dataclass(frozen=True)
class Context:
    """What all claims of a paper are judged with.

    `paper`, `complete`: without and with the experiments that are left out. `loaded`: summaries of
    the remaining experiments. `unfinished`: unfinished jobs of the paper's size, by experiment.
    """

    paper: Paper
    complete: Paper
    project: Project
    loaded: Summaries
    unfinished: Mapping[str, Sequence[Job]]


def judge(spec: Paper, project: Project, loaded: Summaries) -> Iterator[Claim]:
    """Yield a paper's claims with their verdicts, from its remaining experiments."""
    complete = load_paper(spec.key, spec.folder.parent)
    unfinished = project.left_to_run(complete) if spec.claims else {}
    context = Context(spec, complete, project, loaded, unfinished)
    for name in spec.claims:
        yield _judged(name, context)


def confirmations(project: Project, key: str) -> dict[str, tuple[Confirmation | None, str]]:
    """Judge a paper's claims on the fresh seeds that are finished.

    Returns by claim the confirmation, or None and the reason.
    """
    spec, complete = project.plan.paper(key), load_paper(key, project.papers)
    twins = {twin for name in complete.claims for twin in complete.twins_of(name).values()}
    load_kinds(spec.folder)
    with TemporaryDirectory() as folder:
        for twin in (finished := sorted(twins & spec.experiments.keys())):
            summarise(key, twin, project, Path(folder))
        context = Context(spec, complete, project, load_summaries(key, finished, Path(folder)), {})
        return {name: _confirmed(name, context) for name in complete.claims}


def _judged(name: str, context: Context) -> Claim:
    """Judge a claim of a paper."""
    spec = context.paper
    claim = spec.claims[name]
    artefact = {**spec.omitted, **spec.artefacts}[claim.artefact]
    experiments = claim.experiments or artefact.experiments
    if claim.kind == "text against tables":
        experiments = []
    complete_artefact = context.complete.artefacts[claim.artefact]
    at_full_size = (
        experiments if experiments and (claim.experiments or complete_artefact.experiments) else []
    )
    cases = claim.cases or artefact.cases
    evidence, seconds = RunEvidence(), nan
    if absent := [key for key in experiments if key not in context.loaded]:
        finding = grades.not_run({key: spec.left_out[key] for key in absent})
    elif decisive := _decisive(changed({key: context.loaded[key] for key in experiments}), cases):
        finding = grades.not_judged(decisive)
    else:
        used = {key: context.loaded[key].only(cases) for key in experiments}
        specs = {key: context.complete.experiments[key] for key in at_full_size}
        seconds = sum(summary.provenance.get("seconds", nan) for summary in used.values())
        evidence = assess_runs(used, specs, cases, context.project.facts)
        try:
            # Rules get all summaries: some also report numbers that do not affect the verdict.
            finding = judge_function(spec, name)({**context.loaded, **used}, claim, spec)
            finding = grades.graded(finding, evidence, claim.transfer)
        except Exception as error:  # a paper's function may rely on the paper's settings
            if not context.project.config.changes(spec.key):
                raise
            warn_unfit(spec, name, "not judged, because its rule does not fit", error)
            evidence, finding = (
                RunEvidence(),
                grades.unfit(changed(used) or changed(context.loaded)),
            )
    shown = [row.seeds for row in finding.drawn if row.seeds] or [evidence.seeds]
    needs_runs = finding.grade not in ("paper's size", "transfer")
    open_jobs: list[Job] = []
    for key in at_full_size:  # all of an experiment if the claim names none of its cases
        jobs = context.unfinished.get(key, ())
        open_jobs += [job for job in jobs if job.case in cases] or jobs
    declared = claim.declared
    confirmation, unconfirmed = _confirmed(name, context)
    judged = Claim(
        id=name,
        statement=claim.statement,
        artefact=claim.artefact,
        reported=claim.reported,
        ours=finding.ours,
        margin=f"{claim.margin:g} {claim.unit}",
        verdict=finding.verdict,
        reason=finding.reason,
        rule=claim.rule,
        kind=claim.kind,
        grade=finding.grade,
        declared=Declaration(**declared.model_dump(mode="json")) if declared else None,
        scale=evidence.scale,
        seeds=min(shown),
        most_seeds=max(shown),
        covers=evidence.covers,
        settles=_settles(spec.key, open_jobs, evidence) if needs_runs else "",
        power=seeds_sentence(finding.drawn, seconds) if finding.verdict in UNDECIDED else "",
        drawn=finding.drawn,
        readings=finding.readings,
        caveat=" ".join(filter(None, (finding.caveat, claim.caveat))),
        parts=finding.parts,
        topic=claim.topic,
        confirmation=confirmation,
        unconfirmed=unconfirmed,
    )
    if claim.kind != "empirical" or judged.answered:
        return judged
    return replace(judged, price=_price(spec, name, claim, finding, seconds))


def _decisive(changes: Sequence[str], cases: Collection[str]) -> list[str]:
    """Return the changed settings that a claim is not about: neither seeds nor additions.

    `changes`: lines ``key value (paper's value)``. `cases`: of the claim; if empty, all.
    """
    return [
        line
        for line in changes
        if not line.startswith(("seeds ", "title "))
        and not (line.startswith(("samplers.", "cases.")) and line.endswith("(none)"))
        and not (cases and line.startswith("cases.") and line.split(".")[1] not in cases)
    ]


def _price(spec: Paper, name: str, claim: ClaimSpec, finding: Finding, seconds: float) -> Price:
    """Return what deciding an open claim takes."""
    if claim.unreachable:
        return Price(unreachable=claim.unreachable)
    command = f"fedsampling decide {spec.key}/{name}" if claim.parts else ""
    return replace(price(finding.drawn, seconds), command=command)


def _confirmed(name: str, context: Context) -> tuple[Confirmation | None, str]:
    """Judge a claim on fresh seeds; if that is not possible, return None and the reason."""
    spec, complete, project = context.paper, context.complete, context.project
    claim, twins = spec.claims[name], complete.twins_of(name)
    registered = complete.registered.get(name)
    if not twins:
        return None, "Its numbers are exact; no seed decides it." if claim.parts else ""
    if registered is None:
        return None, "Its rule is not registered."
    if registered.digest != complete.rule_digest(name):
        return None, f"Its rule was changed after its registration of {registered.at:%Y-%m-%d}."
    if missing := [twin for twin in twins.values() if twin not in context.loaded]:
        return None, f"No look at fresh seeds is finished: {spec.left_out.get(missing[0], '')}."
    first_run = min(context.loaded[twin].provenance["started"] for twin in twins.values())
    if datetime.fromisoformat(first_run) < registered.at:
        return None, f"Its fresh runs began before its registration of {registered.at:%Y-%m-%d}."
    artefact = {**spec.omitted, **spec.artefacts}[claim.artefact]
    cases = claim.cases or artefact.cases
    fresh = {original: context.loaded[twin].only(cases) for original, twin in twins.items()}
    looks = {tuple(summary.settings["looks"]) for summary in fresh.values()}
    seeds = min(len(summary.settings["seeds"]) for summary in fresh.values())
    (declared,) = looks
    plan = Looks(declared)
    specs = {original: complete.experiments[twin] for original, twin in twins.items()}
    evidence = assess_runs(fresh, specs, cases, project.facts)
    try:
        with allowing_for(plan):
            finding = judge_function(spec, name)(fresh, claim, spec)
    except Exception as error:
        if not project.config.changes(spec.key):
            raise
        warn_unfit(spec, name, "not confirmed, because its rule does not fit", error)
        return None, "The rule does not fit the changed settings."
    finding = grades.graded(finding, evidence, claim.transfer)
    draws_worlds = any(summary.settings.get("worlds") for summary in fresh.values())
    confirmation = Confirmation(
        verdict=finding.verdict,
        ours=finding.ours,
        reason=finding.reason,
        parts=finding.parts,
        drawn=finding.drawn,
        readings=finding.readings,
        grade=finding.grade,
        draws="partition, delays and training" if draws_worlds else "training",
        seeds=seeds,
        look=plan.finished(seeds),
        looks=declared,
        hours=round(sum(s.provenance["seconds"] for s in fresh.values()) / 3600, 2),
        registered=registered.at.isoformat(),
        commit=registered.commit,
        first_run=first_run,
    )
    return confirmation, ""


def _settles(paper: str, jobs: Sequence[Job], evidence: RunEvidence) -> str:
    """Describe the runs at the paper's size, and the data, that a verdict still requires."""
    parts = []
    if jobs:
        runs = sum(len(job.runs) for job in jobs)
        command = f"snakemake --cores all {paper} --config scale=paper"
        parts.append(f"{runs:,} run{'s'[: runs > 1]} of the paper's size: {command}")
    if has_unverified_data(evidence.obstacles):
        parts.append("data with a publisher's checksum; this copy has none")
    return "; ".join(parts) or content.FROM_PUBLISHED_RUNS


def warn_unfit(spec: Paper, name: str, outcome: str, error: Exception) -> None:
    """Warn on stderr that a paper's function fails with the changed settings."""
    line = f"{outcome} the changed settings ({_in_one_line(error)})"
    print(f"{WARNING}{spec.key}/{name}: {line}", file=sys.stderr)


def _in_one_line(error: Exception) -> str:
    """Format the type and the first line of an error, shortened."""
    first = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {shorten(first, 100, placeholder=' …')}"
