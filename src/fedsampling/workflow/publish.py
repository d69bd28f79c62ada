"""Published runs: adding finished runs to them, ``fedsampling publish``."""

from collections.abc import Collection
from pathlib import Path

from fedsampling.base.errors import InputError, check_known
from fedsampling.base.files import write_record
from fedsampling.runs import store
from fedsampling.runs.execute import locate
from fedsampling.runs.places import INDEX, PUBLISHED, published_runs, run_stores
from fedsampling.workflow.project import Project


def publish_runs(names: Collection[str], project: Project, folder: Path = PUBLISHED) -> list[str]:
    """Add finished runs to the published runs, and rewrite the index.

    A run that several experiments share is stored with the first. Published runs stay unchanged.
    Returns a line for each changed experiment, or one if none changed.
    """
    plan, config = project.plan, project.config
    valid = {*plan.papers, *plan.experiments}
    valid |= {f"{key}/{name}" for key, paper in plan.papers.items() for name in paper.left_out}
    check_known([name for name in names if "/" not in name], plan.papers, "'{}' is unknown")
    check_known([name for name in names if "/" in name], valid, "'{}' is unknown")
    if config.scale not in ("reduced", "paper") or config.data != "official":
        raise InputError(
            "scale: runs at quick scale or with embedded data cannot be published; "
            "use scale=reduced or scale=paper, and data=official"
        )
    target, shared = run_stores(project.results, config)
    published = set(published_runs(folder))
    gained: dict[str, list[store.Result]] = {}
    for job in plan.jobs.values():
        if names and not {job.experiment_id, job.paper} & set(names):
            continue
        for run in job.runs:
            result = None if run.hash in published else locate(run.hash, target, shared, job.code)
            if result:
                published.add(run.hash)
                gained.setdefault(job.experiment_id, []).append(store.as_published(result))
    for name, runs in gained.items():
        path = folder / f"{name}.parquet"
        before = store.load_together(path).values() if path.is_file() else ()
        store.save_together(path, [*before, *runs])
    files = {
        f"{path.parent.name}/{path.stem}": store.load_together(path)
        for path in sorted(folder.glob("*/*.parquet"))
    }
    write_record(folder / INDEX, {name: sorted(runs) for name, runs in files.items()})
    lines = [f"{name}: {len(runs)} runs added" for name, runs in gained.items()]
    return lines or ["no run added: the others are published, unfinished, or of other code"]
