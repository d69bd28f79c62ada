"""Judge a paper's claims on the runs that explored them; fresh seeds may confirm them.

:mod:`fedsampling.workflow.confirm` judges the fresh seeds, with the same function of the paper.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import nan

from fedsampling.evidence import grades
from fedsampling.evidence.claims import Claim, Confirmation, Declaration, Price
from fedsampling.evidence.power import WITHOUT_INTERVAL, deciding, seeds_sentence
from fedsampling.evidence.provenance import (
    RunEvidence,
    Summaries,
    assess_runs,
    changed,
    has_unverified_data,
)
from fedsampling.evidence.summaries import read_notes
from fedsampling.evidence.verdicts import Finding
from fedsampling.experiments.papers import Paper, load_paper
from fedsampling.experiments.specs import Job
from fedsampling.report import content
from fedsampling.workflow.claim_context import Context, decisive
from fedsampling.workflow.confirm import OTHER_SEEDS, FreshSeeds, confirmed
from fedsampling.workflow.look_hours import hours_of_look
from fedsampling.workflow.project import Project


def judge(spec: Paper, project: Project, loaded: Summaries) -> Iterator[Claim]:
    """Yield a paper's claims with their verdicts, from its remaining experiments."""
    complete = load_paper(spec.key, spec.folder.parent)
    unfinished = project.left_to_run(complete) if spec.claims else {}
    paths = (project.folder / "summaries" / spec.key / f"{name}.parquet" for name in loaded)
    costs = [read_notes(path)[1] for path in paths if path.is_file()]
    seconds = {run: of_run for by_run in costs for run, (of_run, _) in by_run.items()}
    context = Context(spec, complete, project, loaded, unfinished, seconds)
    for name in spec.claims:
        yield _judged(name, context)


@dataclass(frozen=True)
class Explored:
    """What the runs that explored a claim say about it."""

    finding: Finding
    evidence: RunEvidence = field(default_factory=RunEvidence)
    seconds: float = nan  # computing time of the runs


def _judged(name: str, context: Context) -> Claim:
    """Judge a claim of a paper."""
    spec, claim = context.paper, context.paper.claims[name]
    explored = _explored(name, context)
    finding, evidence = explored.finding, explored.evidence
    seeds = [row.seeds for row in finding.drawn if row.seeds] or [evidence.seeds]
    declared = claim.declared
    fresh = confirmed(name, context)
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
        seeds=min(seeds),
        most_seeds=max(seeds),
        covers=evidence.covers,
        settles=_settles(spec.key, _open_jobs(name, context), evidence)
        if finding.grade not in ("paper's size", "transfer")
        else "",
        drawn=finding.drawn,
        readings=finding.readings,
        caveat=" ".join(filter(None, (finding.caveat, claim.caveat_explored, claim.caveat))),
        parts=finding.parts,
        topic=claim.topic,
        confirmation=fresh.confirmation,
        unconfirmed=fresh.reason,
    )
    if claim.kind != "empirical":
        return judged
    return replace(
        judged,
        power="" if judged.answered or claim.unreachable else _forecast(explored, fresh),
        price=None if judged.confirmed else _price(name, context, fresh),
    )


def _explored(name: str, context: Context) -> Explored:
    """Judge a claim on the runs that explored it, or withhold its verdict with the reason."""
    spec, claim = context.paper, context.paper.claims[name]
    experiments, cases = context.experiments(name), context.cases(name)
    if absent := [key for key in experiments if key not in context.loaded]:
        return Explored(grades.not_run({key: spec.left_out[key] for key in absent}))
    variants = [key for key in claim.variants if key in context.loaded]
    summaries = {key: context.loaded[key] for key in (*experiments, *variants)}
    if changes := decisive(changed(summaries), cases):
        return Explored(grades.not_judged(changes))
    used = {key: summary.only(cases) for key, summary in summaries.items()}
    seconds = sum(summary.provenance.get("seconds", nan) for summary in used.values())
    specs = {key: context.complete.experiments[key] for key in summaries}
    evidence = assess_runs(used, specs, cases, context.project.facts)
    # Rules get all summaries: some also report numbers that do not affect the verdict.
    of_experiments = {key: used[key] for key in experiments}
    finding = context.apply_rule(name, {**context.loaded, **of_experiments}, "not judged")
    if finding is None:
        unfit = grades.unfit(changed(used) or changed(context.loaded))
        return Explored(unfit, seconds=seconds)
    return Explored(grades.graded(finding, evidence, claim.transfer), evidence, seconds)


def _forecast(explored: Explored, fresh: FreshSeeds) -> str:
    """Write how many seeds would decide an open claim, from fresh seeds if there are any."""
    basis: Finding | Confirmation = explored.finding
    seconds = explored.seconds
    if fresh.confirmation:
        basis, seconds = fresh.confirmation, 3600 * fresh.confirmation.hours
    drawn = deciding(basis.drawn, basis.parts, basis.readings)
    # A part may be open although all intervals are decided, if some sampler misses its target.
    return seeds_sentence(drawn, seconds) or WITHOUT_INTERVAL


def _price(name: str, context: Context, fresh: FreshSeeds) -> Price | None:
    """Return what confirming a claim takes; None if no seed decides it."""
    if unreachable := context.paper.claims[name].unreachable:
        return Price(unreachable=unreachable)
    confirmation, left = fresh.confirmation, fresh.looks_left
    if not left:
        over = f"No look of its plan is left; to go on, {OTHER_SEEDS}."
        return Price(unreachable=over) if confirmation else None
    complete = context.complete
    looks = len(confirmation.looks) if confirmation else len(left)
    hours = hours_of_look(
        complete, complete.twins_of(name), left[0], context.project, context.seconds.get
    )
    return Price(
        seeds=left[0],
        look=looks - len(left) + 1,
        looks=looks,
        hours=round(sum(hours.values()), 2) if hours else None,
        command=f"fedsampling decide {context.paper.key}/{name}",
    )


def _open_jobs(name: str, context: Context) -> list[Job]:
    """Return the unfinished jobs of the paper's size whose runs a claim is judged on."""
    cases = context.cases(name)
    open_jobs: list[Job] = []
    for key in context.experiments(name):
        jobs = context.unfinished.get(key, ())
        # all of an experiment if the claim names none of its cases
        open_jobs += [job for job in jobs if job.case in cases] or jobs
    return open_jobs


def _settles(paper: str, jobs: Sequence[Job], evidence: RunEvidence) -> str:
    """Describe the runs at the paper's size, and the data, that a verdict still requires."""
    parts = []
    if jobs:
        runs = sum(len(job.runs) for job in jobs)
        command = f"snakemake --cores all {paper} --config scale=paper"
        parts.append(f"{runs:,} run{'s' if runs != 1 else ''} of the paper's size: {command}")
    if has_unverified_data(evidence.obstacles):
        parts.append("data with a publisher's checksum; this copy has none")
    return "; ".join(parts) or content.FROM_PUBLISHED_RUNS
