"""Published runs: adding finished runs to them, ``fedsampling publish``."""

from collections.abc import Collection
from itertools import chain
from pathlib import Path

from fedsampling.base.errors import InputError, check_known
from fedsampling.base.files import write_record
from fedsampling.runs import store
from fedsampling.runs.execute import locate
from fedsampling.runs.places import INDEX, PUBLISHED, published_runs, run_stores
from fedsampling.workflow.plan import Plan
from fedsampling.workflow.project import Project


def publish_runs(names: Collection[str], project: Project, folder: Path = PUBLISHED) -> list[str]:
    """Add finished runs to the published runs, and rewrite the index.

    With scale `best`, these are runs of the paper's and of reduced scale. A run that several
    experiments share is stored with the first. Published runs stay unchanged. Returns a line for
    each changed experiment, or one if none changed.
    """
    config = project.config
    if config.scale == "quick" or config.data != "official":
        raise InputError(
            "scale: runs at quick scale or with embedded data cannot be published; "
            "use scale=reduced, paper or best, and data=official"
        )
    scales = ("paper", "reduced") if config.scale == "best" else (config.scale,)
    plans = [project.with_config(scale=scale).plan for scale in scales]
    _check_names(names, plans)
    target, shared = run_stores(project.results, config)
    published = set(published_runs(folder))
    gained: dict[str, list[store.Result]] = {}
    for job in chain.from_iterable(plan.jobs.values() for plan in plans):
        if names and not {job.experiment_id, job.paper} & set(names):
            continue
        for run in job.runs:
            result = None if run.hash in published else locate(run.hash, target, shared, job.code)
            if result:
                published.add(run.hash)
                gained.setdefault(job.experiment_id, []).append(store.as_published(result))
    for name, runs in gained.items():
        path = folder / f"{name}.parquet"
        before = store.load_together(path) if path.is_file() else {}
        # A call that was interrupted before it wrote the index may have added some of them.
        added = {run.metadata["hash"]: run for run in runs}
        store.save_together(path, {**added, **before}.values())
    files = {
        f"{path.parent.name}/{path.stem}": store.load_together(path)
        for path in sorted(folder.glob("*/*.parquet"))
    }
    write_record(folder / INDEX, {name: sorted(runs) for name, runs in files.items()})
    lines = [f"{name}: {len(runs)} runs added" for name, runs in gained.items()]
    return lines or ["no run added: the others are published, unfinished, or of other code"]


def _check_names(names: Collection[str], plans: Collection[Plan]) -> None:
    """Refuse a NAME that is no paper and no experiment at any of the scales."""
    papers = {key for plan in plans for key in plan.papers}
    experiments = {name for plan in plans for name in plan.experiments}
    for plan in plans:
        experiments |= {f"{key}/{name}" for key, p in plan.papers.items() for name in p.left_out}
    check_known([name for name in names if "/" not in name], papers, "'{}' is unknown")
    check_known([name for name in names if "/" in name], papers | experiments, "'{}' is unknown")
