"""Heat maps of who was selected: the counts of a cell, and their size."""

import json

import numpy as np
import pandas as pd
from tests.helpers.fake_results import rising

from fedsampling.report.drawing import heat_maps, views

ORIGIN = {"scale": "paper", "run_data": [], "unverified": False}


def selected(*rows):
    """Return a table of selections: rows of seed, round, client and whether it reported."""
    table = pd.DataFrame(rows, columns=["seed", "round", "client", "reported"])
    return table.assign(case="base", sampler="md")


def test_a_cell_counts_the_seeds_that_selected_a_client_and_failures():
    table = selected(
        (0, 1, 0, True), (0, 1, 0, True), (1, 1, 0, True), (0, 2, 2, False), (1, 2, 0, True)
    )
    (entry,) = heat_maps.heat_maps(table)
    assert entry["selected"] == [[2, 1], [0, 0], [0, 1]]
    assert entry["failed"] == [[0, 0], [0, 0], [0, 1]]
    assert (entry["clients"], entry["rounds"], entry["seeds"]) == (3, [1, 2], 2)
    everyone = heat_maps.heat_maps(table[table["reported"]])
    assert "failed" not in everyone[0]


def test_many_clients_and_rounds_share_cells_which_count_all():
    rng = np.random.default_rng(0)
    rounds = [
        (0, at, client, True) for at in range(1, 301) for client in rng.choice(250, 25, False)
    ]
    (entry,) = heat_maps.heat_maps(selected(*rounds, (0, 300, 249, True)))
    assert len(entry["selected"]) <= heat_maps.ROWS
    assert len(entry["selected"][0]) <= heat_maps.COLUMNS
    assert np.sum(entry["selected"]) == 300 * 25 + (249 not in {row[2] for row in rounds[-25:]})


def test_each_case_has_its_own_number_of_clients():
    cases = [selected((0, 1, last, True)).assign(case=str(last)) for last in (19, 99)]
    entries = heat_maps.heat_maps(pd.concat(cases))
    assert [(entry["clients"], len(entry["selected"])) for entry in entries] == [
        (20, 20),
        (100, 100),
    ]


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
