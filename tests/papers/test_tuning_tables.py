"""What tuning changes: speed-ups of defaults, and samplers that lose their lead by tuning."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedsampling.experiments.papers import load_paper

load_paper("crossmatrix", Path(__file__).parents[2] / "papers")

import papers.crossmatrix.bench as bench  # noqa: E402
import papers.crossmatrix.decision_map as decision_map  # noqa: E402
import papers.crossmatrix.figures_tuning as tuning  # noqa: E402


def test_defaults_are_compared_with_mds_defaults():
    def costs(factor):
        return pd.DataFrame(
            [
                {"sampler": sampler, "seed": seed, "target": target, "rounds": cost}
                for sampler, cost in (("md", 8.0), ("x", 8.0 / factor))
                for seed in range(2)
                for target in bench.TARGETS
            ]
        )

    table = tuning.untuned_speed_ups({"a": costs(1.0), "b": costs(4.0)}, "rounds").set_index(
        "scheme"
    )
    assert table.loc["x", "untuned"] == pytest.approx(2)
    assert table.loc["x", ["untuned_low", "untuned_high"]].tolist() == pytest.approx([1, 4])
    assert table.loc["md"].tolist() == pytest.approx([1, 1, 1])


def test_samplers_that_lose_their_lead_by_tuning_are_named():
    columns = ["label", "untuned", "untuned_low", "set_low", "speed_up"]
    rows = [("X", 1.5, 1.2, 0.9, 1.0), ("Y", 1.5, 1.2, 1.1, 1.3), ("Z", 1.5, 0.9, 0.8, 1.0)]
    note = tuning.lead_lost_by_tuning(pd.DataFrame(rows, columns=columns))
    assert note.endswith("best trials: X (1.50; tuned 1.00).")


def test_a_family_counts_once_in_the_speed_up_of_the_advice():
    names = ["bench_synthetic_00", "bench_synthetic_11", "bench_spam"]
    regret_of_md, regret = pd.Series(2.0, names), pd.Series([1.0, 1.0, 2.0], names)
    speed_up = decision_map.speed_up_on_families(regret_of_md, regret, "unseen")
    assert speed_up["unseen"] == pytest.approx(np.sqrt(2))
