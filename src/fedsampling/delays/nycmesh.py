"""Delays of clients on a city's radio network: from position to path loss, rate and seconds.

The flow: :class:`~fedsampling.delays.mesh.Mesh` -> distance to the server -> loss
(:func:`~fedsampling.delays.propagation.hybrid`) -> signal -> rate -> seconds of communication;
computation on top, and a log-normal delay in each round.  harshvardhan2025latency says no more of
it than section 3; all else stands in :class:`Parameters`, with unit and reason.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from fedsampling.delays.delays import Delays, LogNormal
from fedsampling.delays.mesh import Mesh, great_circle
from fedsampling.delays.propagation import City, Thresholds, hybrid
from fedsampling.streams import uniforms

Array = NDArray[np.float64]

THERMAL_NOISE = -174.0  # dBm per Hz at 290 K

# Bits per second and hertz of channel quality 1, …, 15; 3GPP TS 36.213, table 7.2.3-1.
EFFICIENCIES = np.array(
    [
        *(0.1523, 0.2344, 0.3770, 0.6016, 0.8770),
        *(1.1758, 1.4766, 1.9141, 2.4063, 2.7305),
        *(3.3223, 3.9023, 4.5234, 5.1152, 5.5547),
    ]
)


def _open(default: Any, unit: str, why: str) -> Any:
    return field(default=default, metadata={"unit": unit, "why": why})


@dataclass(frozen=True)
class Parameters:
    """What the paper leaves open; each field's metadata hold its ``unit`` and ``why``."""

    gateway: Literal["supernode", "hub"] = _open(
        "supernode",
        "",
        "the text simulates each link from the client's and the server's location; 'hub', the "
        "best of the hubs and a backhaul from there, is how the authors' earlier paper has it",
    )
    hubs: int = _open(6, "nodes", "the published delays have six gateways; by active links")
    missing_height: float = _open(
        28.5, "m", "24 of the nodes have no altitude; the median of the others"
    )
    environment: Literal["urban", "suburban", "open"] = _open(
        "urban", "", "section 1: 'the urban propagation model in ns-3'"
    )
    large_city: bool = _open(True, "", "New York; the default of ns-3")
    rooftop: float = _open(20.0, "m", "default of ns-3")
    line_of_sight: float = _open(200.0, "m", "default of ns-3")
    long_range: float = _open(1000.0, "m", "ns-3 documentation of the hybrid model")
    frequency: float = _open(2160.0, "MHz", "default of ns-3's hybrid model; it ends at 2600")
    power: float = _open(25.0, "dBm", "usual of the rooftop radios that such meshes install")
    gain: float = _open(
        40.0,
        "dB",
        "both antennas, such as a dish of 23 dBi and a sector of 17 dBi; with it the communication "
        "is of the size of the published 51 to 109 s",
    )
    bandwidth: float = _open(20e6, "Hz", "usual channel of Wi-Fi, widest of LTE")
    noise_figure: float = _open(9.0, "dB", "default of ns-3's LTE receivers")
    shadowing: float = _open(7.0, "dB", "default of ns-3 outdoors, drawn once per link")
    error_rate: float = _open(
        5e-5, "", "ns-3's adaptive modulation: Shannon's rate at a gap of −ln(5 BER)/1.5"
    )
    shared: bool = _open(True, "", "one server radio: clients have equal shares of its time")
    model_bytes: float = _open(
        1.6e6, "B", "model size in the authors' earlier script; figure 1 names no model"
    )
    backhaul: float = _open(18.72, "s", "published delay from gateway to cloud; for 'hub' only")
    floor: float = _open(30.0, "s", "least computation, in the authors' earlier script")
    log_mean: float = _open(4.08, "ln s", "computation above the floor: estimate from comp.txt")
    log_sd: float = _open(2.13, "ln s", "the same; comp1.txt and the script have 3")
    cap: float = _open(15000.0, "s", "most computation, in the authors' earlier script")
    noise_median: float = _open(
        0.1, "", "median of the log-normal delay per round, relative to the communication"
    )
    noise_sd: float = _open(1.0, "ln s", "its spread; 'to account for network uncertainties'")

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    def __post_init__(self) -> None:
        positive = ("hubs", "missing_height", "rooftop", "frequency", "bandwidth", "model_bytes")
        problems = [
            f"{name}: {getattr(self, name)} is out of range; give more than 0"
            for name in positive
            if not getattr(self, name) > 0
        ]
        spreads = ("shadowing", "log_sd", "noise_median", "noise_sd", "floor", "backhaul")
        problems += [
            f"{name}: {getattr(self, name)} is out of range; give 0 or more"
            for name in spreads
            if not getattr(self, name) >= 0
        ]
        if not 0 < self.error_rate < 0.2:
            problems.append(f"error_rate: {self.error_rate} has no gap; give less than 0.2")
        if not self.cap > self.floor:
            problems.append(f"cap: {self.cap} is not above the floor; give more")
        if problems:
            raise ValueError("; ".join(problems))


def nycmesh(mesh: Mesh, parameters: Parameters, seed: int) -> Delays:
    """Make the delays of all nodes that are no hubs.

    Parameters
    ----------
    mesh : Mesh
    parameters : Parameters
    seed : int
        Of the population: it draws shadowing and computation.
    """
    return as_delays(clients(mesh, parameters, seed), parameters)


def as_delays(found: pd.DataFrame, parameters: Parameters) -> Delays:
    """Make delays of what :func:`clients` returns."""
    communication = found["communication"].to_numpy(np.float64)
    base = communication + found["computation"].to_numpy(np.float64)
    return Delays(base, LogNormal(parameters.noise_median * communication, parameters.noise_sd))


def clients(mesh: Mesh, parameters: Parameters, seed: int) -> pd.DataFrame:
    """Follow each client from its position to its seconds.

    Returns
    -------
    DataFrame
        One row per client, in the order of `mesh`: ``lon``, ``lat`` (degrees), ``height``,
        ``distance`` to the server or to its hub (m), ``loss`` (dB, shadowing included),
        ``rate`` (bit/s, its share of the air), ``communication``, ``computation`` (s).
    """
    s = parameters
    nodes = mesh.nodes.fillna({"height": s.missing_height})
    served = 1 if s.gateway == "supernode" else s.hubs
    hubs, found = nodes.iloc[:served], nodes.iloc[s.hubs :].reset_index(drop=True)
    n = len(found)
    distance, loss = _links(found, hubs, s)
    best = loss.argmin(axis=1)
    row = np.arange(n)
    u = uniforms(seed, "delays.nycmesh", row, n=2)
    shadowed = loss[row, best] + s.shadowing * ndtri(u[:, 0])
    signal = s.power + s.gain - shadowed
    noise = THERMAL_NOISE + 10 * np.log10(s.bandwidth) + s.noise_figure
    sharing = np.bincount(best, minlength=served)[best] if s.shared else 1
    rate = s.bandwidth * efficiency(signal - noise, s.error_rate) / sharing
    backhaul = s.backhaul if s.gateway == "hub" else 0.0
    computation = s.floor + np.exp(s.log_mean + s.log_sd * ndtri(u[:, 1]))
    return found[["lon", "lat", "height"]].assign(
        distance=distance[row, best],
        loss=shadowed,
        rate=rate,
        communication=2 * 8 * s.model_bytes / rate + backhaul,
        computation=np.minimum(computation, s.cap),
    )


def efficiency(snr: ArrayLike, error_rate: float) -> Array:
    """Bits per second and hertz at a signal-to-noise ratio in dB.

    Shannon's rate with the gap of an uncoded error rate, rounded down to a channel quality of
    LTE.  Below the lowest quality a client keeps that one: the paper has no client out of reach.

    Parameters
    ----------
    snr : array
        dB.
    error_rate : float
        Below 0.2.

    References
    ----------
    Piro, Baldo, Miozzo: An LTE module for the ns-3 network simulator. SIMUTools 2011.
    """
    gap = -np.log(5 * error_rate) / 1.5
    shannon = np.log2(1 + 10 ** (np.asarray(snr, np.float64) / 10) / gap)
    quality = np.searchsorted(EFFICIENCIES, shannon, side="right") - 1
    return np.asarray(EFFICIENCIES[np.maximum(quality, 0)])


def _links(found: pd.DataFrame, hubs: pd.DataFrame, s: Parameters) -> tuple[Array, Array]:
    """Distances and median losses, both of shape (clients, hubs)."""
    lon, lat, height = (found[name].to_numpy()[:, None] for name in ("lon", "lat", "height"))
    to_lon, to_lat, to_height = (hubs[name].to_numpy() for name in ("lon", "lat", "height"))
    ground = great_circle(lon, lat, to_lon, to_lat)
    distance = np.maximum(np.hypot(ground, height - to_height), 1.0)
    city = City(environment=s.environment, large=s.large_city, rooftop=s.rooftop)
    thresholds = Thresholds(s.line_of_sight, s.long_range)
    return distance, hybrid(distance, height, to_height, s.frequency, city, thresholds)
