"""The settings and the origin of a job or a run: ``fedsampling show``."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from fedsampling.base.errors import InputError
from fedsampling.experiments.specs import Job
from fedsampling.runs import store
from fedsampling.runs.finished import Finished
from fedsampling.runs.places import files_by_run, published_runs, run_stores
from fedsampling.workflow.project import Project

HASH = re.compile(r"[0-9a-f]{6,20}")
ORIGIN = ("started", "seconds", "peak_mb", "device", "package", "commit", "versions", "code")


def show(name: str, project: Project) -> Iterator[str]:
    """Describe a job, or a run by its hash or the hash's first six digits, as YAML."""
    if "/" in name:
        yield from _lines(_of_job(project.plan.job(name), project))
    elif HASH.fullmatch(name):
        yield from _lines(_of_run(name, project))
    else:
        raise InputError(
            f"{name}: is neither a job nor a hash; 'fedsampling list jobs' lists all jobs, and "
            "'fedsampling show JOB' the hashes of its runs"
        )


def _of_job(job: Job, project: Project) -> dict[str, Any]:
    finished = Finished(*run_stores(project.results, project.config))
    runs = [
        {"seed": run.seed, "hash": run.hash, "finished": bool(finished.find(run.hash, job.code))}
        for run in job.runs
    ]
    first = job.runs[0]
    return {"job": job.name, "data": first.data, "runs": runs, "settings": first.settings}


def _of_run(start: str, project: Project) -> dict[str, Any]:
    jobs = {run.hash: job for job in project.plan.jobs.values() for run in job.runs}
    target, shared = run_stores(project.results, project.config)
    folders = [target, *(folder for folder in shared if folder != target)]
    stored = {run for folder in folders for run in (*files_by_run(folder), *published_runs(folder))}
    matches = sorted(run for run in jobs.keys() | stored if run.startswith(start))
    if not matches:
        raise InputError(
            f"{start}: no run of this project has this hash; 'fedsampling show JOB' lists those "
            "of a job"
        )
    if len(matches) > 1:
        raise InputError(f"{start}: begins {len(matches)} hashes; give more digits")
    (run,) = matches
    job = jobs.get(run)
    code = job.code if job else ""
    result = Finished(target, shared).find(run, code) or store.find(folders, run, None)
    if result is None and job is None:
        raise InputError(f"{run}: corrupt, and of no job of this configuration")
    if result is None:
        spec = next(spec for spec in jobs[run].runs if spec.hash == run).identity
        return {"run": run, "job": jobs[run].name, "finished": False, **_identity(spec)}
    metadata = result.metadata
    origin = {key: metadata[key] for key in ORIGIN if key in metadata}
    name = job.name if job else "none of this configuration"
    return {
        "run": run,
        "job": name,
        "finished": True,
        "rows": len(result.table),
        **origin,
        **_identity(metadata["spec"]),
    }


def _identity(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {key: spec[key] for key in ("seed", "data", "settings")}


def _lines(record: dict[str, Any]) -> list[str]:
    return yaml.safe_dump(record, sort_keys=False, allow_unicode=True).splitlines()
