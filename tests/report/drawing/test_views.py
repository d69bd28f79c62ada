"""The run explorer's views: thinned, labelled, and small."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.helpers.fake_results import rising

from fedsampling.evidence.summaries import Summary
from fedsampling.report.drawing import views

ORIGIN = {"scale": "paper", "run_data": [], "unverified": False}


def curves(runs, folder):
    views.save(runs, "runs", folder, {"scale": "paper", "data": "official"})
    text = (folder / "accuracy.js").read_text()
    return json.loads(text[text.index("[") : text.rindex("]") + 1])


def test_a_long_curve_keeps_its_ends_costs_and_the_interval_of_the_figures(tmp_path):
    runs = rising(1000, ORIGIN)
    curve, _ = curves(runs, tmp_path)
    assert len(curve["at"]) <= views.POINTS
    assert (curve["at"][0], curve["at"][-1]) == (1, 1000)
    assert curve["bits"] == [pytest.approx(100 * at, rel=1e-3) for at in curve["at"]]
    expected = runs.curves.query("metric == 'accuracy' and sampler == 'md'").set_index("at")
    for name in ("mean", "low", "high"):
        np.testing.assert_allclose(curve[name], expected.loc[curve["at"], name], rtol=1e-3)


def test_two_clocks_if_the_sampler_requests_something(tmp_path):
    runs = rising(4, ORIGIN)
    assert "training" not in curves(runs, tmp_path)[0]
    rounds = runs.rows[runs.rows["metric"] == "model_bits"]
    rows = [runs.rows, rounds.assign(metric="seconds", value=10.0)]
    rows += [rounds[rounds["at"] == 1].assign(metric="asking_seconds", value=5000.0)]
    waited = Summary(pd.concat(rows, ignore_index=True), runs.settings, runs.provenance)
    curve, _ = curves(waited, tmp_path)
    assert curve["training"] == [10, 20, 30, 40]
    assert curve["seconds"] == [5010, 5020, 5030, 5040]


def test_a_curve_ends_with_the_shortest_run(tmp_path):
    runs = rising(9, ORIGIN)
    rows = runs.rows[(runs.rows["seed"] > 0) | (runs.rows["at"] < 5)]
    curve, _ = curves(Summary(rows, runs.settings, runs.provenance), tmp_path)
    assert [value is None for value in curve["mean"]] == [at >= 5 for at in range(1, 10)]
    assert curve["low"][4:] == curve["high"][4:] == 5 * [None]
