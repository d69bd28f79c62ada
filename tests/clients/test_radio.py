"""Path loss: ns-3's published values, limits and continuity."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shared import lines_of

from fedsampling.base.errors import InputError
from fedsampling.clients import mesh
from fedsampling.clients.mesh import (
    EARTH,
    Parameters,
    great_circle,
    hybrid,
    kun,
    load,
    map_links,
    okumura_hata,
    p1411_line_of_sight,
    p1411_over_rooftops,
)

LARGE, SMALL = Parameters(), Parameters(large_city=False)
heights = st.floats(1.5, 200)


# Expected values: ns-3's test suite "buildings-pathloss-test", tolerance 0.1 dB as there.
@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (okumura_hata(2000, 30, 1, 869, LARGE), 137.93),
        (okumura_hata(2000, 30, 1, 869, SMALL), 137.88),
        (okumura_hata(2000, 30, 1, 869, Parameters(environment="suburban")), 128.03),
        (okumura_hata(2000, 30, 1, 869, Parameters(environment="open")), 109.66),
        (okumura_hata(2000, 30, 1, 2114, LARGE), 148.55),
        (okumura_hata(2000, 30, 1, 2114, SMALL), 150.64),
        (kun(2000), 121.83),
        (p1411_line_of_sight(np.hypot(100, 29), 30, 1, 2114), 81.00),
        (p1411_line_of_sight(100.404, 10, 1, 2114), 81.838),
        (p1411_over_rooftops(np.hypot(900, 29), 30, 1, 2114, LARGE), 143.69),
        (p1411_over_rooftops(np.hypot(500, 9), 10, 1, 2114, LARGE), 180.90),
    ],
)
def test_the_models_give_the_published_values(loss, expected):
    assert loss == pytest.approx(expected, abs=0.1)


def test_hybrid_changes_its_formula_where_the_documentation_says():
    def at(d, h_one, h_other, f=2114.0):
        return hybrid(d, h_one, h_other, f, LARGE)

    assert at(150, 60, 30) == p1411_line_of_sight(150, 60, 30, 2114)
    assert at(900, 60, 30) == p1411_over_rooftops(900, 60, 30, 2114, LARGE)
    assert at(2000, 60, 30) == okumura_hata(2000, 60, 30, 2114, LARGE)
    assert at(2000, 60, 30, 2600) == kun(2000)
    assert at(2000, 60, 10) == p1411_over_rooftops(2000, 60, 10, 2114, LARGE)


def test_a_large_city_is_its_own_case_at_low_frequency():
    # Hata 1980: the two corrections of a large city, at 200 MHz and above, for a mobile at 1.5 m.
    low = okumura_hata(5000, 50, 1.5, 200, LARGE) - okumura_hata(5000, 50, 1.5, 200, SMALL)
    high = okumura_hata(5000, 50, 1.5, 201, LARGE) - okumura_hata(5000, 50, 1.5, 201, SMALL)
    assert low == pytest.approx(high, abs=0.1)


@given(heights, heights, st.floats(300, 2600))
def test_line_of_sight_is_continuous_at_the_breakpoint_of_its_lower_bound(h_one, h_other, f):
    breakpoint = 4 * h_one * h_other * f * 1e6 / 299_792_458
    before, after = p1411_line_of_sight(
        breakpoint * np.array([1 - 1e-9, 1 + 1e-9]), h_one, h_other, f
    )
    assert after == pytest.approx(before, abs=1e-6)


@given(st.floats(20, 30_000), heights, heights, st.sampled_from([700.0, 2160.0, 2600.0]))
def test_ends_can_be_exchanged_and_no_loss_is_below_free_space(d, h_one, h_other, f):
    loss = p1411_over_rooftops(d, h_one, h_other, f, LARGE)
    assert loss == p1411_over_rooftops(d, h_other, h_one, f, LARGE)
    assert loss >= 32.4 + 20 * np.log10(d / 1000) + 20 * np.log10(f) - 1e-9
    losses = [hybrid(d, *ends, f, LARGE) for ends in ((h_one, h_other), (h_other, h_one))]
    assert losses[0] == losses[1]
    assert np.isfinite(losses[0])


@given(st.floats(1.5, 19), st.sampled_from([700.0, 2160.0]))
def test_below_the_roofs_nothing_jumps_at_half_a_kilometre(h_b, f):
    before, after = p1411_over_rooftops(np.array([500 - 1e-6, 500 + 1e-6]), h_b, 1.5, f, LARGE)
    assert after == pytest.approx(before, abs=1e-4)


# The mesh network: distances, joins, NYC Mesh's JSON, and facts about the real files.


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
    height[[0, 5, 7]] = np.nan  # on the ground, the map's default, none
    np.testing.assert_array_equal(data.nodes["height"], height)
    np.testing.assert_array_equal(data.nodes[["lon", "lat"]], [place[:2] for place in places[:-1]])
    np.testing.assert_array_equal(data.nodes["degree"], [124, *[1] * 124, *[0] * 74])
    assert len(data.links) == 124
    assert data.inputs.keys() == {"active.json", "links.json", "network-map/nodes.json"}
    assert data.unverified
    (folder / "links.json").write_bytes(form(links[1:]))
    lines = lines_of(load, "official", tmp_path / "other", str(folder.parent))
    faults = [line.partition(" have ")[2].partition(" as ")[0] for line in lines]
    assert faults == ["289 links", "124 active links"]


@pytest.mark.parametrize("content", [b"<html>", b"[1, 2]", b'[{"id": 1, "status": "active"}]'])
def test_anything_else_is_refused(content, tmp_path):
    (tmp_path / "links.json").write_bytes(content)
    with pytest.raises(InputError, match=r"links\.json: not a network of NYC Mesh"):
        mesh._table(tmp_path / "links.json", map_links)
