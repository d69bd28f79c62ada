"""Verdicts on a paper's claims, and the runs that undecided claims still require."""

import math
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import shorten

from fedsampling.base.errors import WARNING
from fedsampling.base.files import write_record
from fedsampling.evidence import power, verdicts
from fedsampling.evidence.provenance import (
    RunEvidence,
    Summaries,
    assess_runs,
    changed,
    has_unverified_data,
)
from fedsampling.evidence.statistics import show
from fedsampling.evidence.summaries import load_summaries
from fedsampling.evidence.verdicts import UNDECIDED, Claim, Declaration, Finding
from fedsampling.experiments.papers import ClaimSpec, Paper, judge_function, load_paper
from fedsampling.experiments.specs import Job
from fedsampling.report import content
from fedsampling.runs import resources
from fedsampling.runs.places import PUBLISHED
from fedsampling.workflow.plan import left_to_run
from fedsampling.workflow.project import Project


def judge(paper: str, project: Project) -> Path:
    """Write the verdicts on a paper's claims to ``claims/<paper>.json``."""
    spec = project.plan.paper(paper)
    return judge_claims(spec, project, load_summaries(paper, spec.experiments, project.folder))


def judge_claims(spec: Paper, project: Project, loaded: Summaries, to: str = "claims") -> Path:
    """Write the verdicts on a paper's claims, from its remaining experiments, to a folder."""
    complete = load_paper(spec.key, spec.folder.parent)
    unfinished = left_to_run(complete, project.config, project.results) if spec.claims else {}
    judge_claim = _Judge(spec, complete, project, loaded, unfinished).judge
    claims = [asdict(judge_claim(name)) for name in spec.claims]
    out = project.folder / to / f"{spec.key}.json"
    write_record(out, {"paper": spec.key, "claims": claims})
    return out


@dataclass(frozen=True)
class _Judge:
    """Judges the claims of a paper.

    `spec`, `complete`: without and with the experiments that are left out. `loaded`: summaries of
    the remaining experiments. `unfinished`: jobs of the paper's size that have not finished, by
    experiment.
    """

    spec: Paper
    complete: Paper
    project: Project
    loaded: Summaries
    unfinished: Mapping[str, Sequence[Job]]

    def judge(self, name: str) -> Claim:
        """Judge a claim."""
        spec, claim = self.spec, self.spec.claims[name]
        artefact = {**spec.omitted, **spec.artefacts}[claim.artefact]
        experiments = claim.experiments or artefact.experiments
        if claim.kind == "text against tables":
            experiments = []
        complete_artefact = self.complete.artefacts[claim.artefact]
        at_full_size = experiments and (claim.experiments or complete_artefact.experiments)
        cases = claim.cases or artefact.cases
        evidence, seconds = RunEvidence(), math.nan
        if absent := [key for key in experiments if key not in self.loaded]:
            finding = verdicts.not_run({key: spec.left_out[key] for key in absent})
        else:
            used = {key: self.loaded[key].only(cases) for key in experiments}
            specs = {key: self.complete.experiments[key] for key in at_full_size}
            seconds = sum(summary.provenance.get("seconds", math.nan) for summary in used.values())
            evidence = assess_runs(used, specs, cases, self.project.facts)
            evidence, finding = self._apply_rule(name, used, evidence)
        shown = [row.seeds for row in finding.drawn if row.seeds] or [evidence.seeds]
        needs_runs = finding.grade not in ("paper's size", "transfer")
        open_jobs = self._open_jobs(at_full_size, cases)
        return Claim(
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
            declared=_declaration(claim),
            scale=evidence.scale,
            seeds=min(shown),
            most_seeds=max(shown),
            covers=evidence.covers,
            settles=_settles(spec.key, open_jobs, evidence) if needs_runs else "",
            power=power.sentence(finding.drawn, seconds) if finding.verdict in UNDECIDED else "",
            drawn=finding.drawn,
            readings=finding.readings,
            caveat=finding.caveat or claim.caveat,
            parts=finding.parts,
            topic=claim.topic,
        )

    def _apply_rule(
        self, name: str, used: Summaries, evidence: RunEvidence
    ) -> tuple[RunEvidence, Finding]:
        """Apply a claim's rule to the summaries that it uses."""
        spec, claim = self.spec, self.spec.claims[name]
        try:
            # Rules get all summaries: some also report numbers that do not affect the verdict.
            finding = judge_function(spec, name)({**self.loaded, **used}, claim, spec)
            return evidence, verdicts.graded(finding, evidence, claim.transfer)
        except Exception as error:  # a paper's function may rely on the paper's settings
            if not self.project.config.changes(spec.key):
                raise
            warn_unfit(spec, name, "not judged, because its rule does not fit", error)
            return RunEvidence(), verdicts.unfit(changed(used) or changed(self.loaded))

    def _open_jobs(self, experiments: Collection[str], cases: Collection[str]) -> list[Job]:
        """Return a claim's unfinished jobs; all cases of an experiment if the claim names none."""
        jobs = []
        for name in experiments:
            unfinished = self.unfinished.get(name, ())
            open_cases = {job.case for job in unfinished}
            selected = open_cases & set(cases) or open_cases
            jobs += [job for job in unfinished if job.case in selected]
        return jobs


def _declaration(claim: ClaimSpec) -> Declaration | None:
    if claim.declared is None:
        return None
    return Declaration(claim.declared.when, claim.declared.date.isoformat(), claim.declared.why)


def _settles(paper: str, jobs: Sequence[Job], evidence: RunEvidence) -> str:
    """Describe the runs at the paper's size, and the data, that a verdict still requires."""
    parts = []
    if jobs:
        runs, speeds = sum(len(job.runs) for job in jobs), resources.load_measurements(PUBLISHED)
        known = [speeds.get(resources.measurement_key(job)) for job in jobs]
        steps = zip(known, jobs, strict=True)
        seconds = sum(speed.step * job.steps if speed else math.nan for speed, job in steps)
        hours = ""
        if math.isfinite(seconds):
            hours = f" (up to about {show(max(seconds / 3600, 0.1), 2)} hours of one core)"
        command = f"snakemake --cores all {paper} --config scale=paper"
        parts.append(f"{runs:,} run{'s'[: runs > 1]} of the paper's size{hours}: {command}")
    if has_unverified_data(evidence.obstacles):
        parts.append("data with a publisher's checksum; this copy has none")
    return "; ".join(parts) or content.FROM_PUBLISHED_RUNS


def warn_unfit(spec: Paper, name: str, outcome: str, error: Exception) -> None:
    """Warn on stderr that a paper's function fails with the changed settings."""
    line = f"{outcome} the changed settings ({in_one_line(error)})"
    print(f"{WARNING}{spec.key}/{name}: {line}", file=sys.stderr)


def in_one_line(error: Exception) -> str:
    """Format the type and the first line of an error, shortened."""
    first = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {shorten(first, 100, placeholder=' …')}"
