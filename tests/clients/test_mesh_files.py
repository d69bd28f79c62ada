"""The mesh network: distances, joins, NYC Mesh's JSON, and facts about the real files."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.shared import lines_of

from fedsampling.base.errors import InputError
from fedsampling.clients import mesh_files
from fedsampling.clients.mesh import great_circle
from fedsampling.clients.mesh_files import EARTH, UNMEASURED, load, map_links


def test_great_circle_on_known_arcs():
    quarter = np.pi / 2 * EARTH
    np.testing.assert_allclose(great_circle(0, 0, [90, 0, 37], [0, 90, 90]), quarter)
    assert great_circle(10, 50, 10, 51) == pytest.approx(111_195, abs=1)
    assert great_circle(-73.9, 40.7, -73.9, 40.7) == 0
    # Singapore Changi to New York JFK, published as 15,332 km (spheroid; a sphere errs by 0.5 %).
    assert great_circle(103.994, 1.350, -73.779, 40.640) == pytest.approx(15_332e3, rel=0.005)


def test_the_real_network_has_its_known_hubs(mirror, tmp_path):
    mesh = load("official", tmp_path, mirror)
    assert len(mesh.nodes) == 194  # 200, of which six lie outside of New York
    assert len(mesh.links) == 124
    np.testing.assert_array_equal(mesh.nodes["degree"][:3], [52, 33, 16])
    assert mesh.nodes["height"].isna().sum() == 26
    assert mesh.nodes["height"].median() == 29
    np.testing.assert_array_equal(mesh.nodes[["lon", "lat"]].iloc[0], [-74.001122, 40.711137])
    assert mesh.inputs.keys() == {"nodes.csv", "links.csv", "network-map/nodes_installed.csv"}


def test_the_stand_in_is_of_the_same_build_and_always_the_same():
    network, reloaded = (load("embedded", Path(), None) for _ in range(2))
    pd.testing.assert_frame_equal(network.nodes, reloaded.nodes)
    assert len(network.nodes) == 194
    assert (np.diff(network.nodes["degree"]) <= 0).all()
    assert network.nodes["degree"].sum() == 2 * len(network.links)
    assert network.nodes["degree"][0] > 5 * network.nodes["degree"][4]


def geojson(entries):
    features = [
        {"properties": properties, "geometry": {"coordinates": coordinates}}
        for properties, coordinates in entries
    ]
    return json.dumps({"features": features}).encode()


def plain(entries):
    rows = [{**properties, "coordinates": coordinates} for properties, coordinates in entries]
    return json.dumps(rows).encode()


@pytest.mark.parametrize("form", [geojson, plain])
def test_the_maps_own_json_is_read_in_either_form(form, tmp_path):
    folder = tmp_path / "mirror" / "nycmesh"
    (folder / "network-map").mkdir(parents=True)
    places = [[-74 + k / 1000, 40.7, k] for k in range(200)]
    places[7] = places[7][:2]
    for place in places[65:]:
        place[2] = UNMEASURED
    places[199] = [2.3, 48.9, 10]  # not in New York
    nodes = [({"status": "Installed", "id": k}, place) for k, place in enumerate(places)]
    nodes += [({"status": "Potential", "id": 200}, places[0]), ({"id": 201}, places[0])]
    links = [
        ({"status": "active" if k < 124 else "dead"}, [places[0], places[1 + k % 199]])
        for k in range(289)
    ]
    (folder / "active.json").write_bytes(form(nodes[::-1]))
    (folder / "links.json").write_bytes(form(links))
    (folder / "network-map" / "nodes.json").write_bytes(form(nodes))
    data = load("official", tmp_path / "cache", str(folder.parent))
    height = np.arange(199.0)
    height[[0, 5, 7, *range(65, 199)]] = np.nan  # on the ground, the map's default, none
    np.testing.assert_array_equal(data.nodes["height"], height)
    np.testing.assert_array_equal(data.nodes[["lon", "lat"]], [place[:2] for place in places[:-1]])
    np.testing.assert_array_equal(data.nodes["degree"], [124, *[1] * 124, *[0] * 74])
    assert len(data.links) == 124
    assert data.inputs.keys() == {"active.json", "links.json", "network-map/nodes.json"}
    assert data.unverified
    (folder / "links.json").write_bytes(form(links[1:]))
    (folder / "network-map" / "nodes.json").write_bytes(form(nodes[:5]))
    lines = lines_of(load, "official", tmp_path / "other", str(folder.parent))
    faults = [line.partition(" have ")[2].partition(" as ")[0] for line in lines]
    assert faults == ["289 links", "124 active links", "63 altitudes"]


@pytest.mark.parametrize("content", [b"<html>", b"[1, 2]", b'[{"id": 1, "status": "active"}]'])
def test_anything_else_is_refused(content, tmp_path):
    (tmp_path / "links.json").write_bytes(content)
    with pytest.raises(InputError, match=r"links\.json: not a network of NYC Mesh"):
        mesh_files._table(tmp_path / "links.json", map_links)
