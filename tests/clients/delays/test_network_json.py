"""NYC Mesh's JSON in both forms."""

import json

import numpy as np
import pytest

from fedsampling.clients.delays.radio import mesh

POINTS = {2: ("Installed", [-73.99, 40.71]), 5: ("Potential", [-73.98, 40.72])}
LINES = {"active": [[-73.99, 40.71], [-74.0, 40.7]], "dead": [[-73.9, 40.6], [-73.8, 40.5]]}


def geojson(kind, entries):
    features = [
        {
            "type": "Feature",
            "properties": properties,
            "geometry": {"type": kind, "coordinates": coordinates},
        }
        for properties, coordinates in entries
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def plain(entries):
    return json.dumps(
        [{**properties, "coordinates": place} for properties, place in entries]
    ).encode()


def test_installed_nodes_of_either_form_are_the_same():
    entries = [({"id": n, "status": status}, place) for n, (status, place) in POINTS.items()]
    for content in (geojson("Point", entries), plain(entries)):
        result = mesh.map_nodes(content)
        assert result[["id", "lon", "lat"]].to_numpy().tolist() == [[2, -73.99, 40.71]]
        assert result["alt_m"].isna().all()


def test_links_of_either_form_are_the_same():
    entries = [({"status": status}, ends) for status, ends in LINES.items()]
    for content in (geojson("LineString", entries), plain(entries)):
        result = mesh.map_links(content)
        assert result["status"].tolist() == ["active", "dead"]
        ends = result[["lon1", "lat1", "lon2", "lat2"]].to_numpy()
        np.testing.assert_array_equal(ends.reshape(2, 2, 2), list(LINES.values()))


def test_altitudes_are_metres_and_the_maps_default_is_none():
    entries = [({"id": n, "status": "Installed"}, [-74, 40.7, alt]) for n, alt in ((1, 31), (2, 5))]
    np.testing.assert_array_equal(mesh.map_nodes(plain(entries))["alt_m"], [31, np.nan])


def test_nodes_without_a_status_are_not_installed():
    assert mesh.map_nodes(plain([({"id": 46}, [-74, 40.7, 5])])).empty


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"<html>", "Expecting value"),
        (b'{"type": "Topology"}', "neither GeoJSON nor a list"),
        (b"[1, 2]", "neither GeoJSON nor a list"),
        (b'[{"id": 1, "status": "active"}]', "an entry has no 'coordinates'"),
        (plain([({"status": "active"}, [[1, 2]])]), "a link has 1 ends"),
        (plain([({"status": "active"}, [[1, 2], [3]])]), r"\[3\] is not a place"),
    ],
)
def test_anything_else_is_refused(content, fault):
    with pytest.raises(ValueError, match=fault):
        mesh.map_links(content)
