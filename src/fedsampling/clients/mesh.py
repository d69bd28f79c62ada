"""Delays of clients on a city's radio network.

Steps: nodes (:mod:`.mesh_files`) -> distance to the server -> path loss (:mod:`.path_loss`) ->
signal -> rate -> seconds of communication; plus computation, and a log-normal delay in each round.
Section 3 of Harshvardhan et al. 2025 leaves most details open; our choices, with their reasons, are
in :class:`~.mesh_settings.Parameters`.
"""

from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from fedsampling.base.arrays import Array
from fedsampling.base.lazy import pd
from fedsampling.base.streams import uniforms
from fedsampling.clients.delays import DelayModel, Delays, LogNormalDelay
from fedsampling.clients.mesh_files import EARTH, Mesh, load
from fedsampling.clients.mesh_settings import Parameters
from fedsampling.clients.path_loss import hybrid


class Nycmesh(DelayModel, name="nycmesh", title="Delays of NYC Mesh"):
    """Delays on the network of NYC Mesh, Harshvardhan et al. 2025, section 3."""

    official: ClassVar[tuple[str, ...]] = ("nycmesh", "nycmesh/network-map", "async_hfl_delays")

    parameters: Parameters = Field(Parameters(), description="choices that the paper leaves open")

    def network(self, source: str, cache: Path, mirror: str | None) -> Mesh:
        """Read or generate the network."""
        return load(source, cache, mirror)

    def draw(
        self,
        seed: int,
        network: Mesh | None = None,
        clients: int | None = None,
        model_bytes: float | None = None,
    ) -> Delays:
        """Draw shadowing and computation of the clients, which are all nodes except hubs."""
        assert network is not None
        return as_delays(client_table(network, self.parameters, seed), self.parameters)


def great_circle(lon_one: ArrayLike, lat_one: ArrayLike, lon: ArrayLike, lat: ArrayLike) -> Array:
    """Return the distance in m between places in degrees on a sphere; the arguments broadcast.

    References: Sinnott: Virtues of the haversine. Sky and Telescope 68(2), 1984.
    """
    lam_1, phi_1, lam, phi = (np.radians(angle) for angle in (lon_one, lat_one, lon, lat))
    half = np.sin((phi - phi_1) / 2) ** 2
    half = half + np.cos(phi) * np.cos(phi_1) * np.sin((lam - lam_1) / 2) ** 2
    return np.asarray(2 * EARTH * np.arcsin(np.sqrt(np.minimum(half, 1))))


THERMAL_NOISE = -174.0  # dBm per Hz at 290 K
# Bits per second and hertz of channel quality 1, …, 15; 3GPP TS 36.213, table 7.2.3-1.
EFFICIENCIES = np.array(
    [
        *(0.1523, 0.2344, 0.3770, 0.6016, 0.8770),
        *(1.1758, 1.4766, 1.9141, 2.4063, 2.7305),
        *(3.3223, 3.9023, 4.5234, 5.1152, 5.5547),
    ]
)


def as_delays(table: "pd.DataFrame", parameters: Parameters) -> Delays:
    """Convert the table of :func:`client_table` into delays."""
    communication = table["communication"].to_numpy(np.float64)
    base = communication + table["computation"].to_numpy(np.float64)
    return Delays(
        base, LogNormalDelay(parameters.noise_median * communication, parameters.noise_sd)
    )


def client_table(mesh: Mesh, parameters: Parameters, seed: int) -> "pd.DataFrame":
    """Compute rate, communication and computation of each client from its position.

    Returns one row per client, in the order of `mesh`: ``lon``, ``lat`` (degrees), ``height``,
    ``distance`` to the server or to its hub (m), ``loss`` (dB, shadowing included), ``rate``
    (bit/s, its share of the air), ``communication``, ``computation`` (s).
    """
    from scipy.special import ndtri

    s = parameters
    nodes = mesh.nodes.fillna({"height": s.missing_height})
    served = 1 if s.gateway == "supernode" else s.hubs
    hubs, nodes = nodes.iloc[:served], nodes.iloc[s.hubs :].reset_index(drop=True)
    n = len(nodes)
    distance, loss = _links(nodes, hubs, s)
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
    return nodes[["lon", "lat", "height"]].assign(
        distance=distance[row, best],
        loss=shadowed,
        rate=rate,
        communication=2 * 8 * s.model_bytes / rate + backhaul,
        computation=np.minimum(computation, s.cap),
    )


def efficiency(snr: ArrayLike, error_rate: float) -> Array:
    """Return bits per second and hertz at a signal-to-noise ratio in dB.

    Shannon's rate with the gap of an uncoded error rate, rounded down to an LTE channel quality.
    A client below the lowest quality gets that quality, because in the paper all are in range.

    `snr`: dB. `error_rate`: below 0.2.

    References: Piro, Baldo, Miozzo: An LTE module for the ns-3 network simulator. SIMUTools 2011.
    """
    gap = -np.log(5 * error_rate) / 1.5
    shannon = np.log2(1 + 10 ** (np.asarray(snr, np.float64) / 10) / gap)
    quality = np.searchsorted(EFFICIENCIES, shannon, side="right") - 1
    return np.asarray(EFFICIENCIES[np.maximum(quality, 0)])


def _links(nodes: "pd.DataFrame", hubs: "pd.DataFrame", s: Parameters) -> tuple[Array, Array]:
    """Return distances (m) and median losses (dB), both of shape (clients, hubs)."""
    lon, lat, height = (nodes[name].to_numpy()[:, None] for name in ("lon", "lat", "height"))
    to_lon, to_lat, to_height = (hubs[name].to_numpy() for name in ("lon", "lat", "height"))
    ground = great_circle(lon, lat, to_lon, to_lat)
    distance = np.maximum(np.hypot(ground, height - to_height), 1.0)
    return distance, hybrid(distance, height, to_height, s.frequency, s)
