"""The decision map: which samplers are usable, which one the rules name, and their regret."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from fedsampling.experiments.papers import load_paper
from fedsampling.samplers.scheme import NETWORK_NEEDS
from papers.crossmatrix import decision_map, figures_map

PAPER = load_paper("crossmatrix", Path(__file__).parents[3] / "papers")


def test_regret_never_sees_the_dataset_that_it_is_judged_on():
    # x is best on the two equal datasets, y on the two unequal ones.
    cost = pd.DataFrame({"x": [1.0, 1, 4, 4], "y": [1.5, 1.5, 1, 1]}, index=list("abcd"))
    log_costs = np.log(cost.assign(md=2.0, fedavg_normalised=3.0))
    answers = pd.DataFrame({"unequal": [False, False, True, True], "skewed": False}, list("abcd"))
    result = decision_map.regrets(log_costs, answers)
    np.testing.assert_allclose(result["map"], 1)
    np.testing.assert_allclose(result["md"], 2)
    np.testing.assert_allclose(result["fedavg"], 3)
    # Without a the others cost y 1.5·1·1 and x 1·4·4, without c 1.5·1.5·1 and 1·1·4: always y.
    np.testing.assert_allclose(result["always"], [1.5, 1.5, 1, 1])
    # With a dataset whose answers no other has, the map is learned from all the others.
    unique = answers.assign(skewed=[True, False, False, False])
    assert decision_map.regrets(log_costs, unique).loc["a", "map"] == pytest.approx(1.5)


def random_costs(rng):
    """Draw the log costs of four samplers on seven datasets, of which some are unequal."""
    samplers = ["x", "y", "md", "fedavg_normalised"]
    log_costs = pd.DataFrame(rng.normal(size=(7, 4)), list("abcdefg"), samplers)
    answers = {"unequal": rng.random(7) < 0.5, "skewed": False}
    return log_costs, pd.DataFrame(answers, log_costs.index)


def test_the_rule_is_chosen_without_the_dataset_too():
    log_costs, answers = random_costs(np.random.default_rng(3))
    expected = {}
    for name in log_costs.index:
        best_rule = decision_map.regrets(log_costs.drop(index=name), answers).mean().idxmin()
        expected[name] = decision_map.regrets(log_costs, answers).loc[name, best_rule]
    nested = decision_map.nested_regrets(log_costs, answers)
    np.testing.assert_allclose(nested, pd.Series(expected))
    assert decision_map.nested_regrets(log_costs[:2], answers[:2]).isna().all()


def test_md_is_advised_unless_another_rule_is_better_on_datasets_that_it_has_not_seen():
    rng, rule_used = np.random.default_rng(1), []
    for _ in range(20):
        log_costs, answers = random_costs(rng)
        mean_regrets = decision_map.regrets(log_costs, answers).mean()
        nested = decision_map.nested_regrets(log_costs, answers).mean()
        row = decision_map.advice_by_answers(log_costs, answers)[0]
        is_better = nested < mean_regrets["md"]
        assert row["rule"] == (mean_regrets.idxmin() if is_better else "md")
        rule_used.append(is_better)
    assert 0 < sum(rule_used) < len(rule_used)


def test_related_datasets_are_left_out_together():
    # x is best on the twins a and b; everywhere else always y.
    cost = pd.DataFrame({"x": [1.0, 1, 9, 9, 9], "y": [3.0, 3, 1, 1, 1]}, index=list("abcde"))
    log_costs = np.log(cost.assign(md=2.0, fedavg_normalised=2.0))
    answers = pd.DataFrame(
        {"unequal": [True, True, False, False, False], "skewed": False}, list("abcde")
    )
    unrelated = decision_map.nested_regrets(log_costs, answers)
    related = decision_map.nested_regrets(
        log_costs, answers, lambda name: "twins" if name in "ab" else name
    )
    assert unrelated["a"] == pytest.approx(1)  # the map knows x from b
    assert related["a"] == pytest.approx(3)  # without both twins, only y is known to be good


def test_two_datasets_of_one_origin_give_no_map(monkeypatch):
    monkeypatch.setattr(
        figures_map, "costs_by_dataset", lambda _: dict.fromkeys(["bench_digit", "bench_writer"])
    )
    drawn = figures_map.bench_map.__wrapped__({}, PAPER)
    assert drawn.data.empty
    assert "at least 3 datasets" in drawn.notes[0]


def test_what_is_known_decides_which_samplers_are_usable():
    def is_usable(sampler, needs, *available):
        information = {name: name in available for name in decision_map.INFORMATION}
        return decision_map.is_usable(sampler, frozenset(needs), information)

    assert is_usable("tifl", {"delays"}, "delays")
    assert not is_usable("tifl", {"delays"}, "losses")
    assert is_usable("oort", {"delays", "work_losses"}, "delays", "losses")
    assert not is_usable("full", set())
    assert not is_usable("target", {"labels"}, *decision_map.INFORMATION)
    assert decision_map.needs_all_clients("poisson")
    assert not decision_map.needs_all_clients("md")


def test_the_settings_of_the_runs_decide_what_a_sampler_needs():
    samplers = {"flanp": {"name": "flanp", "first": 5, "stop": "rounds"}}
    summaries = {"bench_spam": SimpleNamespace(settings={"samplers": samplers})}
    assert decision_map.information_needs(summaries) == {"flanp": frozenset({"delays"})}


def test_answers_about_the_datasets_follow_from_their_numbers():
    answers = decision_map.dataset_answers(PAPER.folder)
    assert answers.loc["bench_shuttle"].to_dict() == {"unequal": True, "skewed": False}
    assert answers.loc["bench_digit"].to_dict() == {"unequal": False, "skewed": True}
    experiments = {name for name in PAPER.experiments if name.startswith("bench_")}
    assert set(answers.index) == experiments


def test_every_information_of_a_sampler_is_among_the_maps_questions():
    questions = frozenset().union(*decision_map.INFORMATION.values())
    assert questions | {"labels", "label_counts"} == NETWORK_NEEDS


def test_a_family_counts_once_in_the_speed_up_of_the_advice():
    names = ["bench_synthetic_00", "bench_synthetic_11", "bench_spam"]
    regret_of_md, regret = pd.Series(2.0, names), pd.Series([1.0, 1.0, 2.0], names)
    speed_up = decision_map.speed_up_on_families(regret_of_md, regret, "unseen")
    assert speed_up["unseen"] == pytest.approx(np.sqrt(2))
