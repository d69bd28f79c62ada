"""The finished runs of a paper's experiment, as a table: :func:`summary`."""

from pathlib import Path

from fedsampling.api.opening import open_results, project_root
from fedsampling.base.errors import InputError, check_known
from fedsampling.base.lazy import pd
from fedsampling.experiments.papers import load_paper
from fedsampling.experiments.resolving import scale_of
from fedsampling.experiments.specs import Job
from fedsampling.runs import store
from fedsampling.runs.places import PUBLISHED, published_runs
from fedsampling.workflow.plan import plan
from fedsampling.workflow.run_tables import Count, finished_runs_of, selected_jobs

SCALES = ("paper", "reduced", "quick")  # the largest first


def summary(paper: str, experiment: str, *, results: str | Path | None = None) -> "pd.DataFrame":
    """Return the published runs of an experiment, at the largest scale that is complete.

    With `results`, return the finished runs of your own configuration instead.

    Parameters
    ----------
    paper, experiment : str
        Such as ``"fraboni2021clustered"`` and ``"mnist"``; ``fedsampling list experiments`` lists
        all.
    results : str or Path, optional
        Folder with the results of a call of Snakemake, such as ``"results"``.

    Returns
    -------
    DataFrame
        Columns ``case``, ``sampler``, ``seed``, ``at``, ``metric`` and ``value``;
        ``attrs["scale"]`` is the scale, and ``attrs["settings"]`` the resolved experiment.

    Raises
    ------
    InputError
        If the paper or experiment is unknown, or not completely published at any scale; with
        `results`, if none of its runs is finished.

    Examples
    --------
    >>> import fedsampling as fs
    >>> fs.summary("rizk2022importance", "regression").attrs["scale"]
    'paper'
    """
    for key, value in (("paper", paper), ("experiment", experiment)):
        if not isinstance(value, str):
            raise InputError(f"{key}: {value!r} is invalid; must be its name")
    if results is not None:
        return _own(paper, experiment, results)
    root = project_root()
    experiments = load_paper(paper, root / "papers").experiments
    check_known([experiment], experiments, "experiment: '{}' is unknown")
    published = published_runs(root / PUBLISHED)
    for scale in SCALES:
        expanded = plan({"scale": scale, "data": "official", "papers": [paper]}, root / "papers")
        jobs = expanded.jobs_of(f"{paper}/{experiment}")
        if jobs and all(run.hash in published for job in jobs for run in job.runs):
            rows = _table(jobs, root / PUBLISHED / paper / f"{experiment}.parquet")
            settings = expanded.experiments[f"{paper}/{experiment}"]
            rows.attrs |= {"scale": scale, "settings": settings}
            return rows
    raise InputError(
        f"{paper}/{experiment}: its published runs are incomplete at every scale; "
        f"compute them with 'snakemake {paper}'"
    )


def _own(paper: str, experiment: str, results: str | Path) -> "pd.DataFrame":
    """Join the finished runs of the configuration of a results folder."""
    project = open_results(results, only_reads=True)
    jobs = selected_jobs(project, [f"{paper}/{experiment}"])
    runs = finished_runs_of(project, jobs, Count())
    rows = pd.concat([run.table(settings=False) for run in runs], ignore_index=True)
    scale = scale_of(project.plan.paper(paper), experiment, project.config)
    settings = project.plan.experiments[f"{paper}/{experiment}"]
    rows.attrs |= {"scale": scale, "settings": settings}
    return rows[["case", "sampler", "seed", "at", "metric", "value"]]


def _table(jobs: list[Job], file: Path) -> "pd.DataFrame":
    """Join the published runs of an experiment's jobs; `file` holds them."""
    tables = []
    for job in jobs:
        for run in job.runs:
            result = store.find([file.parents[1]], run.hash, None)
            if result is None:
                raise InputError(f"{file}: corrupt; restore it from the repository")
            tables.append(result.table.assign(case=job.case, sampler=job.sampler, seed=run.seed))
    rows = pd.concat(tables, ignore_index=True).astype({"metric": str})
    return rows[["case", "sampler", "seed", "at", "metric", "value"]]
