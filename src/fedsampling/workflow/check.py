"""A configuration and the papers' files, checked before anything runs: ``fedsampling check``."""

from fedsampling.base.errors import InputError, gathering
from fedsampling.experiments.paper_modules import defining_modules
from fedsampling.experiments.simulations.network import NetworkSimulation
from fedsampling.experiments.simulations.simulation import RunContext
from fedsampling.experiments.specs import Job
from fedsampling.report.paper_bib import paper_bibtex
from fedsampling.runs.environment import device
from fedsampling.workflow.job_costs import available_data, max_bytes_of_job, work_of
from fedsampling.workflow.project import Project


def check_all(project: Project) -> list[str]:
    """Check the configuration, the papers' files and every run; return a summary.

    For experiments with overrides, the clients are also loaded if their data are available.
    """
    plan, config = project.plan, project.config
    problems: list[str] = []
    if config.device == "cuda" and config.cluster.gpu == "none":
        with gathering(problems):
            device(config)  # skipped on clusters: another node may have the GPU
    for key, paper in plan.papers.items():
        with gathering(problems):
            paper_bibtex(paper.folder / "paper.bib", key)
        for files, names in (("figures", paper.artefacts), ("claims", paper.claims)):
            with gathering(problems):
                defining_modules(paper.folder, files, *names)
    for job in plan.jobs.values():
        if config.overrides.get(job.paper, {}).get(job.experiment) and not job.block:
            misfits: list[str] = []
            with gathering(misfits):
                _check_clients(job, project)
            problems += [f"overrides.{job.paper}.{job.experiment}.{line}" for line in misfits]
    if problems:
        raise InputError(*dict.fromkeys(problems))
    runs = sum(len(job.runs) for job in plan.jobs.values())
    lines = [f"{project.file}: valid: {len(plan.jobs)} jobs, {runs} runs"]
    lines += [
        f"overrides.{key}.{name}: left out: {reason}"
        for key, changes in config.overrides.items()
        for name, reason in plan.papers[key].left_out.items()
        if changes.get(name)
    ]
    return lines


def _check_clients(job: Job, project: Project) -> None:
    """Raise an InputError if a network's settings do not fit its data, if these are available."""
    context, data = RunContext(project.data, project.config.mirror), job.runs[0].data
    network = job.simulation
    if not isinstance(network, NetworkSimulation) or data != available_data(
        job, context.cache, context.mirror
    ):
        return
    largest = work_of(network, data, context, max_bytes_of_job(project.config)).largest
    if network.work.batch > largest:
        raise InputError(
            f"work.batch: {network.work.batch} exceeds the samples of every client; "
            f"must be at most {largest:.0f}"
        )
