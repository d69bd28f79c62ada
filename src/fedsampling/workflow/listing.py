"""Names of papers, experiments, samplers, datasets and jobs: ``fedsampling list``."""

from collections.abc import Iterator, Sequence

from fedsampling.base.families import Named, description
from fedsampling.base.text import align
from fedsampling.clients.availability import Availability
from fedsampling.clients.delays import DelayModel
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.data.partitions.partition import Partition
from fedsampling.experiments.papers import Paper
from fedsampling.experiments.selecting import load_papers
from fedsampling.learning.models.settings import Model
from fedsampling.learning.training.history import METRICS
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.workflow.project import Project

FAMILIES: dict[str, type[Named]] = {
    "samplers": Scheme,
    "schemes": Scheme,  # the same; the name of the class
    "datasets": Dataset,
    "partitions": Partition,
    "models": Model,
    "delays": DelayModel,
    "availabilities": Availability,
}
KINDS = ("papers", "experiments", "artefacts", *FAMILIES, "metrics", "jobs")


def listing(kind: str, project: Project) -> Sequence[str]:
    """List names of one of KINDS, with a short description of each, in aligned lines.

    Papers, experiments and artefacts are those of the configured papers, at any scale.
    """
    if kind in FAMILIES:
        members = FAMILIES[kind].members()
        return align((name, description(member)) for name, member in members.items())
    if kind == "metrics":
        return align(METRICS.items())
    if kind == "jobs":
        return [*project.plan.jobs]
    # Everything in the papers' files, including parts that this configuration does not run.
    at_paper_scale = {"scale": "paper", "data": "official"}
    everything = project.config.model_copy(
        update={**at_paper_scale, "overrides": {}, "experiments": None}
    )
    papers = load_papers(everything, project.papers).values()
    return align(row for paper in papers for row in _rows(paper, kind))


def _rows(paper: Paper, kind: str) -> Iterator[tuple[str, str]]:
    if kind == "papers":
        yield paper.key, paper.title
    elif kind == "experiments":
        for name, settings in paper.experiments.items():
            yield f"{paper.key}/{name}", str(settings.get("title", ""))
    else:
        for name, spec in paper.artefacts.items():
            yield f"{paper.key}/{name}", f"{spec.kind}: {spec.title}"
