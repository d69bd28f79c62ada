import pytest

from fedsampling.base.errors import InputError
from fedsampling.experiments.shorthand import matching, write_out

BASE = {"title": "Digits", "work": {"step": 0.1}, "rounds": 80}


def test_a_factor_multiplies_the_experiments_own_value():
    cases = {"same": {"work": {"step": "1x"}}, "fifth": {"work": {"step": "0.2x"}, "rounds": 40}}
    experiment = write_out({"digits": {**BASE, "cases": cases}})["digits"]
    assert experiment["cases"] == {
        "same": {"work": {"step": 0.1}},
        "fifth": {"work": {"step": 0.02}, "rounds": 40},
    }


@pytest.mark.parametrize("change", [{"server_step": "2x"}, {"title": "2x"}])
def test_a_factor_without_a_number_to_multiply_names_its_place(change):
    (key,) = change
    with pytest.raises(InputError, match=rf"^experiments.digits.cases.twice.{key}: 2x multiplies"):
        write_out({"digits": {**BASE, "cases": {"twice": change}}})


def test_tuning_makes_a_twin_that_follows_its_experiment():
    tuning = {"title": "on a holdout", "holdout": 0.2, "rounds": 8}
    experiments = write_out(
        {"digits": {**BASE, "tuning": tuning}, "other": {**BASE, "tuning": None}}
    )
    assert list(experiments.items()) == [
        ("digits", BASE),
        ("tuning_digits", {**BASE, "title": "Digits, on a holdout", "holdout": 0.2, "rounds": 8}),
        ("other", BASE),
    ]


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["a_one"], ["a_one"]),
        (["a_*"], ["a_one", "a_two"]),
        (["*", "!*_two"], ["a_one", "b_one"]),
        (["unknown", "c_*"], ["unknown", "c_*"]),
    ],
)
def test_patterns_stand_for_the_names_that_match(patterns, names):
    assert matching(patterns, ["a_one", "a_two", "b_one"]) == names
