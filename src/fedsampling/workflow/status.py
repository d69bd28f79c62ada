"""Progress of the workflow, from its files: runs, leases, logs and results.

Works whether or not Snakemake is running, and changes nothing, except that it removes runs of other
versions of the code on request.
"""

import time
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from fedsampling.base.errors import WARNING
from fedsampling.base.files import remove, writing
from fedsampling.experiments.specs import Job
from fedsampling.runs.leases import LEASE_SECONDS
from fedsampling.runs.places import (
    file_name,
    file_names,
    finished_runs,
    path_of_name,
    run_of_name,
    run_stores,
)
from fedsampling.workflow.project import LOGS, Project

UNFINISHED = "did not finish; see logs/, and run the same command to resume"
MAX_TIMED_RUNS = 20  # finished runs of an experiment whose times are averaged


class State(NamedTuple):
    """Number of runs of an experiment, by state."""

    finished: int
    running: int
    remaining: int
    seconds: float | None  # on one core, for all but the finished runs; None if none is timed


def status(project: Project, logs: Path = LOGS) -> Iterator[str]:
    """Describe the progress of runs, artefacts and report, and list failures."""
    plan, folder = project.plan, project.folder
    target, shared = run_stores(project.results, project.config)
    stored = file_names(target)
    reused = finished_runs(shared)
    states = {name: _state(plan.jobs_of(name), target, stored, reused) for name in plan.experiments}
    yield f"Runs: {_progress(list(states.values()))}"
    if others := _other_versions(project, target):
        yield (
            f"Runs of other versions of the code in {target}: {len(others)}; "
            "'fedsampling status --remove-other-versions' removes them"
        )
    for name, state in states.items():
        if state.running or state.remaining:
            yield f"  {name}: {_progress([state])}"
    artefacts = (folder / "artefacts" / paper / name for paper, name in plan.artefacts())
    drawn = [(artefact / "artefact.json").is_file() for artefact in artefacts]
    judged = [(folder / "claims" / f"{paper}.json").is_file() for paper in plan.papers]
    yield f"Artefacts: {sum(drawn)} of {len(drawn)} drawn; papers judged: {sum(judged)}"
    report = folder / "report" / "index.html"
    yield f"Report: {report if report.is_file() else 'not written yet'}"
    for path, line in _failures(project, project.config.run_folder(logs)):
        yield f"Failed: {path}: {line}"


def remove_other_versions(project: Project) -> str:
    """Remove the configured runs that other versions of the code stored, and say how many."""
    target, _ = run_stores(project.results, project.config)
    others = _other_versions(project, target)
    with writing(target):
        for path in others:
            remove(path)
    return f"{target}: {len(others)} runs of other versions removed"


def _other_versions(project: Project, target: Path) -> set[Path]:
    """Return the files of the configured runs that other versions of the code stored.

    At scale `best`, results are drawn from runs of any version, so a run's only versions stay.
    """
    stored = file_names(target)
    if not stored:
        return set()
    runs = [(run.hash, job.code) for job in project.plan.jobs.values() for run in job.runs]
    current = {file_name(*run) for run in runs}
    if project.config.computes:
        replaceable = {run_hash for run_hash, _ in runs}
    else:
        replaceable = {*map(run_of_name, stored & current)}
    others = stored - current
    return {path_of_name(target, name) for name in others if run_of_name(name) in replaceable}


def _state(jobs: Sequence[Job], target: Path, stored: Set[str], reused: Set[str]) -> State:
    """Count an experiment's runs: `stored` are names of files in the store, `reused` are hashes."""
    names = {run.hash: file_name(run.hash, job.code) for job in jobs for run in job.runs}
    unfinished = [key for key, name in names.items() if key not in reused and name not in stored]
    running = [key for key in unfinished if _is_held(path_of_name(target, names[key]))]
    seconds = None
    if in_store := sorted(name for name in names.values() if name in stored):
        from fedsampling.runs import store  # importing pandas takes longer than the rest

        times = (store.seconds(path_of_name(target, name)) for name in in_store)
        timed = islice((time for time in times if time is not None), MAX_TIMED_RUNS)
        if known := list(timed):
            seconds = len(unfinished) * sum(known) / len(known)
    finished = len(names) - len(unfinished)
    return State(finished, len(running), len(unfinished) - len(running), seconds)


def _is_held(path: Path) -> bool:
    """Whether a live process holds the lease of a run.

    Another machine's clock may be ahead: a time long after now says as little as one long before.
    """
    with suppress(OSError):
        return abs(time.time() - path.with_suffix(".lock").stat().st_mtime) < LEASE_SECONDS
    return False


def _progress(states: Sequence[State]) -> str:
    finished, running, remaining = (
        sum(getattr(state, name) for state in states)
        for name in ("finished", "running", "remaining")
    )
    text = f"{finished} of {finished + running + remaining} done"
    if not running + remaining:
        return text
    times = [state.seconds for state in states if state.running or state.remaining]
    known = [seconds for seconds in times if seconds is not None]
    hours = f"about {sum(known) / 3600:.2g} core-hours left" if known else "time left unknown"
    if 0 < len(known) < len(times):
        hours += f", plus {len(times) - len(known)} experiments without a timed run"
    return f"{text}, {running} running, {remaining} left; {hours}"


def why_unfinished(project: Project, paper: str, experiment: str) -> str:
    """Return why an experiment has no summary: the first error in the logs of its steps."""
    plan = project.plan
    jobs = [job.name for job in plan.jobs_of(f"{paper}/{experiment}")]
    batches = [name for name, members in plan.batches.items() if {*members} & {*jobs}]
    steps = [f"fetch/{dataset}" for dataset in plan.datasets(*jobs)]
    steps += [f"simulate/{name}" for name in (*batches, *jobs)]
    for step in (*steps, f"draw/{paper}"):
        with suppress(OSError):
            if error := _last_error(project.config.run_folder(LOGS) / f"{step}.log"):
                return f"{error}; run the same command to resume"
    return UNFINISHED


def _failures(project: Project, logs: Path) -> Iterator[tuple[Path, str]]:
    """Yield the log of each step of the plan whose last attempt failed, with its last error."""
    plan = project.plan
    # The folder may also have logs of other runs, and of steps that have left the plan.
    steps = {f"simulate/{name}" for name in (*plan.jobs, *plan.batches)}
    steps |= {f"draw/{paper}" for paper in plan.papers}
    steps |= {f"fetch/{dataset}" for job in plan.jobs.values() for dataset in job.files}
    steps |= {f"card/{dataset}" for dataset in (*plan.cards, "without_files")}
    steps |= {f"compare/{name}" for name in plan.users_samplers} | {"report", "recheck"}
    for path in sorted(logs.rglob("*.log")):
        log = str(path.relative_to(logs)).removesuffix(".log")
        if log not in steps:
            continue
        step, _, name = log.partition("/")
        jobs = plan.batches.get(name, [name])
        if step == "simulate" and all(project.manifest(job).is_file() for job in jobs):
            continue  # finished; any messages are warnings
        if error := _last_error(path):
            yield path, error


def _last_error(log: Path) -> str:
    """Return the last error line of a log; empty if there is none."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [
        line for line in lines if line.startswith("fedsampling: ") and not line.startswith(WARNING)
    ]
    if errors or any(line.startswith("Traceback") for line in lines):
        return (errors or lines)[-1].removeprefix("fedsampling: ")
    return ""
