"""What `fedsampling compare` says of its tables, and which datasets it ranks on first."""

import numpy as np
import pandas as pd

from fedsampling.workflow.comparing.results import ranking, wins_and_losses
from fedsampling.workflow.comparing.schedule import DatasetWork, first_sets


def test_datasets_with_an_interval_on_one_side_of_one_are_named():
    rows = [
        ("Synthetic, IID", 1.1, 1.3),
        ("DNA", 1.2, 1.4),
        ("Spam", 0.9, 1.1),
        ("Vowel", np.nan, np.nan),
    ]
    matrix = pd.DataFrame(rows, columns=["title", "speed_up_low", "speed_up_high"])
    assert wins_and_losses(matrix.assign(scheme="mine"), "mine") == [
        "  significantly faster than MD in rounds: Synthetic, IID; DNA",
        "  significantly slower than MD in rounds: on no dataset",
        "  undecided (interval includes 1, or too few seeds): Spam; Vowel",
    ]


def test_on_one_dataset_the_interval_is_over_its_seeds():
    common = {"scheme": "mine", "speed_up": 1.2, "low": np.nan, "high": np.nan, "rank": 1.0}
    row = {"measure": "rounds", **common, "worst": 1.2, "families": 1, "reached": 9, "runs": 10}
    ranks = pd.DataFrame([row])
    one = pd.DataFrame([{"scheme": "mine", "speed_up_low": 1.05, "speed_up_high": 1.4}])
    assert "1.20 [1.05, 1.40]" in ranking(ranks, "mine", {"rounds": one})[1]
    assert "[" not in ranking(ranks, "mine", {"rounds": pd.concat([one, one])})[1]
    assert "[" not in ranking(ranks, "mine")[1]


def test_the_first_ranking_is_on_cheap_datasets_of_different_families():
    works = [
        DatasetWork(f"set{i}", family, 28, i, on_hand)
        for i, (family, on_hand) in enumerate(
            [("a", True), ("a", True), ("b", False), *((family, True) for family in "cdefg")]
        )
    ]
    assert [work.name for work in first_sets(works)] == ["set0", "set3", "set4", "set5", "set6"]
