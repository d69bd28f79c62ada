"""Draw a paper: update its summaries, artefacts, explorer data and verdicts if out of date."""

import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from math import inf, log, nan, sqrt
from pathlib import Path
from textwrap import shorten
from typing import Any

from scipy.special import stdtrit
from scipy.stats import nct

from fedsampling.base.errors import WARNING, DamagedError, InputError, check_known, gathering
from fedsampling.base.files import read_record, sha256, write_record
from fedsampling.base.text import show
from fedsampling.evidence import summaries, verdicts
from fedsampling.evidence.provenance import (
    RunEvidence,
    Summaries,
    assess_runs,
    changed,
    has_unverified_data,
)
from fedsampling.evidence.summaries import Summary, load_summaries
from fedsampling.evidence.verdicts import UNDECIDED, Claim, Declaration, Interval
from fedsampling.experiments.papers import (
    Paper,
    draw_function,
    judge_function,
    load_paper,
)
from fedsampling.experiments.resolving import changed as changed_settings
from fedsampling.experiments.resolving import load_kinds, scale_of
from fedsampling.experiments.specs import Job
from fedsampling.report import content
from fedsampling.report.drawing import saving, views
from fedsampling.report.drawing.artefacts import Artefact
from fedsampling.report.drawing.curves import undrawn
from fedsampling.runs import store
from fedsampling.runs.execute import locate
from fedsampling.runs.places import run_stores
from fedsampling.workflow.project import Project


def draw(paper: str, project: Project, unfinished: bool = False) -> int:
    """Update the results of a paper that are out of date; return the exit status."""
    spec, folder = project.plan.paper(paper), project.folder
    results = _Results(folder / "made" / f"{paper}.json", project.digests, unfinished)
    load_kinds(spec.folder)  # figures validate settings of the paper's run kinds
    loaded: dict[str, Summary] = {}

    def load(names: Iterable[str]) -> dict[str, Summary]:
        loaded.update(load_summaries(paper, set(names) - loaded.keys(), folder))
        return {name: loaded[name] for name in names}

    def join(name: str) -> list[Path]:
        return [summarise(paper, name, project)]

    def draw_one(name: str) -> list[Path]:
        return _render(project, spec, name, load(spec.artefacts[name].experiments))

    def explore(name: str) -> list[Path]:
        target = folder / "explorer" / paper / name
        return views.save(load([name])[name], name, target, project.facts)

    summarised = {
        name for name in spec.experiments if results.update(f"summaries/{paper}/{name}", join, name)
    }
    for name, artefact in spec.artefacts.items():
        if summarised.issuperset(artefact.experiments):
            results.update(f"artefacts/{paper}/{name}", draw_one, name)
    for name in sorted(summarised):
        results.update(f"explorer/{paper}/{name}", explore, name)
    if not unfinished and summarised.issuperset(spec.experiments):
        results.update(
            f"claims/{paper}", lambda: [judge_claims(spec, project, load(spec.experiments))]
        )
    return int(results.failed)


class _Results:
    """The results of a paper: recorded in `path` with `digests` of their inputs, and updated.

    `unfinished`: whether missing runs are expected and no error.
    """

    def __init__(self, path: Path, digests: Mapping[str, str], unfinished: bool) -> None:
        self.path, self.digests, self.unfinished = path, digests, unfinished
        self.failed = False
        self.record: dict[str, Any] = {}
        if path.is_file():
            with suppress(DamagedError):  # without a record, everything is rebuilt
                self.record = read_record(path)

    def update(self, name: str, build: Callable[..., list[Path]], *arguments: str) -> bool:
        """Build a result unless it is up to date; return whether it exists.

        If this fails, older files of the result are removed, so that nothing uses them.
        """
        if self._is_up_to_date(name):
            return True
        try:
            files = {str(path): sha256(path) for path in build(*arguments)}
        except InputError as error:
            if not (self.unfinished and isinstance(error, NotComputedError)):
                print(*(f"fedsampling: {line}" for line in error.lines), sep="\n", file=sys.stderr)
        except Exception:  # an error in a function of a paper
            print(f"fedsampling: {name} failed", file=sys.stderr)
            traceback.print_exc()
        else:
            self.record[name] = {"of": self.digests[name], "files": files}
            write_record(self.path, self.record)
            return True
        for path in self.record.get(name, {}).get("files", ()):
            Path(path).unlink(missing_ok=True)
        self.failed = True
        return False

    def _is_up_to_date(self, name: str) -> bool:
        entry = self.record.get(name, {})
        return bool(entry.get("of") == self.digests[name]) and all(
            Path(path).is_file() and sha256(Path(path)) == digest
            for path, digest in entry["files"].items()
        )


def is_outdated(paper: str, project: Project) -> bool:
    """Whether a paper's results were drawn from other runs, settings or code than the plan's.

    Snakemake notices this itself, unless its folder ``.snakemake`` was deleted or not copied.
    """
    results = _Results(project.folder / "made" / f"{paper}.json", project.digests, False)
    artefacts = (f"artefacts/{paper}/{name}" for name in project.plan.paper(paper).artefacts)
    names = [f"claims/{paper}", *artefacts]
    return any(results.record.get(name, {}).get("of") != results.digests[name] for name in names)


def render(paper: str, artefact: str, project: Project) -> Path:
    """Draw an artefact into ``artefacts/<paper>/<artefact>/``, figures also as PDF."""
    # All summaries of a paper that is not configured must exist.
    configured = paper in project.plan.papers
    spec = project.plan.paper(paper) if configured else load_paper(paper, project.papers)
    check_known([artefact], spec.artefacts, "artefact: '{}' is unknown")
    loaded = load_summaries(paper, spec.artefacts[artefact].experiments, project.folder)
    return _render(project, spec, artefact, loaded, pdf=True)[-1]


def _render(
    project: Project, spec: Paper, artefact: str, loaded: Summaries, pdf: bool = False
) -> list[Path]:
    folder = project.folder / "artefacts" / spec.key / artefact
    described = spec.artefacts[artefact]
    used = {name: summary.only(described.cases) for name, summary in loaded.items()}

    def save(drawn: Artefact) -> list[Path]:
        return saving.save(drawn, spec, artefact, folder, used, project.facts, pdf)

    try:
        return save(draw_function(spec, artefact)(used, spec))
    except Exception as error:  # a paper's function may rely on the paper's settings
        if not (used and project.config.changes(spec.key)):
            raise
        warn_unfit(spec, artefact, "not drawn, because its layout does not fit", error)
        return save(undrawn(used, described.kind == "figure", changed(used)))


# Summaries: the runs of an experiment's jobs, joined into one table.


class NotComputedError(InputError):
    """Runs of an experiment are missing."""


def summarise(paper: str, experiment: str, project: Project) -> Path:
    """Join an experiment's runs into ``summaries/<paper>/<experiment>.parquet``.

    For an executed job, these are the runs that its manifest lists.
    """
    plan, spec = project.plan, project.plan.paper(paper)
    jobs = [plan.jobs[name] for name in plan.jobs_of(paper, experiment)]
    manifests = {job.name: project.manifest(job.name) for job in jobs if job.name in plan.due}
    missing = [path for path in manifests.values() if not path.is_file()]
    if missing:
        further = f", as are {len(missing) - 1} others" if len(missing) > 1 else ""
        raise NotComputedError(
            f"{missing[0]}: not computed yet{further}; run 'fedsampling run' or snakemake first"
        )
    target, shared = run_stores(project.results, project.config)
    runs: list[summaries.Run] = []
    problems: list[str] = []
    for job in jobs:
        with gathering(problems):
            if job.name in manifests:
                seeds = {run.hash: run.seed for run in job.runs}
                runs += summaries.runs_of_manifest(
                    manifests[job.name], job.name, seeds, [target, *shared]
                )
            else:
                results = _finished(job, target, shared)
                runs += ((job.case, job.sampler, result) for result in results)
    if problems:
        raise InputError(*problems)
    out = project.folder / "summaries" / paper / f"{experiment}.parquet"
    facts = {
        "data": project.config.data,
        "scale": scale_of(spec, experiment, project.config),
        "changed": changed_settings(spec, experiment, project.config),
        "changed_at": spec.scales.get(experiment, project.config.scale),
    }
    summaries.write(runs, plan.experiments[f"{paper}/{experiment}"], facts, out)
    return out


def _finished(job: Job, target: Path, shared: list[Path]) -> list[store.Result]:
    """Return the runs of a job that was already finished."""
    results = [locate(run.hash, target, shared, job.code) for run in job.runs]
    readable = [result for result in results if result]
    if missing := len(results) - len(readable):
        fix = "run the same command again, or restore published_runs/ if they are published"
        raise InputError(f"{job.name}: {missing} of its runs cannot be read; {fix}")
    return readable


def judge_claims(spec: Paper, project: Project, loaded: Summaries, to: str = "claims") -> Path:
    """Write the verdicts on a paper's claims, from its remaining experiments, to a folder."""
    complete = load_paper(spec.key, spec.folder.parent)
    unfinished = project.left_to_run(complete) if spec.claims else {}
    context = spec, complete, project, loaded, unfinished
    claims = [asdict(_judged(name, *context)) for name in spec.claims]
    out = project.folder / to / f"{spec.key}.json"
    write_record(out, {"paper": spec.key, "claims": claims})
    return out


def _judged(
    name: str,
    spec: Paper,
    complete: Paper,
    project: Project,
    loaded: Summaries,
    unfinished: Mapping[str, Sequence[Job]],
) -> Claim:
    """Judge a claim of a paper.

    `spec`, `complete`: without and with the experiments that are left out. `loaded`: summaries of
    the remaining experiments. `unfinished`: unfinished jobs of the paper's size, by experiment.
    """
    claim = spec.claims[name]
    artefact = {**spec.omitted, **spec.artefacts}[claim.artefact]
    experiments = claim.experiments or artefact.experiments
    if claim.kind == "text against tables":
        experiments = []
    complete_artefact = complete.artefacts[claim.artefact]
    at_full_size = experiments and (claim.experiments or complete_artefact.experiments)
    cases = claim.cases or artefact.cases
    evidence, seconds = RunEvidence(), nan
    if absent := [key for key in experiments if key not in loaded]:
        finding = verdicts.not_run({key: spec.left_out[key] for key in absent})
    else:
        used = {key: loaded[key].only(cases) for key in experiments}
        specs = {key: complete.experiments[key] for key in at_full_size}
        seconds = sum(summary.provenance.get("seconds", nan) for summary in used.values())
        evidence = assess_runs(used, specs, cases, project.facts)
        try:
            # Rules get all summaries: some also report numbers that do not affect the verdict.
            finding = judge_function(spec, name)({**loaded, **used}, claim, spec)
            finding = verdicts.graded(finding, evidence, claim.transfer)
        except Exception as error:  # a paper's function may rely on the paper's settings
            if not project.config.changes(spec.key):
                raise
            warn_unfit(spec, name, "not judged, because its rule does not fit", error)
            evidence, finding = RunEvidence(), verdicts.unfit(changed(used) or changed(loaded))
    shown = [row.seeds for row in finding.drawn if row.seeds] or [evidence.seeds]
    needs_runs = finding.grade not in ("paper's size", "transfer")
    open_jobs: list[Job] = []
    for key in at_full_size:  # all of an experiment if the claim names none of its cases
        jobs = unfinished.get(key, ())
        open_jobs += [job for job in jobs if job.case in cases] or jobs
    declared = claim.declared
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
    )


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
    line = f"{outcome} the changed settings ({in_one_line(error)})"
    print(f"{WARNING}{spec.key}/{name}: {line}", file=sys.stderr)


def in_one_line(error: Exception) -> str:
    """Format the type and the first line of an error, shortened."""
    first = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {shorten(first, 100, placeholder=' …')}"


POWER = 0.8
MAX_SEEDS = 1000  # more seeds are not practical
FEW_SEEDS = 5  # fewer seeds give only a rough estimate of the standard deviation
WITHOUT_INTERVAL = "Without intervals there is no forecast of the seeds that would decide it."


def open_intervals(drawn: Iterable[Interval]) -> list[Interval]:
    """Return the intervals that contain a bound of their claim's rule."""
    return [
        row
        for row in drawn
        if any(row.low <= bound <= row.high for bound in (row.least, row.most) if bound is not None)
    ]


def seeds_needed(interval: Interval, effect: float | None = None) -> float:
    """Compute the number of seeds for a t-interval to exclude the nearest bound with 80 % power.

    `effect`: assumed true value, by default the observed one.  Ratios are compared by logarithms.
    The number is infinite beyond :data:`MAX_SEEDS`, or if the interval's is unknown.
    """
    scale = log if interval.unit.startswith("times") and interval.low > 0 else float
    value = scale(interval.value if effect is None else effect)
    bounds = [scale(bound) for bound in (interval.least, interval.most) if bound]
    bounds += [0.0 for bound in (interval.least, interval.most) if bound == 0 and scale is float]
    if interval.seeds < 2 or not bounds:
        return inf
    # Holm-corrected intervals keep their level; fewer seeds may do, as Holm's steps relax it.
    quantile = stdtrit(interval.seeds - 1, (1 + interval.level) / 2)
    deviation = (scale(interval.high) - scale(interval.low)) / 2 * sqrt(interval.seeds) / quantile
    distance = min(abs(value - bound) for bound in bounds)
    if deviation == 0:
        return 2
    for seeds in range(2, MAX_SEEDS + 1):
        critical = stdtrit(seeds - 1, (1 + interval.level) / 2)
        if nct.sf(critical, seeds - 1, distance / deviation * sqrt(seeds)) >= POWER:
            return seeds
    return inf


def seeds_sentence(drawn: Iterable[Interval], seconds: float = nan) -> str:
    """Write the number of seeds that would decide a claim, and their cost; empty if decided."""
    drawn = list(drawn)
    if not drawn:
        return WITHOUT_INTERVAL
    undecided = open_intervals(drawn)
    if not undecided:
        return ""
    seeds = min(interval.seeds for interval in undecided)
    seconds_per_seed = seconds / seeds if seeds else nan
    counts = {"if the effect is as observed": max(map(seeds_needed, undecided))}
    effects = [(row, row.paper if row.effect is None else row.effect) for row in undecided]
    if known := [seeds_needed(row, effect) for row, effect in effects if effect is not None]:
        counts["if it is the paper's"] = max(known)
    parts = []
    for effect, count in counts.items():
        number = f"{count:.0f}" if count < inf else f"more than {MAX_SEEDS:,}"
        parts.append(f"{number} {effect}{_cost((count - seeds) * seconds_per_seed)}")
    rough = ", so this is a rough estimate" if seeds < FEW_SEEDS else ""
    return f"Seeds needed for 80 % power: {', '.join(parts)}; it has {seeds}{rough}."


def _cost(seconds: float) -> str:
    """Write the processor time of additional seeds; empty if unknown or zero."""
    if not 0 < seconds < inf:
        return ""
    return f" ({show(max(seconds / 3600, 0.1), 2)} core-hours more)"
