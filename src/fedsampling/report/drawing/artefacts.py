"""Artefacts: figures and tables, as drawn and as files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd
from matplotlib.figure import Figure

from fedsampling.evidence.provenance import Provenance
from fedsampling.evidence.provenance import Summaries as Summaries
from fedsampling.experiments.papers import Paper


@dataclass(frozen=True)
class Artefact:
    """A figure or table, drawn."""

    data: pd.DataFrame  # tidy data, written as CSV and, for a table, also as HTML and LaTeX
    figure: Figure | None = None  # none for a table
    alt: str = ""  # one sentence for readers who cannot see the figure
    notes: tuple[str, ...] = ()  # sentences below the caption
    # number of significant digits in a table, by column
    formats: Mapping[str, int] = field(default_factory=dict)
    table: pd.DataFrame | None = None  # the table to show, if it differs from `data`
    caption: str = ""  # replaces the caption in ``paper.yaml``, unless empty
    caption_end: str = ""  # computed sentences that end the caption


Draw = Callable[[Summaries, Paper], Artefact]


@dataclass(frozen=True)
class Exhibit:
    """An artefact as files, described by its ``artefact.json``.

    Names and SHA-256 of files are by format. `command` redraws it; `badges` are reasons why it is
    not evidence.
    """

    paper: str
    artefact: str
    kind: Literal["figure", "table", "text"]
    title: str
    caption: str
    alt: str
    notes: tuple[str, ...]
    badges: tuple[str, ...]
    files: Mapping[str, str]
    digests: Mapping[str, str]
    command: str
    provenance: Provenance
