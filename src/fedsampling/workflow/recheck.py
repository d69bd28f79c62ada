"""Rerun finished runs on this machine and compare the results with the stored results.

Results of a recheck do not go to a store.  ``make reproduce`` rechecks some runs that need no data
files, and the report shows the outcome; ``fedsampling recheck`` can check any share of the runs.
"""

import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime

from fedsampling.base.files import write_record
from fedsampling.evidence.agreement import (
    ACCURACY_TOLERANCE,
    FILE,
    TOLERANCE,
    Recomputed,
    compare,
)
from fedsampling.experiments.simulations.simulation import Where
from fedsampling.experiments.specs import Job, RunSpec
from fedsampling.runs import store
from fedsampling.runs.execute import choose_products, device
from fedsampling.runs.places import finished_runs
from fedsampling.workflow.project import Project

SPOT_CHECK_SECONDS = 20.0  # processor time of a spot check
MAX_RUN_SECONDS = 5.0  # duration of a run in a spot check
MAX_RUNS = 24
FIXED = {"delays", "label_counts", "labels"}  # information that training does not change


def recheck(
    project: Project, share: float | None = None, seed: int | None = None
) -> list[Recomputed]:
    """Rerun some finished runs, and write the outcome to ``recheck.json``.

    Runs that measure the speed of the machine are never chosen.

    Parameters
    ----------
    project : Project
    share : float, optional
        Share of all finished runs.  If None, runs that need no data files, up to 20 seconds of
        processor time.
    seed : int, optional
        Seed that selects the runs; default: today's date.

    Returns
    -------
    list of Recomputed
    """
    drawn_by = datetime.now(UTC).date().toordinal() if seed is None else seed
    drawn = list(_configured_runs(project, share is None))
    random.Random(drawn_by).shuffle(drawn)
    choose_products(project.config)
    where = Where(project.data, project.config.mirror, device(project.config))
    done: list[Recomputed] = []
    start = time.process_time()
    chosen = _finished(project, drawn, share is None)
    if share is not None:
        finished = list(chosen)
        chosen = iter(finished[: max(1, round(share * len(finished)))])
    for job, run, before in chosen:
        (table,) = job.simulation.simulate(run.data, [run.seed], where).tables
        needs: frozenset[str] = getattr(
            getattr(job.simulation, "sampler", None), "needs", frozenset()
        )
        outcome, difference, until = compare(table, before.table, bool(needs - FIXED))
        if before.metadata["digest"] in (
            store.digest(table),
            store.digest(store.rounded(table)),
        ):
            outcome, difference = "equal", 0.0
        done.append(Recomputed(job.name, run.seed, run.hash, outcome, difference, until))
        spent = time.process_time() - start
        if share is None and (
            len(done) == MAX_RUNS or spent > SPOT_CHECK_SECONDS - MAX_RUN_SECONDS
        ):
            break
    write_record(
        project.folder / FILE,
        {
            "drawn_by": drawn_by,
            "tolerance": TOLERANCE,
            "accuracy_tolerance": ACCURACY_TOLERANCE,
            "runs": [asdict(each) for each in done],
        },
    )
    return done


def _configured_runs(project: Project, spot: bool) -> Iterator[tuple[Job, RunSpec]]:
    """Yield each configured run once; for a spot check, only runs that need no data files."""
    seen = set()
    for job in project.plan.jobs.values():
        for run in job.runs:
            if run.hash not in seen and not (spot and run.data != "generated"):
                seen.add(run.hash)
                yield job, run


def _finished(
    project: Project, drawn: Iterable[tuple[Job, RunSpec]], spot: bool
) -> Iterator[tuple[Job, RunSpec, store.Result]]:
    """Read the finished runs that can be compared, lazily, because reading takes time.

    A spot check leaves out long runs.  The seeds of a job are trained together and share its time;
    a seed alone may take nearly as long as all of them.
    """
    stores = finished_runs(project.results, project.config)[1]
    for job, run in drawn:
        result = None if job.simulation.timed else store.find(stores, run.hash, None)
        if result is None:
            continue
        of_job = result.metadata["seconds"] * len(job.runs)
        if not (spot and of_job > MAX_RUN_SECONDS):
            yield job, run, result
