"""Delays of single clients that two of the authors published, for comparison with our simulation.

They belong to an earlier paper on the same network: communication with six gateways, simulated with
ns-3, and two draws of the computation.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fedsampling.base.arrays import Array
from fedsampling.base.files import sha256
from fedsampling.data.sources.fetch import fetch
from fedsampling.data.sources.sources import SOURCES

COMPUTATIONS = ("comp.txt", "comp1.txt")


class Reference(NamedTuple):
    """Seconds of 184 clients, by file of the published draws of the computation.

    `inputs`: SHA-256 of the files read. `unverified`: whether some file could not be compared with
    its publisher's checksum.
    """

    totals: Mapping[str, Array]
    inputs: Mapping[str, str]
    unverified: bool


def load_reference(cache: Path, mirror: str | None) -> Reference:
    """Read the published delays."""
    files = ("delay_client_to_gateway.csv", *COMPUTATIONS)
    sources = {file: SOURCES[f"async_hfl_delays/{file}"] for file in files}
    paths = {file: fetch(source, cache, mirror) for file, source in sources.items()}
    links = np.loadtxt(paths[files[0]], delimiter=",")
    # Download and upload, with the best gateway; 0 marks a gateway out of reach.
    communication = np.where(links > 0, links, np.inf).min(axis=1)
    return Reference(
        {file: communication + np.loadtxt(paths[file]) for file in COMPUTATIONS},
        {file: sha256(path) for file, path in paths.items()},
        any(source.unverified for source in sources.values()),
    )
