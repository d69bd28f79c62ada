"""Names of papers, experiments, samplers, datasets and jobs: ``fedsampling list``."""

from collections.abc import Iterator, Sequence
from typing import Any

from fedsampling.base.families import Named, description
from fedsampling.base.plain_text import align
from fedsampling.clients.availability.availability import Availability
from fedsampling.clients.delays.delay_model import DelayModel
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.data.partitions.partition import Partition
from fedsampling.experiments.paper_selection import load_papers
from fedsampling.experiments.papers import Paper
from fedsampling.learning.models.model import Model
from fedsampling.samplers.scheme import Scheme
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
# Metrics of training a network; a paper's own run kinds may have more.
METRICS = {
    "loss": "training loss, mean over clients weighted by importance",
    "loss_std": "standard deviation of the training loss over clients",
    "accuracy": "share of correctly classified test samples",
    "accuracy_std": "standard deviation of the accuracy over clients; if clients have test samples",
    "accuracy_worst": "mean accuracy of the worst tenth of clients; with evaluation.clients",
    "accuracy_q10": "10 % quantile of the clients' accuracies; also accuracy_q50 and accuracy_q90",
    "test_loss": "mean loss on the test samples; for regressions",
    "train_loss": "loss on the mini-batches of a round, mean over the clients that trained",
    "clients": "number of clients whose models were averaged in a round",
    "reports": "number of clients that reported to the server in a round",
    "labels": "number of different labels among the clients of a round",
    "model_bits": "bits of models that clients sent in a round",
    "norm_bits": "bits of update norms that clients sent in a round",
    "down_bits": "bits that the server sent in a round",
    "seconds": "simulated duration of a round; with delays",
    "gradients": "number of sample gradients computed in a round",
    "client_rounds": "rounds in which a client's update was used; with evaluation.by_client, whose "
    "metrics have the client in the column at",
    "client_weight": "sum of a client's weights over the rounds",
    "client_accuracy": "accuracy of the final model on a client's own test samples; on its "
    "training samples if it has none",
    "client_loss": "loss of the final model on the same samples",
    "client_tests": "number of a client's own test samples",
    "client_samples": "number of a client's training samples",
    "client_importance": "a client's importance p",
    "client_offered": "rounds in which a client was available",
    "diverged_at": "round after which the model is no longer finite; −1 if it stays finite",
}
KINDS = ("papers", "experiments", "artefacts", *FAMILIES, "metrics", "jobs")


def listing(kind: str, project: Project) -> Sequence[str]:
    """List names, with a short description of each.

    Papers, experiments and artefacts are those of the configured papers, at any scale.

    `kind`: one of KINDS. Returns aligned lines of name and description; jobs have no description.
    """
    if kind in FAMILIES:
        members = FAMILIES[kind].members()
        return align((name, description(member)) for name, member in members.items())
    if kind == "metrics":
        return align(METRICS.items())
    if kind == "jobs":
        return [*project.plan.jobs]
    # Everything in the papers' files, including parts that this configuration does not run.
    changes: dict[str, Any] = {
        "scale": "paper",
        "data": "official",
        "overrides": {},
        "experiments": None,
    }
    config = project.config.model_copy(update=changes)
    return align(
        row for paper in load_papers(config, project.papers).values() for row in _rows(paper, kind)
    )


def _rows(paper: Paper, kind: str) -> Iterator[tuple[str, str]]:
    if kind == "papers":
        yield paper.key, paper.title
    elif kind == "experiments":
        for name, settings in paper.experiments.items():
            yield f"{paper.key}/{name}", str(settings.get("title", ""))
    else:
        for name, spec in paper.artefacts.items():
            yield f"{paper.key}/{name}", f"{spec.kind}: {spec.title}"
