"""Names of papers, experiments, samplers, datasets and jobs: ``fedsampling list``."""

import json
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from fedsampling.base.errors import InputError
from fedsampling.base.families import Named, description
from fedsampling.base.files import write_text
from fedsampling.base.progress import align
from fedsampling.base.records import Strict
from fedsampling.base.yaml_reading import parse_yaml
from fedsampling.clients.availability import Availability
from fedsampling.clients.delays import DelayModel
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.data.partitions.partition import Partition
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import Paper
from fedsampling.experiments.resolving import load_papers
from fedsampling.learning.model import Model
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


# Files that are generated from the typed models: ``config.yaml`` and the JSON schemas.


REPOSITORY = Path(__file__).parents[3]


def generated() -> dict[str, str]:
    """Return each generated file's path and content."""
    schemas: dict[str, type[Strict]] = {"config": Config, "paper": Paper}
    files = {"config.yaml": documented()}
    for name, model in schemas.items():
        dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        text = json.dumps(dialect | model.model_json_schema(), indent=2, ensure_ascii=False)
        files[f"workflow/schemas/{name}.schema.json"] = f"{text}\n"
    return files


def documented() -> str:
    """Return the default ``config.yaml`` with a comment above each key."""
    lines = [
        "# yaml-language-server: $schema=workflow/schemas/config.schema.json",
        "# Settings of the pipeline. Override them with --configfile or --config; see README.md.",
        "# Generated by 'fedsampling schema': edit the values, not the comments.",
        *_documented(Config, Config().model_dump(mode="json")),
    ]
    return "\n".join(lines) + "\n"


def _documented(model: type[BaseModel], values: dict[str, Any], indent: str = "") -> list[str]:
    lines, start = [], f"{indent}# "
    for name, field in model.model_fields.items():
        lines += [] if indent else [""]
        comment = textwrap.wrap(field.description or "", 96 - len(start))
        lines += [start + line for line in comment]
        record = field.annotation
        if isinstance(record, type) and issubclass(record, BaseModel):
            lines += [f"{indent}{name}:", *_documented(record, values[name], indent + "  ")]
        else:
            text = yaml.safe_dump({name: values[name]}, sort_keys=False).rstrip()
            lines.append(textwrap.indent(text, indent))
    return lines


def differing() -> list[str]:
    """Return the files that differ from their generated content.

    In ``config.yaml`` values may differ; only missing or extra keys and comments count.
    """
    if (Path(__file__).parents[1] / "project").is_dir():
        raise InputError("schema: not available in an installed package; run it in the repository")
    if Path.cwd() != REPOSITORY:
        raise InputError(
            f"{Path.cwd()}: is not the repository of this fedsampling; run this in {REPOSITORY}"
        )
    return [
        name
        for name, content in generated().items()
        if not Path(name).is_file()
        or _content(name, Path(name).read_text("utf-8")) != _content(name, content)
    ]


def check() -> None:
    """Raise an InputError with one line for each file that is out of date."""
    if names := differing():
        raise InputError(*(f"{name}: out of date; run 'fedsampling schema'" for name in names))


def write() -> list[Path]:
    """Write every generated file; return the files that changed."""
    changed = [Path(name) for name in differing()]
    for path in changed:
        write_text(path, generated()[str(path)])
    return changed


def _content(name: str, text: str) -> object:
    if name != "config.yaml":
        return text
    comments = [line for line in text.splitlines() if line.lstrip().startswith("#")]
    return comments, sorted(parse_yaml(text, name) or {})
