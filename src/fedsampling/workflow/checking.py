"""Validation of a configuration before anything runs: ``fedsampling check``."""

from fedsampling.base.errors import InputError, gathering
from fedsampling.experiments.papers import defining
from fedsampling.experiments.specs import Job
from fedsampling.report.citation import paper_bibtex
from fedsampling.workflow.project import Project


def check_all(project: Project) -> list[str]:
    """Check the configuration, every paper's file and every run.

    For experiments with overrides, the clients are also loaded if their data are available.  Each
    paper must have a citation and all functions that its figures and claims name.

    Returns
    -------
    list of str
        A summary; and a line for each experiment that has overrides but is left out at scale best.

    Raises
    ------
    InputError
        One line per error.
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
                defining(paper, files, *names)
    changed = [
        job
        for job in plan.jobs.values()
        if config.overrides.get(job.paper, {}).get(job.experiment) and not job.block
    ]
    problems += _rehearse(project, changed)
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


def _rehearse(project: Project, jobs: list[Job]) -> list[str]:
    """Load the clients of some jobs; return a line per error."""
    if not jobs:
        return []
    from fedsampling.runs.cluster.calibration import rehearse  # pandas takes long to import

    problems: list[str] = []
    for job in jobs:
        lines: list[str] = []
        with gathering(lines):
            rehearse(job, project.results, project.config)
        problems += [f"overrides.{job.paper}.{job.experiment}.{line}" for line in lines]
    return problems
