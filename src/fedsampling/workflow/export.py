"""Finished runs for other programs: ``fedsampling export``.

CSV and Parquet have one tidy table.  TensorBoard and Weights & Biases get one run per seed, if
their packages are installed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from fedsampling.base.errors import InputError
from fedsampling.base.files import replacing, writing
from fedsampling.base.lazy import pd
from fedsampling.base.text import plural
from fedsampling.workflow.project import Project
from fedsampling.workflow.run_tables import (
    COLUMNS,
    KEYS,
    Count,
    FinishedRun,
    finished_runs_of,
    flat_settings,
    selected_jobs,
)

Runs = Iterator[FinishedRun]
PACKAGES = {"tensorboard": "tensorboard", "wandb-offline": "wandb"}


def export(names: Sequence[str], form: str, out: Path | None, project: Project) -> Iterator[str]:
    """Write the finished runs of NAMES in a format of :data:`FORMATS`; describe the result."""
    if (package := PACKAGES.get(form)) and find_spec(package) is None:
        raise InputError(
            f"--format {form}: needs the package {package}, which is not installed; "
            f"'pip install {package}' adds it, and csv and parquet need nothing"
        )
    jobs = selected_jobs(project, names)
    settings = [flat_settings(job.runs[0].settings) for job in jobs]
    columns = ["hash", "data", *dict.fromkeys(key for record in settings for key in record)]
    suffix = f".{form}" if form in ("csv", "parquet") else ""
    path = out or project.folder / "export" / f"{'_'.join(names).replace('/', '-')}{suffix}"
    count = Count()
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        FORMATS[form](finished_runs_of(project, jobs, count), columns, path)
    yield f"{path}: {plural(count.finished, 'run')}"
    if missing := count.runs - count.finished:
        yield f"{plural(missing, 'run')} not finished, and left out; 'snakemake' computes them"


def _csv(runs: Runs, columns: Iterable[str], path: Path) -> None:
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        for i, run in enumerate(runs):
            run.table().reindex(columns=[*COLUMNS, *columns]).to_csv(
                file, index=False, header=i == 0
            )


def _parquet(runs: Runs, columns: Iterable[str], path: Path) -> None:
    """Write all runs; texts are categories, as all rows of a run share them."""
    listed = list(runs)
    numbers = np.repeat(np.arange(len(listed)), [len(run.result.table) for run in listed])
    joined = pd.concat([run.result.table for run in listed], ignore_index=True)
    table: dict[str, Any] = {}
    for key in (*KEYS, *joined.columns, *columns):
        if key in joined:
            table[key] = joined[key]
            continue
        values = pd.Series([{**run.names, **run.settings}.get(key) for run in listed])
        if values.dtype == object:
            values = values.map(str, na_action="ignore")
        if not pd.api.types.is_numeric_dtype(values):
            values = values.astype("category")
        table[key] = values.take(numbers).reset_index(drop=True)
    with replacing(path) as temporary:
        pd.DataFrame(table).to_parquet(temporary, index=False)


def _tensorboard(runs: Runs, columns: Iterable[str], path: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    for run in runs:
        with SummaryWriter(path / _name(run)) as writer:
            for at, metric, value in _rows(run):
                writer.add_scalar(metric, value, max(at, 0))
            lines = (f"    {key}: {value}" for key, value in run.settings.items())
            writer.add_text("settings", "\n".join(lines))


def _wandb(runs: Runs, columns: Iterable[str], path: Path) -> None:
    wandb: Any = import_module("wandb")

    path.mkdir(parents=True, exist_ok=True)
    for run in runs:
        names = run.names
        logged = wandb.init(
            project=names["paper"],
            group=f"{names['experiment']}/{names['case']}",
            name=f"{names['sampler']}-{names['seed']}",
            config={**names, **run.settings},
            mode="offline",
            dir=str(path),
        )
        by_round: dict[int, dict[str, float]] = {}
        for at, metric, value in _rows(run):
            by_round.setdefault(at, {})[metric] = value
        for at, values in sorted(by_round.items()):
            if at < 0:  # values of no round
                logged.summary.update(values)
            else:
                logged.log(values, step=at)
        logged.finish()


def _name(run: FinishedRun) -> str:
    names = run.names
    return f"{run.job.experiment_id}/{names['case']}/{names['sampler']}/seed-{names['seed']}"


def _rows(run: FinishedRun) -> Iterator[tuple[int, str, float]]:
    table = run.result.table
    for at, metric, value in zip(table["at"], table["metric"], table["value"], strict=True):
        yield int(at), str(metric), float(value)


FORMATS: dict[str, Callable[[Runs, Iterable[str], Path], Any]] = {
    "csv": _csv,
    "parquet": _parquet,
    "tensorboard": _tensorboard,
    "wandb-offline": _wandb,
}
