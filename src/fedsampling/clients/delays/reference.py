"""Published delays of single clients, for comparison with our simulation.

Two authors of harshvardhan2025latency published the delays of an earlier paper on the same network:
communication with six gateways, simulated with ns-3, and two draws of the computation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fedsampling.base.arrays import Array
from fedsampling.base.files import sha256
from fedsampling.data.sources.fetch import fetch
from fedsampling.data.sources.sources import SOURCES

COMPUTATIONS = ("comp.txt", "comp1.txt")


@dataclass(frozen=True, eq=False)
class Reference:
    """Seconds of 184 clients."""

    communication: Array  # shape (184,): download and upload, with the best gateway in range
    computation: Mapping[str, Array]  # shape (184,): the published draws, by file
    inputs: Mapping[str, str] = field(default_factory=dict)  # SHA-256 of the files read
    # whether some file could not be compared with its publisher's checksum
    unverified: bool = False

    @property
    def totals(self) -> Mapping[str, Array]:
        """Communication with each draw of the computation."""
        return {file: self.communication + drawn for file, drawn in self.computation.items()}


def load(cache: Path, mirror: str | None) -> Reference:
    """Read the published delays."""
    files = ("delay_client_to_gateway.csv", *COMPUTATIONS)
    sources = {file: SOURCES[f"async_hfl_delays/{file}"] for file in files}
    paths = {file: fetch(source, cache, mirror) for file, source in sources.items()}
    links = np.loadtxt(paths[files[0]], delimiter=",")
    return Reference(
        np.where(links > 0, links, np.inf).min(axis=1),  # 0 marks a gateway out of reach
        {file: np.loadtxt(paths[file]) for file in COMPUTATIONS},
        {file: sha256(path) for file, path in paths.items()},
        any(source.unverified for source in sources.values()),
    )
