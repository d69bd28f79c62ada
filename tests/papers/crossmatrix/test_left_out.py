"""Who is left out: the comparison with MD, and the order of the clients."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from papers.crossmatrix import figures_by_client as figures

from ..shared import made_up

N, SEEDS = 10, 5


@pytest.fixture
def summary():
    """MD selects everybody, one sampler never selects two or three and loses their accuracy."""
    runs, left_out = [], {"md": 0, "flanp": 2, "uniform": 0}
    for (name, excluded), seed in product(left_out.items(), range(SEEDS)):
        used = np.where(np.arange(N) < (excluded and excluded + seed % 2), 0.0, 4.0)
        noise = 0.01 * np.random.default_rng([seed, excluded]).random(N)
        columns = {
            "samples": np.arange(N, 0, -1.0), "importance": np.full(N, 1 / N),
            "tests": np.zeros(N), "offered": np.full(N, 8.0), "rounds": used,
            "weight": used / used.sum(), "loss": np.ones(N),
            "accuracy": 0.8 - 0.5 * (used == 0) + noise,
        }  # fmt: skip
        columns = {f"client_{key}": (np.arange(N), value) for key, value in columns.items()}
        runs.append(("default", name, seed, columns))
    samplers = {name: {"name": name, "m": 3} for name in left_out}
    settings = {"title": "Ten, client by client", "samplers": samplers, "cases": {"default": {}}}
    settings["settings"] = {"dataset": {"name": "mnist"}}
    return made_up(runs, settings)


def test_a_sampler_that_leaves_clients_out_loses_accuracy_against_md(summary):
    table = figures.compared_with_md(figures.measures(summary)).set_index("sampler")
    assert table["never_selected"].to_dict() == {"md": 0, "flanp": 0.24, "uniform": 0}
    assert table["leaves_out"].to_dict() == {"md": False, "flanp": True, "uniform": False}
    assert table["costs_accuracy"].to_dict() == {"md": False, "flanp": True, "uniform": False}

    constant = figures.measures(summary).copy()
    constant["never_selected"] = np.where(
        constant.index.get_level_values("sampler") == "flanp", 0.3, 0.0
    )
    table = figures.compared_with_md(constant).set_index("sampler")
    assert np.isnan(table.loc["flanp", "never_selected_low"])  # equal in all seeds
    assert table["leaves_out"].to_dict() == {"md": False, "flanp": True, "uniform": False}

    drawn = figures.left_out({"clients_ten": summary}, None)
    assert drawn.table["Ten"].str.contains(r"\*").sum() == 1
    assert drawn.notes[0].startswith("In 1 of 2 cases (a sampler on a dataset), ")
    assert drawn.notes[0].endswith("in 1 of these 1 cases, and in 0 of the other 1.")


def test_clients_are_sorted_by_size_and_the_best_sampler_is_first(summary):
    drawn = figures.clients_shuttle({"clients_ten": summary}, None)
    md = drawn.data[drawn.data["sampler"] == "md"]
    assert md["samples"].tolist() == [*range(1, N + 1)]
    assert md["expected"].tolist() == pytest.approx([1 - 0.9**3] * N)
    assert "training samples" in drawn.notes[0]
    assert drawn.figure.axes[0].get_yticklabels()[-1].get_text() == "FLANP"


def test_clients_of_equal_size_are_placed_by_their_available_rounds(summary):
    def alike(rows):
        equal = rows.assign(value=rows["value"].mask(rows["metric"] == "client_samples", 80.0))
        rounds = equal["value"].where(equal["metric"] != "client_offered", 10 + equal["at"])
        return equal.assign(value=rounds)

    drawn = figures.clients_shuttle(
        {"clients_ten": replace(summary, rows=alike(summary.rows))}, None
    )
    axes = drawn.figure.axes[0]
    assert axes.get_xlabel() == "rounds in which the client is available"
    ticks = [tick.get_text() for tick in axes.get_xticklabels()]
    assert (ticks[0], ticks[-1]) == ("10", "19")
