"""The tables that Harshvardhan et al. 2025 print: their samplers, rows and numbers.

``reported.csv`` has the numbers, with ids ``<table>/<row>/<column>``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fedsampling.experiments.papers import Paper, Reported
from fedsampling.report.drawing.style import SCHEMES, Line

LINES = {
    "submodular": Line("DelayHetSubmodular", SCHEMES["delayhet_submodular"]),
    "sampling": Line("DelayHetSampling", SCHEMES["delayhet_sampling"]),
    "random": Line("random", SCHEMES["random"]),
    "flanp": Line("FLANP", SCHEMES["flanp"]),
    "divfl": Line("DivFL", SCHEMES["divfl"]),
    "power_of_choice": Line("Power-of-Choice", SCHEMES["power_of_choice"]),
    "approx_opt": Line("ApproxOptSampling", SCHEMES["approx_opt"]),
    "luo2022": Line("Luo et al.", SCHEMES["luo2022"]),
}
SEVEN = tuple(LINES)[:7]  # the samplers of the paper's tables
PROPOSED = SEVEN[:2]
DELAYS = {"synthetic": "synthetic delays", "nycmesh": "NYCMesh"}
TABLES = {"synthetic": "table1", "nycmesh": "table2"}
CASES = {table: case for case, table in TABLES.items()}
DATA = {  # rows of both tables, by experiment
    "quadratic": "Quadratic",
    "dirichlet_mnist": "Dirichlet MNIST",
    "rotated_mnist": "Rotated MNIST",
    "dirichlet_fashion_mnist": "Dirichlet FashionMNIST",
    "rotated_fashion_mnist": "Rotated FashionMNIST",
    "dirichlet_cifar10": "Dirichlet CIFAR-10",
    "rotated_cifar10": "Rotated CIFAR-10",
    "femnist": "FEMNIST",
    "shakespeare": "Shakespeare",
}


def printed(paper: Paper, table: str) -> dict[str, dict[str, Reported]]:
    """Return a table of the paper: its numbers by row and column."""
    rows: dict[str, dict[str, Reported]] = {}
    for number in paper.reports:
        if number.id.startswith(f"{table}/"):
            _, row, column = number.id.split("/")
            rows.setdefault(row, {})[column] = number
    return rows


@dataclass(frozen=True)
class PrintedRow:
    """A row of the paper's Table 1 or 2."""

    numbers: Mapping[str, float]  # 10³ seconds by sampler; infinite where the paper prints N/A

    @property
    def fastest(self) -> str:
        """The paper's fastest sampler."""
        return min(self.numbers, key=lambda name: self.numbers[name])

    def over_fastest(self, sampler: str) -> float:
        """Return a sampler's seconds over those of the fastest."""
        return self.numbers[sampler] / self.numbers[self.fastest]


def printed_row(paper: Paper, table: str, row: str) -> PrintedRow:
    """Return a row of the paper's Table 1 or 2."""
    return PrintedRow({name: cell.number for name, cell in printed(paper, table)[row].items()})
