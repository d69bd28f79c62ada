"""Summaries: the runs of an experiment's jobs, joined into one table."""

from pathlib import Path

from fedsampling.base.errors import InputError, gathering
from fedsampling.base.files import remove
from fedsampling.base.inputs import note_runs
from fedsampling.evidence import joining
from fedsampling.experiments.resolving import changed as changed_settings
from fedsampling.experiments.resolving import scale_of
from fedsampling.experiments.specs import Job
from fedsampling.runs import store
from fedsampling.runs.finished import Finished
from fedsampling.runs.places import run_stores
from fedsampling.workflow.project import Project


class NotComputedError(InputError):
    """Runs of an experiment are missing."""


def summarise(
    paper: str,
    experiment: str,
    project: Project,
    folder: Path | None = None,
    finished: Finished | None = None,
) -> Path:
    """Join an experiment's runs into ``summaries/<paper>/<experiment>.parquet`` in a folder.

    If runs recorded who was selected, this becomes ``selections/<paper>/<experiment>.csv``.

    For an executed job, these are the runs that its manifest lists; the others are in `finished`,
    a listing that a paper's experiments share. By default, the folder is the project's.
    """
    plan, spec = project.plan, project.plan.paper(paper)
    jobs = plan.jobs_of(f"{paper}/{experiment}")
    manifests = {job.name: project.manifest(job.name) for job in jobs if job.name in plan.due}
    missing = [path for path in manifests.values() if not path.is_file()]
    if missing:
        further = f", as are {len(missing) - 1} others" if len(missing) > 1 else ""
        raise NotComputedError(
            f"{missing[0]}: not computed yet{further}; run 'fedsampling run' or snakemake first"
        )
    target, shared = run_stores(project.results, project.config)
    finished = finished or Finished(target, shared)
    runs: list[joining.Run] = []
    problems: list[str] = []
    for job in jobs:
        with gathering(problems):
            if job.name in manifests:
                seeds = {run.hash: run.seed for run in job.runs}
                runs += joining.runs_of_manifest(
                    manifests[job.name], job.name, seeds, [target, *shared]
                )
            else:
                runs += ((job.case, job.sampler, result) for result in _reused(job, finished))
    if problems:
        raise InputError(*problems)
    root = folder or project.folder
    out = root / "summaries" / paper / f"{experiment}.parquet"
    facts = {
        "data": project.config.data,
        "scale": scale_of(spec, experiment, project.config),
        "changed": changed_settings(spec, experiment, project.config),
        "changed_at": spec.scales.get(experiment, project.config.scale),
    }
    selected = selections_file(root, paper, experiment)
    remove(selected)  # of earlier settings
    joining.write(runs, plan.experiments[f"{paper}/{experiment}"], facts, out, selected)
    return out


def selections_file(folder: Path, paper: str, experiment: str) -> Path:
    """Return where an experiment's selections are, if its runs recorded them."""
    return folder / "selections" / paper / f"{experiment}.csv"


def _reused(job: Job, finished: Finished) -> list[store.Result]:
    """Return the runs of a job that was already finished."""
    note_runs(run.hash for run in job.runs)
    results = [finished.find(run.hash, job.code) for run in job.runs]
    readable = [result for result in results if result]
    if missing := len(results) - len(readable):
        fix = "run the same command again, or restore published_runs/ if they are published"
        raise InputError(f"{job.name}: {missing} of its runs cannot be read; {fix}")
    return readable
