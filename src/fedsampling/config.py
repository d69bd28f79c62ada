"""What a user changes: the typed model behind ``config.yaml``.

The model is the one source: ``fedsampling schema`` writes the documented ``config.yaml`` of the
repository and ``workflow/schemas/*.json`` from it, and a test keeps them in step.
"""

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from fedsampling.validation import Strict, check, distinct, read_yaml

MIRROR_VARIABLE = "FEDSAMPLING_MIRROR"


class Config(Strict):
    """What to reproduce, at which scale, from which data."""

    scale: Literal["quick", "reduced", "paper"] = Field(
        "quick",
        description="quick: minutes on a laptop, to see that everything works; "
        "reduced: what a processor can do in hours where the paper's size needs a GPU, the paper's "
        "size elsewhere; paper: the papers' own sizes. Claims are judged on these alone.",
    )
    data: Literal["embedded", "official"] = Field(
        "embedded",
        description="embedded: small generated stand-ins, no download; "
        "official: the real datasets, downloaded and verified.",
    )
    papers: list[str] = Field(
        default_factory=lambda: [
            "rizk2022importance",
            "fraboni2022general",
            "fraboni2021clustered",
            "chen2022optimal",
            "harshvardhan2025latency",
        ],
        description="Which papers to reproduce: folders of papers/.",
    )
    mirror: str | None = Field(
        None,
        description="Folder or URL that holds the official files under their own names; "
        f"tried before the official addresses. The variable {MIRROR_VARIABLE} stands in when null.",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        description="Where networks are trained; auto: on the GPU if there is one.",
    )
    checkpoint_seconds: float = Field(
        60.0,
        ge=0,
        description="Time between two checkpoints of a job that trains a network; a job that is "
        "killed continues from the last one.",
    )
    reuse: list[str] = Field(
        default_factory=list,
        description="Folders of finished runs (shared or shipped) that are used before computing.",
    )
    overrides: dict[str, dict[str, dict[str, Any] | None]] = Field(
        default_factory=dict,
        description="Changes to experiments: paper, then experiment, then its keys; for example "
        "{rizk2022importance: {regression: {seeds: [0, 1, 2]}}}. Null leaves an experiment out, "
        "and what is drawn from it.",
    )

    @field_validator("papers")
    @classmethod
    def _distinct(cls, papers: list[str]) -> list[str]:
        if not papers:
            raise ValueError("no papers; give at least one")
        return distinct(papers)


def load(path: Path) -> Config:
    """Read and check a configuration file.

    Raises
    ------
    InputError
        With one line for every error.
    """
    return parse(read_yaml(path), path.name)


def parse(given: dict[str, Any], origin: str) -> Config:
    """Check a configuration that is plain data already; `origin` begins each error line."""
    config = check(Config, given, f"{origin}: ")
    if config.mirror is None and os.environ.get(MIRROR_VARIABLE):
        config = config.model_copy(update={"mirror": os.environ[MIRROR_VARIABLE]})
    return config
