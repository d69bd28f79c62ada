"""The mesh network: distances, joins, and facts about the real files."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedsampling.base.errors import InputError
from fedsampling.clients.delays.nycmesh import Nycmesh
from fedsampling.clients.delays.radio.mesh import EARTH, assemble, great_circle, load


def test_great_circle_on_known_arcs():
    quarter = np.pi / 2 * EARTH
    np.testing.assert_allclose(great_circle(0, 0, [90, 0, 37], [0, 90, 90]), quarter)
    assert great_circle(10, 50, 10, 51) == pytest.approx(111_195, abs=1)
    assert great_circle(-73.9, 40.7, -73.9, 40.7) == 0
    # Singapore Changi to New York JFK, published as 15,332 km (spheroid; a sphere errs by 0.5 %).
    assert great_circle(103.994, 1.350, -73.779, 40.640) == pytest.approx(15_332e3, rel=0.005)


def test_assemble_counts_active_links_and_leaves_out_what_lies_elsewhere():
    nodes = pd.DataFrame(
        {"id": [5, 9, 7, 1], "lon": [-74.0, -73.9, -73.8, 2.3], "lat": [40.7, 40.7, 40.8, 48.9]}
    )
    ends = [(-74.0, 40.7, -73.9, 40.7, "active"), (-73.8, 40.8, -73.9, 40.7, "active")]
    ends += [(-74.0, 40.7, -73.8, 40.8, "planned")]
    links = pd.DataFrame(ends, columns=["lon1", "lat1", "lon2", "lat2", "status"])
    altitudes = pd.DataFrame({"id": [9, 7, 1], "alt_m": [30, -1, 10]})
    mesh = assemble(nodes, links, altitudes)
    np.testing.assert_array_equal(mesh.nodes["degree"], [2, 1, 1])
    np.testing.assert_array_equal(mesh.nodes["lon"], [-73.9, -74.0, -73.8])  # degree, then id
    np.testing.assert_array_equal(mesh.nodes["height"], [30, np.nan, np.nan])
    assert len(mesh.links) == 2


def test_the_real_network_has_its_known_hubs(mirror, tmp_path):
    mesh = load("official", tmp_path, mirror)
    assert len(mesh.nodes) == 194  # 200, of which six lie outside of New York
    assert len(mesh.links) == 124
    np.testing.assert_array_equal(mesh.nodes["degree"][:3], [52, 33, 16])
    np.testing.assert_array_equal(mesh.nodes[["lon", "lat"]].iloc[0], [-74.001122, 40.711137])
    assert mesh.inputs.keys() == {"nodes.csv", "links.csv", "network-map/nodes_installed.csv"}


def test_the_maps_own_json_gives_the_same_network(mirror, tmp_path):
    tables = {
        name: pd.read_csv(Path(mirror, "nycmesh", f"{name}.csv"))
        for name in ("nodes", "links", "network-map/nodes_installed")
    }
    folder = tmp_path / "mirror" / "nycmesh"
    (folder / "network-map").mkdir(parents=True)
    points = [
        {
            "properties": {"id": int(row.id), "status": "Installed"},
            "geometry": {"type": "Point", "coordinates": [row.lon, row.lat]},
        }
        for row in tables["nodes"].itertuples()
    ]
    lines = [
        {
            "properties": {"status": row.status},
            "geometry": {"coordinates": [[row.lon1, row.lat1], [row.lon2, row.lat2]]},
        }
        for row in tables["links"].itertuples()
    ]
    placed = [
        {
            "id": int(row.id),
            "status": "Installed",
            "coordinates": [row.lon, row.lat, row.alt_m if row.alt_m > 0 else 5],
        }
        for row in tables["network-map/nodes_installed"].itertuples()
    ]
    for file, features in {"active.json": points, "links.json": lines}.items():
        collection = {"type": "FeatureCollection", "features": features}
        (folder / file).write_text(json.dumps(collection))
    (folder / "network-map" / "nodes.json").write_text(json.dumps(placed))
    data = load("official", tmp_path / "cache", str(folder.parent))
    expected = load("official", tmp_path / "other", mirror)
    measured = expected.nodes["height"] != 5  # which the plain lists write for the unknown, too
    assert (~measured).sum() == 1
    pd.testing.assert_frame_equal(
        data.nodes, expected.nodes.assign(height=expected.nodes["height"].where(measured))
    )
    pd.testing.assert_frame_equal(data.links, expected.links)
    assert data.inputs.keys() == {"active.json", "links.json", "network-map/nodes.json"}
    assert data.unverified
    assert Nycmesh.verify("nycmesh", "geojson", folder) == (
        "200 installed nodes",
        "289 links",
        "124 active links",
    )


def test_json_of_something_else_is_one_line(mirror, tmp_path):
    folder = tmp_path / "mirror" / "nycmesh"
    shutil.copytree(Path(mirror, "nycmesh", "network-map"), folder / "network-map")
    for file in ("active.json", "links.json"):
        (folder / file).write_text('{"message": "Not Found"}')
    with pytest.raises(InputError, match=r"active.json: not a network of NYC Mesh \(is neither"):
        load("official", tmp_path / "cache", str(folder.parent))


def test_the_stand_in_is_of_the_same_build_and_always_the_same():
    network, reloaded = (load("embedded", Path(), None) for _ in range(2))
    pd.testing.assert_frame_equal(network.nodes, reloaded.nodes)
    assert len(network.nodes) == 194
    assert (np.diff(network.nodes["degree"]) <= 0).all()
    assert network.nodes["degree"].sum() == 2 * len(network.links)
    assert network.nodes["degree"][0] > 5 * network.nodes["degree"][4]
