"""Values of single clients, which the section "Who is left out?" shows of the cross matrix.

``papers/crossmatrix`` draws a figure for each dataset; its CSV file has a row for each sampler and
client, in the order in which the clients are shown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from fedsampling.experiments.cross_matrix import CLIENTS
from fedsampling.report.content import Chapter
from fedsampling.report.names import name as display_name

LEFT_OUT = "left_out"  # artefact whose notes are the findings
OF_CLIENT = ("participation", "relative_weight", "accuracy")
OF_RUN = ("never_selected", "worst_accuracy")
COLUMNS = {"sampler", "samples", "expected", *OF_CLIENT, *OF_RUN}
DIGITS = 3


@dataclass(frozen=True)
class OneDataset:
    """A dataset with its clients.

    Parameters
    ----------
    key, title : str
        Of the artefact.
    note : str
        The samples on which the accuracy is measured, and clients that are never available.
    samples : sequence
        Training samples of each client.
    expected : sequence
        Participation rate of each client that MD sampling is expected to have.
    samplers : mapping of str to mapping
        By key: ``label``; OF_RUN; and in OF_CLIENT one number for each client, None where there is
        none.
    """

    key: str
    title: str
    note: str
    samples: list[float | None]
    expected: list[float | None]
    samplers: Mapping[str, Mapping[str, object]]


@dataclass(frozen=True)
class Clients:
    """All datasets with their clients, and the findings in sentences."""

    datasets: tuple[OneDataset, ...]
    findings: tuple[str, ...]

    def plain(self) -> list[dict[str, object]]:
        """Return the datasets for the page's script."""
        return [asdict(dataset) for dataset in self.datasets]


def load(folder: Path, chapter: Chapter) -> Clients:
    """Read the datasets whose clients were recorded; none if these artefacts were not drawn.

    Parameters
    ----------
    folder : Path
        Holds the chapter's artefacts.
    chapter : Chapter
        The cross matrix.
    """
    loaded = []
    for exhibit in chapter.exhibits:
        if not exhibit.artefact.startswith(CLIENTS):
            continue
        table = pd.read_csv(folder / exhibit.artefact / exhibit.files["csv"])
        if table.empty or not set(table.columns) >= COLUMNS:
            continue
        parts = {str(name): part for name, part in table.groupby("sampler", sort=False)}
        first = next(iter(parts.values()))
        loaded.append(
            OneDataset(
                exhibit.artefact,
                exhibit.title,
                " ".join(exhibit.notes),
                _rounded(first["samples"]),
                _rounded(first["expected"]),
                {
                    name: {
                        "label": display_name(name).title,
                        **{measure: _rounded(part[measure])[0] for measure in OF_RUN},
                        **{measure: _rounded(part[measure]) for measure in OF_CLIENT},
                    }
                    for name, part in parts.items()
                },
            )
        )
    findings = [
        note
        for exhibit in chapter.exhibits
        if exhibit.artefact == LEFT_OUT
        for note in exhibit.notes
        if "asterisk" not in note  # of its table, which is not on this page
    ]
    return Clients(tuple(loaded), tuple(findings))


def _rounded(values: Iterable[float]) -> list[float | None]:
    return [None if pd.isna(value) else float(f"{value:.{DIGITS}g}") for value in values]
