"""The run explorer's views: thinned, labelled, and small."""

import json

import numpy as np
import pandas as pd
import pytest

from fedsampling.evidence.summaries import Summary
from fedsampling.report.drawing import views

FACTS = {"scale": "paper", "data": "official"}
MD = {"name": "md", "m": 5}


def summary(rounds, seeds=4, samplers=1):
    """Return falling losses, and 100 bits a round."""
    rows = [
        {"case": "base", "sampler": f"s{n}", "seed": seed, "at": at, "metric": metric, "value": v}
        for n in range(samplers)
        for seed in range(seeds)
        for at in range(rounds)
        for metric, v in (("loss", (seed + 1) / (at + 1)), ("model_bits", 100.0))
    ]
    settings = {"samplers": {f"s{n}": MD for n in range(samplers)}, "cases": {"base": {}}}
    return Summary(
        pd.DataFrame(rows), settings, {"scale": "paper", "run_data": [], "unverified": False}
    )


def curves(runs, folder):
    views.save(runs, "runs", folder, FACTS)
    text = (folder / "loss.js").read_text()
    return json.loads(text[text.index("[") : text.rindex("]") + 1])


def test_a_long_curve_keeps_its_ends_costs_and_the_interval_of_the_figures(tmp_path):
    runs = summary(rounds=1000)
    (curve,) = curves(runs, tmp_path)
    assert len(curve["at"]) <= views.POINTS
    assert (curve["at"][0], curve["at"][-1]) == (0, 999)
    assert curve["bits"] == [pytest.approx(100 * (at + 1), rel=1e-3) for at in curve["at"]]
    expected = runs.curves[runs.curves["metric"] == "loss"].set_index("at").loc[curve["at"]]
    for name in ("mean", "low", "high"):
        np.testing.assert_allclose(curve[name], expected[name], rtol=1e-3)


def test_a_curve_ends_with_the_shortest_run(tmp_path):
    runs = summary(rounds=9)
    rows = runs.rows[(runs.rows["seed"] > 0) | (runs.rows["at"] < 5)]
    (curve,) = curves(Summary(rows, runs.settings, runs.provenance), tmp_path)
    assert [value is None for value in curve["mean"]] == [at >= 5 for at in range(9)]
    assert curve["low"][5:] == curve["high"][5:] == 4 * [None]
