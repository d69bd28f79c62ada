"""Delays of clients on a city's radio network: nodes and links, path loss, rate and seconds.

Official data: the installed nodes of NYC Mesh, their links, and the altitudes of the network map.
The files are tables, or in one of two formats of the map: GeoJSON (a ``FeatureCollection`` of
points and one of lines), as in the map's first years and in the files of harshvardhan2025latency's
authors, or plain lists with altitudes.  Embedded data: a generated city of similar structure.

Steps: :class:`Mesh` -> distance to the server -> path loss (:func:`hybrid`) -> signal -> rate ->
seconds of communication; plus computation, and a log-normal delay in each round.  Section 3 of
Harshvardhan et al. 2025 leaves most details open; our choices, with their reasons, are in
:class:`Parameters`.

References
----------
ns-3 project: Model Library, chapters "Propagation" and "Buildings" (design documentation of
``HybridBuildingsPropagationLossModel``), whose published test values the tests repeat.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from fedsampling.base.arrays import Array
from fedsampling.base.errors import InputError
from fedsampling.base.files import sha256
from fedsampling.base.lazy import pd
from fedsampling.base.records import Strict
from fedsampling.base.streams import stream, uniforms
from fedsampling.clients.delays import DelayModel, Delays, LogNormal
from fedsampling.data.samples import check_contents
from fedsampling.data.sources.fetch import fetch_dataset
from fedsampling.data.sources.sources import SOURCES

EARTH = 6_371_008.8  # mean radius, m
CITY = (-74.3, -73.6, 40.4, 41.0)  # degrees: west, east, south and north end of New York
NODES, LINKS = ("nodes.csv", "active.json"), ("links.csv", "links.json")
HEIGHTS = ("nodes_installed.csv", "nodes.json")
INSTALLED = "Installed"
UNMEASURED = 5.0  # m; default altitude in the plain lists if none was entered


@dataclass(frozen=True, eq=False)
class Mesh:
    """Nodes of a city and their active links."""

    # columns ``lon``, ``lat`` (degrees), ``height`` (m above ground, NaN where unknown) and
    # ``degree`` (active links); sorted by decreasing degree, then by the node's number
    nodes: "pd.DataFrame"
    links: "pd.DataFrame"  # columns ``lon1``, ``lat1``, ``lon2``, ``lat2``: the active links
    inputs: Mapping[str, str] = field(default_factory=dict)  # SHA-256 of the files read
    # whether some file could not be compared with its publisher's checksum
    unverified: bool = False


def _open(default: Any, unit: str, why: str, **bounds: Any) -> Any:
    return Field(default, description=why, json_schema_extra={"unit": unit}, **bounds)


class Parameters(Strict):
    """Settings that the paper leaves open, each with unit and reason."""

    gateway: Literal["supernode", "hub"] = _open(
        "supernode",
        "",
        "the text simulates each link from the client's and the server's location; 'hub', as in "
        "the authors' earlier paper: a link to the best hub, and a backhaul from there",
    )
    hubs: int = _open(6, "nodes", "the published delays have six gateways; by active links", gt=0)
    missing_height: float = _open(
        28.5, "m", "24 of the nodes have no altitude; the median of the others", gt=0
    )
    environment: Literal["urban", "suburban", "open"] = _open(
        "urban", "", "section 1: 'the urban propagation model in ns-3'"
    )
    large_city: bool = _open(True, "", "New York; the default of ns-3")
    rooftop: float = _open(20.0, "m", "default of ns-3", gt=0)
    line_of_sight: float = _open(200.0, "m", "default of ns-3")
    long_range: float = _open(1000.0, "m", "ns-3 documentation of the hybrid model")
    frequency: float = _open(2160.0, "MHz", "default of ns-3's hybrid model; it ends at 2600", gt=0)
    power: float = _open(25.0, "dBm", "typical of the rooftop radios of such networks")
    gain: float = _open(
        40.0,
        "dB",
        "both antennas, such as a dish of 23 dBi and a sector of 17 dBi; gives "
        "communication times similar to the published 51 to 109 s",
    )
    bandwidth: float = _open(20e6, "Hz", "usual channel of Wi-Fi, widest channel of LTE", gt=0)
    noise_figure: float = _open(9.0, "dB", "default of ns-3's LTE receivers")
    shadowing: float = _open(7.0, "dB", "default of ns-3 outdoors, drawn once per link", ge=0)
    error_rate: float = _open(
        5e-5,
        "",
        "ns-3's adaptive modulation: Shannon's rate at a gap of −ln(5 BER)/1.5",
        gt=0,
        lt=0.2,
    )
    shared: bool = _open(True, "", "one server radio: clients have equal shares of its time")
    model_bytes: float = _open(
        1.6e6, "B", "model size in the authors' earlier script; figure 1 names no model", gt=0
    )
    backhaul: float = _open(
        18.72, "s", "published delay from gateway to cloud; for 'hub' only", ge=0
    )
    floor: float = _open(30.0, "s", "minimum computation, in the authors' earlier script", ge=0)
    log_mean: float = _open(4.08, "ln s", "computation above the floor: estimate from comp.txt")
    log_sd: float = _open(2.13, "ln s", "as for log_mean; comp1.txt and the script have 3", ge=0)
    cap: float = _open(15000.0, "s", "maximum computation, in the authors' earlier script")
    noise_median: float = _open(
        0.1, "", "median of the log-normal delay per round, relative to the communication", ge=0
    )
    noise_sd: float = _open(1.0, "ln s", "its spread; 'to account for network uncertainties'", ge=0)


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


def load(data: str, cache: Path, mirror: str | None) -> Mesh:
    """Read (or, embedded, generate) the network."""
    if data != "official":
        return mesh_like(stream(0, "data.mesh_like"))
    network = fetch_dataset("nycmesh", cache, mirror)
    heights = fetch_dataset("nycmesh/network-map", cache, mirror)
    chosen = (_chosen(network, NODES), _chosen(network, LINKS), _chosen(heights, HEIGHTS))
    paths = [{**network, **heights}[name] for name in chosen]
    nodes, links, altitudes = (
        _table(path, map_links if path.name in LINKS else map_nodes) for path in paths
    )
    checks = {
        "200 installed nodes": len(nodes) == 200,
        "289 links": len(links) == 289,
        "124 active links": (links["status"] == "active").sum() == 124,
    }
    check_contents("nycmesh", checks)
    return replace(
        assemble(nodes, links, altitudes),
        inputs={
            name.removeprefix("nycmesh/"): sha256(path)
            for name, path in zip(chosen, paths, strict=True)
        },
        unverified=any(SOURCES[name].unverified for name in chosen),
    )


def _chosen(paths: Mapping[str, Path], files: tuple[str, ...]) -> str:
    """Return the name of the fetched source whose file is one of `files`."""
    return next(name for name, path in paths.items() if path.name in files)


def _table(path: Path, read: "Callable[[bytes], pd.DataFrame]") -> "pd.DataFrame":
    if path.suffix == ".csv":
        return pd.read_csv(path)
    try:
        return read(path.read_bytes())
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a network of NYC Mesh ({error}); fetch it again") from error


def assemble(nodes: "pd.DataFrame", links: "pd.DataFrame", altitudes: "pd.DataFrame") -> Mesh:
    """Join the published tables; nodes outside New York are left out.

    Both ends of a link are nodes; altitudes of 0 or less mean unknown.
    """
    west, east, south, north = CITY
    inside = nodes["lon"].between(west, east) & nodes["lat"].between(south, north)
    active = links[links["status"] == "active"].reset_index(drop=True)
    ends = pd.concat(
        [active[[f"lon{k}", f"lat{k}"]].set_axis(["lon", "lat"], axis=1) for k in (1, 2)]
    )
    degree = ends.value_counts().rename("degree").reset_index()
    measured = altitudes[altitudes["alt_m"] > 0].rename(columns={"alt_m": "height"})
    joined = nodes[inside].merge(measured[["id", "height"]], on="id", how="left")
    joined = joined.merge(degree, on=["lon", "lat"], how="left").fillna({"degree": 0})
    joined = joined.sort_values(["degree", "id"], ascending=[False, True], ignore_index=True)
    columns = ["lon", "lat", "height", "degree"]
    return Mesh(joined[columns].astype(np.float64), active[["lon1", "lat1", "lon2", "lat2"]])


def great_circle(lon_one: ArrayLike, lat_one: ArrayLike, lon: ArrayLike, lat: ArrayLike) -> Array:
    """Return the distance in m between places in degrees on a sphere; the arguments broadcast.

    References: Sinnott: Virtues of the haversine. Sky and Telescope 68(2), 1984.
    """
    lam_1, phi_1, lam, phi = (np.radians(angle) for angle in (lon_one, lat_one, lon, lat))
    half = np.sin((phi - phi_1) / 2) ** 2
    half = half + np.cos(phi) * np.cos(phi_1) * np.sin((lam - lam_1) / 2) ** 2
    return np.asarray(2 * EARTH * np.arcsin(np.sqrt(np.minimum(half, 1))))


def mesh_like(rng: np.random.Generator, nodes: int = 194) -> Mesh:
    """Generate a network of similar structure: three hubs and nodes around them, some far away."""
    hubs = np.array([[0.0, 0.0, 180.0], [7000.0, -2800.0, 64.0], [6000.0, 300.0, 28.0]])
    hub = rng.choice(3, nodes - 3, p=[0.6, 0.25, 0.15])
    reach = rng.lognormal(np.log(1800), 0.9, nodes - 3)
    angle = rng.uniform(0, 2 * np.pi, nodes - 3)
    east = np.append(hubs[:, 0], hubs[hub, 0] + reach * np.cos(angle))
    north = np.append(hubs[:, 1], hubs[hub, 1] + reach * np.sin(angle))
    height = np.append(hubs[:, 2], rng.lognormal(np.log(30), 0.55, nodes - 3))
    lat = 40.711 + np.degrees(north / EARTH)
    lon = -74.001 + np.degrees(east / EARTH / np.cos(np.radians(40.711)))
    linked = np.flatnonzero(rng.random(nodes - 3) < 0.55)
    first, second = linked + 3, hub[linked]
    links = {"lon1": lon[first], "lat1": lat[first], "lon2": lon[second], "lat2": lat[second]}
    degree = np.bincount(np.append(first, second), minlength=nodes).astype(np.float64)
    table = pd.DataFrame({"lon": lon, "lat": lat, "height": height, "degree": degree})
    table = table.sort_values("degree", ascending=False, kind="stable", ignore_index=True)
    return Mesh(table, pd.DataFrame(links))


def map_nodes(content: bytes) -> "pd.DataFrame":
    """Parse the installed nodes: ``id``, ``lon``, ``lat`` (degrees), ``alt_m`` (m, or NaN)."""
    rows = [
        (int(node["id"]), *_place(node["coordinates"]))
        for node in _entries(content)
        if node.get("status") == INSTALLED
    ]
    nodes = pd.DataFrame(rows, columns=["id", "lon", "lat", "alt_m"]).astype({"alt_m": float})
    nodes["alt_m"] = nodes["alt_m"].where(nodes["alt_m"] != UNMEASURED)
    return nodes


def map_links(content: bytes) -> "pd.DataFrame":
    """Parse the links: ``lon1``, ``lat1``, ``lon2``, ``lat2`` (degrees) and ``status``."""
    rows = []
    for link in _entries(content):
        first, second = (_place(end)[:2] for end in link["coordinates"])
        rows.append((*first, *second, str(link["status"])))
    return pd.DataFrame(rows, columns=["lon1", "lat1", "lon2", "lat2", "status"])


def _entries(content: bytes) -> list[dict[str, Any]]:
    """Read the entries of a plain list or of a GeoJSON file, with the keys of the plain list."""
    entries = json.loads(content)
    if isinstance(entries, dict):
        entries = [
            {**feature["properties"], **feature["geometry"]} for feature in entries["features"]
        ]
    return entries  # type: ignore[no-any-return]


def _place(coordinates: list[Any]) -> tuple[float, float, float]:
    """Return longitude, latitude and altitude; NaN without an altitude."""
    lon, lat, altitude = (*map(float, coordinates), float("nan"))[:3]
    return lon, lat, altitude


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
    return Delays(base, LogNormal(parameters.noise_median * communication, parameters.noise_sd))


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


# Path loss between two places in a city: the models that ns-3's hybrid building model combines.
#
# Every function is a published formula on arrays that broadcast: distances in metres, heights in
# metres above ground, frequency in MHz, loss in dB.


SPEED_OF_LIGHT = 299_792_458.0  # m/s

# Buildings, with ns-3's defaults.
SEPARATION = 50.0  # b, m
EXTENT = 80.0  # length l along the path, m
STREET = 20.0  # street width w, m
ORIENTATION = 2.5 + 0.075 * (45.0 - 35.0)  # dB, of streets at 45° to the path


def hybrid(d: ArrayLike, h_one: ArrayLike, h_other: ArrayLike, f: float, city: Parameters) -> Array:
    """Combine the models as ns-3 does, for two nodes outdoors.

    Beyond `long_range`, with both nodes above the roofs: :func:`okumura_hata`, or :func:`kun`
    above 2.3 GHz.  Else ITU-R P.1411: in line of sight up to that threshold, then over rooftops.

    `d`: distance, m. `h_one`, `h_other`: heights, m; the higher end is the base station. `f`:
    frequency, MHz; the documentation names 200 to 2600.

    References: ns-3 Model Library, "Buildings", pseudo-code of HybridBuildingsPropagationLossModel.
    """
    d, h_b, h_m = _link(d, h_one, h_other)
    long = kun(d) if f > 2300 else okumura_hata(d, h_b, h_m, f, city)
    short = np.where(
        d < city.line_of_sight,
        p1411_line_of_sight(d, h_b, h_m, f),
        p1411_over_rooftops(d, h_b, h_m, f, city),
    )
    above = h_m >= city.rooftop
    return np.where((d > city.long_range) & above, long, short)


def okumura_hata(
    d: ArrayLike, h_one: ArrayLike, h_other: ArrayLike, f: float, city: Parameters
) -> Array:
    """Okumura-Hata's loss up to 1500 MHz, its COST 231 extension above; for links beyond 1 km.

    COST 231 has no correction for open areas; they count as suburban (C = 0).  Like ns-3, the
    function also extrapolates beyond the measured ranges (mobiles to 10 m, bases to 200 m, 20 km).

    References: Hata: Empirical formula for propagation loss in land mobile radio services. IEEE
    Trans. VT 29(3), 1980. COST Action 231: Digital mobile radio towards future generation systems,
    final report, 1999, section 4.4.1. Implemented as in ns-3: without 4.97 dB in COST 231's F(h_M)
    for a large city.
    """
    d, h_b, h_m = _link(d, h_one, h_other)
    log_f = np.log10(f)
    slope = (44.9 - 6.55 * np.log10(h_b)) * np.log10(d / 1000)
    small_city = (1.1 * log_f - 0.7) * h_m - (1.56 * log_f - 0.8)
    if f > 1500:
        large = city.large_city and city.environment == "urban"
        F = 3.2 * np.log10(11.75 * h_m) ** 2 if large else small_city
        C = 3.0 if large else 0.0
        return np.asarray(46.3 + 33.9 * log_f - 13.82 * np.log10(h_b) + slope - F + C)
    F = small_city
    if city.large_city and f <= 200:
        F = 8.29 * np.log10(1.54 * h_m) ** 2 - 1.1
    elif city.large_city:
        F = 3.2 * np.log10(11.75 * h_m) ** 2 - 4.97
    urban = 69.55 + 26.16 * log_f - 13.82 * np.log10(h_b) + slope - F
    if city.environment == "suburban":
        return np.asarray(urban - 2 * np.log10(f / 28) ** 2 - 5.4)
    if city.environment == "open":
        return np.asarray(urban - 4.78 * log_f**2 + 18.33 * log_f - 40.94)
    return np.asarray(urban)


def kun(d: ArrayLike) -> Array:
    """Measured loss at 2.6 GHz in urban areas.

    References: Sun Kun, Wang Ping, Li Yingze: Path loss models for suburban scenario at 2.3 GHz,
    2.6 GHz and 3.5 GHz. ISAPE 2008.
    """
    return np.asarray(36 + 26 * np.log10(d))


def p1411_line_of_sight(d: ArrayLike, h_one: ArrayLike, h_other: ArrayLike, f: float) -> Array:
    """Mean of the upper and lower bounds for street canyons in line of sight.

    References: Recommendation ITU-R P.1411, section on line of sight in UHF: breakpoint R_bp = 4
    h_b h_m / λ.
    """
    d, h_b, h_m = _link(d, h_one, h_other)
    wavelength = SPEED_OF_LIGHT / (f * 1e6)
    R_bp = 4 * h_b * h_m / wavelength
    L_bp = np.abs(20 * np.log10(wavelength**2 / (8 * np.pi * h_b * h_m)))
    decades = np.log10(d / R_bp)
    beyond = decades > 0
    lower = L_bp + np.where(beyond, 40, 20) * decades
    upper = L_bp + 20 + np.where(beyond, 40, 25) * decades
    return np.asarray((lower + upper) / 2)


def p1411_over_rooftops(
    d: ArrayLike, h_one: ArrayLike, h_other: ArrayLike, f: float, city: Parameters
) -> Array:
    """Loss without line of sight: free space, roof to street, and screens between the roofs.

    A mobile above the roofs has no diffraction down to the street; Δh_m is at least one metre, so
    that the formula remains in its domain.  Below the roofs and within 500 m, k_a has the
    recommendation's factor d/1000, which ns-3's documentation omits; with it the loss is continuous
    at 500 m.

    References: Recommendation ITU-R P.1411, section on propagation over rooftops (Walfisch and
    Bertoni 1988, Ikegami et al. 1984).
    """
    d, h_b, h_m = _link(d, h_one, h_other)
    free_space = 32.4 + 20 * np.log10(d / 1000) + 20 * np.log10(f)
    fall = np.maximum(city.rooftop - h_m, 1.0)
    street = -8.2 - 10 * np.log10(STREET) + 10 * np.log10(f) + 20 * np.log10(fall)
    excess = street + ORIENTATION + _screens(d, h_b, f, city)
    return np.asarray(free_space + np.maximum(excess, 0))


def _link(d: ArrayLike, h_one: ArrayLike, h_other: ArrayLike) -> tuple[Array, Array, Array]:
    """Broadcast, and return the higher end as base station, the lower as mobile."""
    distance, first, second = np.broadcast_arrays(
        np.asarray(d, np.float64), np.asarray(h_one, np.float64), np.asarray(h_other, np.float64)
    )
    return distance, np.maximum(first, second), np.minimum(first, second)


def _screens(d: Array, h_b: Array, f: float, city: Parameters) -> Array:
    """Return the loss L_msd past rows of buildings, with a settled field or not."""
    wavelength = SPEED_OF_LIGHT / (f * 1e6)
    b = SEPARATION
    rise = h_b - city.rooftop
    over = rise > 0
    k_a = np.where(d >= 500, 54 - 0.8 * rise, 54 - 1.6 * rise * d / 1000)
    k_a = np.where(over, 71.4 if f > 2000 else 54.0, k_a)
    k_d = np.where(over, 18.0, 18 - 15 * rise / city.rooftop)
    k_f = -8.0 if f > 2000 else -4 + (1.5 if city.large_city else 0.7) * (f / 925 - 1)
    L_bsh = np.where(over, -18 * np.log10(1 + np.maximum(rise, 0)), 0.0)
    settled = L_bsh + k_a + k_d * np.log10(d / 1000) + k_f * np.log10(f) - 9 * np.log10(b)
    theta = np.arctan(rise / b)  # negative below the roofs, as printed
    rho = np.hypot(rise, b)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = wavelength * d**2 / rise**2  # infinite where the antenna is level with the roofs
        above = 2.35 * (np.abs(rise) / d * np.sqrt(b / wavelength)) ** 0.9
        below = b / (2 * np.pi * d) * np.sqrt(wavelength / rho)
        below = below * (1 / theta - 1 / (2 * np.pi + theta))
    level = b / d
    Q_M = np.where(np.abs(rise) < 1, level, np.where(over, above, below))
    return np.where(reach < EXTENT, settled, -20 * np.log10(np.abs(Q_M)))
