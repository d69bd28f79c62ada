"""Training of a comparison's samplers on one dataset: tune, then run the best trial in worlds."""

from collections.abc import Collection, Mapping

from fedsampling.experiments.cross_matrix import CROSS_MATRIX
from fedsampling.experiments.shorthand import TUNING
from fedsampling.experiments.specs import Job
from fedsampling.workflow.project import Project
from fedsampling.workflow.run import execute_all
from fedsampling.workflow.tune import scores


def train_on(
    dataset: str,
    project: Project,
    labels: Collection[str],
    best: Mapping[str, str] | None = None,
    worlds: int | None = None,
) -> dict[str, str]:
    """Train the samplers `labels` on a dataset; return each one's best trial.

    Parameters
    ----------
    best : mapping of str to str, optional
        The best trials, if they are known.
    worlds : int, optional
        Only the first ones; by default all.

    Raises
    ------
    SystemExit
        If it was stopped; the same call resumes.
    """
    if best is None:
        _execute(_jobs(project, TUNING + dataset, labels), project)
        rows = scores(project, CROSS_MATRIX, dataset)
        best = {row["sampler"]: row["case"] for row in rows if row["chosen"] == "True"}
    jobs = _jobs(project, dataset, labels)
    of_best = [job for job in jobs if job.case == best[job.sampler]]
    _execute([job for job in of_best if worlds is None or job.block < worlds], project)
    return {label: best[label] for label in labels if label in best}


def _jobs(project: Project, experiment: str, labels: Collection[str]) -> list[Job]:
    jobs = project.plan.jobs_of(f"{CROSS_MATRIX}/{experiment}")
    return [job for job in jobs if job.sampler in labels]


def _execute(jobs: Collection[Job], project: Project) -> None:
    if status := execute_all(jobs, project, lambda manifest: None, shows_progress=False):
        raise SystemExit(status)
