"""Finished runs, rerun on this machine and compared with the stored results.

``make reproduce`` rechecks a few runs that need no data files, and the report shows the outcome.
``fedsampling recheck --share`` rechecks more.  The results go to no store.
"""

import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from math import inf

import numpy as np

from fedsampling.base.arrays import Array
from fedsampling.base.files import write_record
from fedsampling.base.lazy import pd
from fedsampling.evidence.recomputed import (
    ACCURACY_TOLERANCE,
    RECHECK,
    TOLERANCE,
    Recomputed,
    compare_tables,
    of_same_metrics,
)
from fedsampling.experiments.networks.training import Additions, train_network
from fedsampling.experiments.simulations.network import NetworkSimulation as Trained
from fedsampling.experiments.simulations.network import load_problem
from fedsampling.experiments.simulations.simulation import RunContext, Simulation
from fedsampling.experiments.specs import Job, RunSpec
from fedsampling.runs import store
from fedsampling.runs.environment import choose_products, device
from fedsampling.runs.execute import locate_shared
from fedsampling.runs.places import finished_runs, run_stores
from fedsampling.runs.rows import digest
from fedsampling.workflow.project import Project

SPOT_CHECK_SECONDS = 20.0  # processor time of a spot check
MAX_RUN_SECONDS = 5.0  # duration of a run in a spot check
MAX_RUNS = 24
FIXED = {"delays", "label_counts", "labels"}  # information that training does not change
PERTURBATION = 2.0**-24  # of initial parameters: half the spacing of numbers near 1


def recheck(
    project: Project, share: float | None = None, seed: int | None = None
) -> list[Recomputed]:
    """Rerun some finished runs, and write the outcome to ``recheck.json``.

    Runs that measure times on the machine are never chosen.

    `share`: share of all finished runs.  If None, runs that need no data files, up to 20 seconds of
    processor time. `seed`: seed that selects the runs; default: today's date.
    """
    with project.made("recheck").making():
        return _recheck(project, share, seed)


def _recheck(project: Project, share: float | None, seed: int | None) -> list[Recomputed]:
    drawn_by = datetime.now(UTC).date().toordinal() if seed is None else seed
    configured: dict[str, tuple[Job, RunSpec]] = {}  # each run once
    for job in project.plan.jobs.values():
        if job.simulation.timed:
            continue
        for run in job.runs:
            if share is not None or run.data == "generated":
                configured.setdefault(run.hash, (job, run))
    drawn = [*configured.values()]
    random.Random(drawn_by).shuffle(drawn)
    choose_products(project.config)
    context = RunContext(project.data, project.config.mirror, device(project.config))
    recomputed: list[Recomputed] = []
    start = time.process_time()
    if share is not None:
        drawn = _share_of_finished(project, drawn, share)
    for job, run, before in _finished(project, drawn, share is None):
        (table,) = job.simulation.simulate(run.data, [run.seed], context).tables
        outcome, difference, until = compare_tables(table, before.table)
        late = until is not None and until > _first_round(table)
        if late and is_sensitive(job.simulation, run, table, context):
            outcome = "rounding"
        same = of_same_metrics(table, before.table)
        if before.metadata["digest"] in (digest(same), digest(store.rounded(same))):
            outcome, difference = "equal", 0.0
        recomputed.append(Recomputed(job.name, run.seed, run.hash, outcome, difference, until))
        spent = time.process_time() - start
        if share is None and (
            len(recomputed) == MAX_RUNS or spent > SPOT_CHECK_SECONDS - MAX_RUN_SECONDS
        ):
            break
    tolerances = {"tolerance": TOLERANCE, "accuracy_tolerance": ACCURACY_TOLERANCE}
    runs = [asdict(result) for result in recomputed]
    write_record(project.folder / RECHECK, {"drawn_by": drawn_by, **tolerances, "runs": runs})
    return recomputed


def is_sensitive(
    settings: Simulation, run: RunSpec, table: "pd.DataFrame", context: RunContext
) -> bool:
    """Whether differences in rounding, such as between processors, change the course of a run.

    They may if the sampler reads losses or updates, because ties may be decided differently.
    Otherwise, the run in `table` is repeated with initial parameters changed by
    :data:`PERTURBATION`.
    """
    if not isinstance(settings, Trained):
        return False
    if settings.sampler.needs - FIXED:
        return True
    problem = load_problem(settings, run.data, context)
    network = settings.model.build(problem.x.shape[1:], problem.classes)

    def draw(rng: np.random.Generator) -> dict[str, Array]:
        return {
            name: value + PERTURBATION * rng.choice([-1, 1], value.shape)
            for name, value in network.draw(rng).items()
        }

    additions = Additions(network=replace(network, draw=draw))
    (perturbed,) = train_network(settings, problem, run.data, [run.seed], context, additions)
    later = (table["at"] > _first_round(table)).to_numpy()  # a model of zeros has ties at first
    return compare_tables(perturbed[later], table[later])[0] == "differs"


def _first_round(table: "pd.DataFrame") -> int:
    """Return the first round with measurements; values of the whole run have the round −1."""
    return int(table.loc[table["at"] >= 0, "at"].min())


def _share_of_finished(
    project: Project, drawn: Iterable[tuple[Job, RunSpec]], share: float
) -> list[tuple[Job, RunSpec]]:
    """Choose the first of the finished runs, without reading them, in the order of their jobs.

    An experiment's published runs share a file, and only a few files are kept in memory.
    """
    finished = finished_runs(run_stores(project.results, project.config)[1])
    candidates = [(job, run) for job, run in drawn if run.hash in finished]
    chosen = candidates[: max(1, round(share * len(candidates)))]
    return sorted(chosen, key=lambda one: one[0].name)


def _finished(
    project: Project, drawn: Iterable[tuple[Job, RunSpec]], spot: bool
) -> Iterator[tuple[Job, RunSpec, store.Result]]:
    """Read the finished runs that can be compared, lazily, because reading takes time.

    A spot check leaves out long runs.  The seeds of a job are trained together and share its time;
    a single seed may take nearly as long as all seeds.
    """
    stores = run_stores(project.results, project.config)[1]
    for job, run in drawn:
        result = locate_shared(run.hash, stores, job.code)
        limit = MAX_RUN_SECONDS / len(job.runs) if spot else inf
        if result and result.metadata["seconds"] <= limit:
            yield job, run, result
