"""Heat maps of who was selected: the shares of a cell, and their size."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.helpers.fake_results import rising

from fedsampling.report.drawing import heat_maps, views

ORIGIN = {"scale": "paper", "run_data": [], "unverified": False}


def selected(*rows):
    """Return a table of selections: rows of seed, round, client and whether it reported."""
    table = pd.DataFrame(rows, columns=["seed", "round", "client", "reported"])
    return table.assign(case="base", sampler="md")


def shares(rows):
    return [
        [(ord(cell) - heat_maps.FIRST_LEVEL) / (heat_maps.LEVELS - 1) for cell in row]
        for row in rows
    ]


def test_a_cell_has_the_share_of_seeds_that_selected_a_client_and_of_failures():
    table = selected(
        (0, 1, 0, True), (0, 1, 0, True), (1, 1, 0, True), (0, 2, 2, False), (1, 2, 0, True)
    )
    (entry,) = heat_maps.heat_maps(table)
    np.testing.assert_allclose(shares(entry["selected"]), [[1, 0.5], [0, 0], [0, 0.5]], atol=0.01)
    np.testing.assert_allclose(shares(entry["failed"]), [[0, 0], [0, 0], [0, 0.5]], atol=0.01)
    assert (entry["clients"], entry["rounds"], entry["seeds"]) == (3, [1, 2], 2)
    everyone = heat_maps.heat_maps(table[table["reported"]])
    assert "failed" not in everyone[0]


def test_many_clients_and_rounds_share_cells_whose_mean_is_that_of_all():
    rng = np.random.default_rng(0)
    rounds = [
        (0, at, client, True) for at in range(1, 301) for client in rng.choice(250, 25, False)
    ]
    (entry,) = heat_maps.heat_maps(selected(*rounds, (0, 300, 249, True)))
    assert len(entry["selected"]) <= heat_maps.ROWS
    assert len(entry["selected"][0]) <= heat_maps.COLUMNS
    assert np.mean(shares(entry["selected"])[:-1]) == pytest.approx(0.1, rel=0.05)


def test_an_experiment_says_whether_it_recorded_who_was_selected(tmp_path):
    runs, facts = rising(4, ORIGIN), {"scale": "paper", "data": "official"}
    views.save(runs, "runs", tmp_path, facts, tmp_path / "absent.csv")
    assert not json.loads((tmp_path / views.RECORD).read_text())["selections"]
    assert not (tmp_path / views.HEAT_MAPS).exists()
    file = tmp_path / "selections.csv"
    selected((0, 1, 0, True)).to_csv(file, index=False)
    paths = views.save(runs, "runs", tmp_path, facts, file)
    assert tmp_path / views.HEAT_MAPS in paths
    record = json.loads((tmp_path / views.RECORD).read_text())
    assert record["selections"]
    assert views.HEAT_MAPS in record["digests"]
