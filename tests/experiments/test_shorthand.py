"""Shorthand of paper.yaml: factors, and twins for tuning."""

import pytest

from fedsampling.base.errors import InputError
from fedsampling.experiments import shorthand

BASE = {"title": "Digits", "work": {"step": 0.1}, "rounds": 80}


def test_a_factor_multiplies_the_experiments_own_value():
    cases = {"same": {"work": {"step": "1x"}}, "fifth": {"work": {"step": "0.2x"}, "rounds": 40}}
    experiment = shorthand.write_out({"digits": {**BASE, "cases": cases}})["digits"]
    assert experiment["cases"] == {
        "same": {"work": {"step": 0.1}},
        "fifth": {"work": {"step": 0.02}, "rounds": 40},
    }
    with pytest.raises(InputError, match=r"^experiments.digits.cases.twice.title: 2x multiplies"):
        shorthand.write_out({"digits": {**BASE, "cases": {"twice": {"title": "2x"}}}})


def test_tuning_makes_a_twin_that_follows_its_experiment():
    tuning = {"title": "on a holdout", "holdout": 0.2, "rounds": 8}
    experiments = shorthand.write_out(
        {"digits": {**BASE, "tuning": tuning}, "other": {**BASE, "tuning": None}}
    )
    assert list(experiments.items()) == [
        ("digits", BASE),
        ("tuning_digits", {**BASE, "title": "Digits, on a holdout", "holdout": 0.2, "rounds": 8}),
        ("other", BASE),
    ]
