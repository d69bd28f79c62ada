"""Nodes and links of NYC Mesh, read from the published files, or generated.

Official data: the installed nodes of NYC Mesh, their links, and the altitudes of the network map.
The files are tables, or in one of two formats of the map: GeoJSON (a ``FeatureCollection`` of
points and one of lines), as in the map's first years and in the files of harshvardhan2025latency's
authors, or plain lists with altitudes.  Embedded data: a generated city of similar structure.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedsampling.base.errors import InputError
from fedsampling.base.files import sha256
from fedsampling.base.lazy import pd
from fedsampling.base.streams import stream
from fedsampling.data.samples import check_contents
from fedsampling.data.sources.fetch import fetch_dataset
from fedsampling.data.sources.sources import SOURCES

EARTH = 6_371_008.8  # mean radius, m
CITY = (-74.3, -73.6, 40.4, 41.0)  # degrees: west, east, south and north end of New York
NODES, LINKS = ("nodes.csv", "active.json"), ("links.csv", "links.json")
# Installed nodes whose altitude is known, by file of the network map.
HEIGHTS = {"nodes_installed.csv": 456, "nodes.json": 63}
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
    known = HEIGHTS[paths[-1].name]
    checks = {
        "200 installed nodes": len(nodes) == 200,
        "289 links": len(links) == 289,
        "124 active links": (links["status"] == "active").sum() == 124,
        f"{known} altitudes": (altitudes["alt_m"] > 0).sum() == known,
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


def _chosen(paths: Mapping[str, Path], files: Collection[str]) -> str:
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
