"""The published runs of a paper's experiment, as a table: :func:`summary`."""

from pathlib import Path

from fedsampling.base.errors import InputError, check_known
from fedsampling.base.lazy import pd
from fedsampling.experiments.papers import load_paper
from fedsampling.experiments.specs import Job
from fedsampling.runs import store
from fedsampling.runs.places import PUBLISHED, published_runs
from fedsampling.workflow.init import project_folder
from fedsampling.workflow.plan import plan

SCALES = ("paper", "reduced", "quick")  # the largest first


def summary(paper: str, experiment: str) -> "pd.DataFrame":
    """Return the published runs of an experiment, at the largest scale that is complete.

    Parameters
    ----------
    paper, experiment : str
        Such as ``"fraboni2021clustered"`` and ``"mnist"``; ``fedsampling list experiments`` lists
        all.

    Returns
    -------
    DataFrame
        Columns ``case``, ``sampler``, ``seed``, ``at``, ``metric`` and ``value``;
        ``attrs["scale"]`` is the scale.

    Raises
    ------
    InputError
        If the paper or experiment is unknown, or not completely published at any scale.

    Examples
    --------
    >>> import fedsampling as fs
    >>> fs.summary("rizk2022importance", "regression").attrs["scale"]
    'paper'
    """
    for key, value in (("paper", paper), ("experiment", experiment)):
        if not isinstance(value, str):
            raise InputError(f"{key}: {value!r} is invalid; must be its name")
    root = Path() if Path("papers").is_dir() else project_folder()
    experiments = load_paper(paper, root / "papers").experiments
    check_known([experiment], experiments, "experiment: '{}' is unknown")
    published = published_runs(root / PUBLISHED)
    for scale in SCALES:
        expanded = plan({"scale": scale, "data": "official", "papers": [paper]}, root / "papers")
        jobs = [expanded.jobs[name] for name in expanded.jobs_of(paper, experiment)]
        if jobs and all(run.hash in published for job in jobs for run in job.runs):
            rows = _table(jobs, root / PUBLISHED / paper / f"{experiment}.parquet")
            rows.attrs["scale"] = scale
            return rows
    raise InputError(
        f"{paper}/{experiment}: its published runs are incomplete at every scale; "
        f"compute them with 'snakemake {paper}'"
    )


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
