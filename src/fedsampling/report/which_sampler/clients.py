"""Values of single clients, for the section "Who is left out?".

``papers/crossmatrix`` draws a figure for each dataset; its CSV file has a row for each sampler and
client, in the order in which the clients are shown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from fedsampling.experiments.cross_matrix import CLIENTS
from fedsampling.report.content import Chapter
from fedsampling.report.names import display_name

FINDINGS = "left_out"  # artefact whose notes are the findings
CLIENT_MEASURES = ("participation", "relative_weight", "accuracy")
RUN_MEASURES = ("never_selected", "worst_accuracy")
COLUMNS = {"sampler", "client", "samples", "expected", *CLIENT_MEASURES, *RUN_MEASURES}
DIGITS = 3


@dataclass(frozen=True)
class DatasetClients:
    """A dataset with its clients.

    `key`, `title`: of the artefact. `note`: the samples on which the accuracy is measured, and
    clients that are never available. `names`: of the clients, or else their numbers. `samples`:
    training samples of each client. `expected`: participation rate of each client that MD sampling
    is expected to have. `samplers`: by key: ``label``; a number for each of RUN_MEASURES; and for
    each of CLIENT_MEASURES one number of each client, None where there is none.
    """

    key: str
    title: str
    note: str
    names: list[object]
    samples: list[float | None]
    expected: list[float | None]
    samplers: Mapping[str, Mapping[str, object]]


@dataclass(frozen=True)
class LeftOut:
    """All datasets with their clients, and the findings in sentences."""

    datasets: tuple[DatasetClients, ...]
    findings: tuple[str, ...]

    def plain(self) -> list[dict[str, object]]:
        """Return the datasets for the page's script."""
        return [asdict(dataset) for dataset in self.datasets]


def read(folder: Path, chapter: Chapter) -> LeftOut:
    """Read the datasets whose clients were recorded; none if these artefacts were not drawn.

    `folder`: holds the chapter's artefacts. `chapter`: the cross matrix.
    """
    datasets = []
    for exhibit in chapter.exhibits:
        if not exhibit.artefact.startswith(CLIENTS):
            continue
        table = pd.read_csv(folder / exhibit.artefact / exhibit.files["csv"])
        if table.empty or not set(table.columns) >= COLUMNS:
            continue
        parts = {str(name): part for name, part in table.groupby("sampler", sort=False)}
        first = next(iter(parts.values()))
        datasets.append(
            DatasetClients(
                exhibit.artefact,
                exhibit.title,
                " ".join(exhibit.notes),
                first["client"].tolist(),
                _rounded(first["samples"]),
                _rounded(first["expected"]),
                {
                    name: {
                        "label": display_name(name).title,
                        **{measure: _rounded(part[measure])[0] for measure in RUN_MEASURES},
                        **{measure: _rounded(part[measure]) for measure in CLIENT_MEASURES},
                    }
                    for name, part in parts.items()
                },
            )
        )
    findings = [
        note
        for exhibit in chapter.exhibits
        if exhibit.artefact == FINDINGS
        for note in exhibit.notes
        if "asterisk" not in note  # of its table, which is not on this page
    ]
    return LeftOut(tuple(datasets), tuple(findings))


def _rounded(values: Iterable[float]) -> list[float | None]:
    return [None if pd.isna(value) else float(f"{value:.{DIGITS}g}") for value in values]
