"""The cross matrix's benchmark: trials, costs to targets, and what tuning changes."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedsampling.experiments.papers import load_paper
from papers.crossmatrix import bench, figures_checks, figures_tuning, search

PAPER = load_paper("crossmatrix", Path(__file__).parents[3] / "papers")
# Local learning rate, in units of the middle one, and server step of each trial.
TRIALS = {
    "default": (1, 1),
    "small": (0.2, 1),
    "large": (5, 1),
    "largest": (25, 1),
    "own": (1, 2),
    "own-small": (0.2, 5),
    "own-large": (5, 0.5),
    "own-largest": (25, 0.2),
    "own-smallest": (0.04, 10),
}


def test_the_paper_lists_the_trials_that_the_search_draws():
    benchmark = [name for name in PAPER.experiments if name.startswith("bench_")]
    draws = search.draws()
    for experiment in benchmark:
        cases = PAPER.experiments[experiment]["cases"]
        middle = cases["default"]["work"]["step"]
        steps = {
            name: (case["work"]["step"] / middle, case.get("server_step", 1))
            for name, case in cases.items()
        }
        assert steps == {name: pytest.approx(pair) for name, pair in TRIALS.items()}
        drawn, *repeated = [cases[name]["samplers"] for name in TRIALS if name.startswith("own")]
        assert drawn in draws
        assert repeated == [drawn] * len(repeated)
    assert {name for draw in draws for name in draw} == set(search.SPACES)


def trajectories(scores, rounds=(0, 4, 8, 12)):
    rows = [
        {"sampler": sampler, "seed": 0, "at": at, "score": score, "smooth": score}
        | {"rounds": float(at), "bits": 10.0 * at, "seconds": 2.0 * at}
        for sampler, values in scores.items()
        for at, score in zip(rounds, values, strict=True)
    ]
    return pd.DataFrame(rows)


def test_a_cost_is_that_of_meeting_a_target_or_twice_the_whole_run():
    runs = trajectories({"md": [0.0, 0.4, 0.8, 1.0], "slow": [0.0, 0.2, 0.6, 0.7]})
    reference = bench.reference_scores(runs)
    assert (reference.first, reference.final) == (0.0, 1.0)
    costs = bench.costs_to_targets(runs, reference)
    table = costs.set_index(["sampler", "target"])
    assert table.loc[("md", "half"), "rounds"] == 8
    assert table.loc[("md", "late"), "seconds"] == 24
    assert table.loc[("slow", "half"), "bits"] == 80
    assert table.loc[("slow", "late"), "rounds"] == 2 * 12
    assert not table.loc[("slow", "late"), "met"]
    # Geometric mean of both targets: √(8 · 12) and √(8 · 24).
    mean = bench.mean_costs(bench.cost_array(costs, "rounds", ["md", "slow"]))
    np.testing.assert_allclose(mean, np.sqrt([96, 192]))


def rounds_to_targets(**rounds):
    """Tabulate costs: a sampler needs the same number of rounds for each target and seed."""
    keys = product(rounds, range(3), bench.TARGETS)
    costs = pd.DataFrame(keys, columns=["sampler", "seed", "target"])
    return costs.assign(rounds=costs["sampler"].map(rounds))


def test_two_samplers_are_compared_where_both_ran():
    costs = rounds_to_targets(x=2.0, y=6.0)
    by_set = {"a": costs, "b": costs[costs["sampler"] == "x"]}
    row = figures_checks.compared_pair(by_set, "x", "y", "rounds")
    assert (row["ratio"], row["won"], row["sets"]) == (pytest.approx(3), 1, 1)
    assert figures_checks.compared_pair({"b": by_set["b"]}, "x", "y", "rounds") is None


def test_defaults_are_compared_with_mds_defaults():
    by_set = {"a": rounds_to_targets(md=8.0, x=8.0), "b": rounds_to_targets(md=8.0, x=2.0)}
    table = figures_tuning.untuned_speed_ups(by_set, "rounds").set_index("scheme")
    assert table.loc["x", "untuned"] == pytest.approx(2)
    assert table.loc["x", ["untuned_low", "untuned_high"]].tolist() == pytest.approx([1, 4])
    assert table.loc["md"].tolist() == pytest.approx([1, 1, 1])


def test_samplers_that_lose_their_lead_by_tuning_are_named():
    columns = ["label", "untuned", "untuned_low", "set_low", "speed_up"]
    rows = [("X", 1.5, 1.2, 0.9, 1.0), ("Y", 1.5, 1.2, 1.1, 1.3), ("Z", 1.5, 0.9, 0.8, 1.0)]
    note = figures_tuning.lead_lost_by_tuning(pd.DataFrame(rows, columns=columns))
    assert note.endswith("best trials: X (1.50; tuned 1.00).")
