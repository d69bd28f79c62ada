"""Validation of a configuration before anything runs: ``fedsampling check``."""

from fedsampling.base.errors import InputError, gathering
from fedsampling.experiments.paper_code import defining_modules
from fedsampling.experiments.specs import Job
from fedsampling.report.citation import paper_bibtex
from fedsampling.workflow.project import Project


def check_all(project: Project) -> list[str]:
    """Check the configuration, every paper's file and every run.

    For experiments with overrides, the clients are also loaded if their data are available.  Each
    paper must have a citation and all functions that its figures and claims name.

    Returns a summary; and a line for each experiment that has overrides but is left out at scale
    best.
    """
    plan, config = project.plan, project.config
    problems: list[str] = []
    if config.device == "cuda" and config.cluster.gpu == "none":
        from fedsampling.runs.execute import device  # pandas takes long to import

        with gathering(problems):
            device(config)  # skipped on clusters: another node may have the GPU
    for key, paper in plan.papers.items():
        with gathering(problems):
            paper_bibtex(paper.folder / "paper.bib", key)
        for files, names in (("figures", paper.artefacts), ("claims", paper.claims)):
            with gathering(problems):
                defining_modules(paper.folder, files, *names)
    changed = [
        job
        for job in plan.jobs.values()
        if config.overrides.get(job.paper, {}).get(job.experiment) and not job.block
    ]
    problems += _misfits(project, changed)
    if problems:
        raise InputError(*dict.fromkeys(problems))
    runs = sum(len(job.runs) for job in plan.jobs.values())
    lines = [f"{project.file}: valid: {len(plan.jobs)} jobs, {runs} runs"]
    for key, changes in config.overrides.items():
        left_out = plan.papers[key].left_out
        lines += [
            f"overrides.{key}.{name}: left out: {reason}"
            for name, reason in left_out.items()
            if changes.get(name)
        ]
    return lines


def _misfits(project: Project, jobs: list[Job]) -> list[str]:
    """Load the clients of jobs that train a network, if available; return a line per error."""
    problems: list[str] = []
    for job in jobs:
        lines: list[str] = []
        with gathering(lines):
            _check_clients(job, project)
        problems += [f"overrides.{job.paper}.{job.experiment}.{line}" for line in lines]
    return problems


def _check_clients(job: Job, project: Project) -> None:
    """Raise an InputError if a network's settings do not fit its data, if these are available."""
    # These modules import pandas and torch, which takes seconds.
    from fedsampling.experiments.simulations.network import Network
    from fedsampling.experiments.simulations.simulation import Where
    from fedsampling.runs.cluster.cost_model import available_data, work_of

    where, data = Where(project.data, project.config.mirror), job.runs[0].data
    network = job.simulation
    if not isinstance(network, Network) or data != available_data(job, where.cache, where.mirror):
        return
    limit = 60.0 * project.config.cluster.max_runtime
    largest = work_of(network, data, where, len(job.runs), limit).largest
    if network.work.batch > largest:
        raise InputError(
            f"work.batch: {network.work.batch} exceeds the samples of every client; "
            f"must be at most {largest:.0f}"
        )
