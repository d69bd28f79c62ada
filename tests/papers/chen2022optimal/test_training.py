"""Sets, training runs and tuning of chen2022optimal, from runs that are written out here."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from papers.chen2022optimal.runs import course, mean_course

from fedsampling.experiments.papers import draw_function, load_paper
from papers.chen2022optimal import claims, figures_training

from ..shared import PAPERS, changed, judge, made_up

PAPER = load_paper("chen2022optimal", PAPERS)
MODEL = 32 * 1_663_370  # bits of an update
ROUNDS, N, M, SEEDS = 150, 32, 3, range(5)
SCHEMES = ("full", "uniform", "optimal")
SAMPLER = {"name": "available", "available": N, "m": M, "beside": 2}
SPEED = {"full": 20.0, "uniform": 400.0, "optimal": 25.0}  # rounds to 63 % of what can be learnt


def run(sampler, seed, speed, period=5):
    """Accuracy rises to 98 % with time constant `speed`; reports are what they are expected to."""
    measured = np.arange(0, ROUNDS + 1, period)
    accuracy = 0.1 + 0.88 * (1 - np.exp(-measured / speed)) + 0.001 * seed
    rounds = np.arange(1, ROUNDS + 1)
    reports = np.full(ROUNDS, float(N if sampler == "full" else M))
    norms = sampler == "optimal"
    columns = {
        "accuracy": (measured, accuracy),
        "reports": (rounds, reports),
        "model_bits": (rounds, MODEL * reports),
        "norm_bits": (rounds, np.full(ROUNDS, 32.0 * N * norms)),
        "exchange_bits": (rounds, np.full(ROUNDS, 2 * 64.0 * N * norms)),
        "down_bits": (rounds, np.full(ROUNDS, 1.0 * MODEL * N)),
        "train_loss": (rounds, 2.3 * np.exp(-rounds / speed)),
        "diverged_at": ([-1], [-1.0]),
    }
    if norms:
        alpha = np.linspace(0.9, 0.3, ROUNDS)
        columns |= {
            "alpha_exact": (rounds, alpha),
            "deviation": (rounds, np.where(rounds % 2, 1.0, -1.0)),
            **{f"alpha_{j}": (rounds, alpha * (1.5 if j == 0 else 1)) for j in range(3)},
            **{f"expected_reports_{j}": (rounds, reports - 0.4 * (j == 0)) for j in range(3)},
        }
    return columns


def summary(sets=(1,), speed=SPEED):
    """Runs of an experiment with a case for each of several sets, or of one set alone."""
    cases = (
        {f"dataset{k}": {"dataset": {"set": k}} for k in sets} if len(sets) > 1 else {"base": {}}
    )
    runs = [
        (case, sampler, seed, run(sampler, seed, speed[sampler]))
        for case, sampler, seed in product(cases, SCHEMES, SEEDS)
    ]
    settings = {
        "settings": {"rounds": ROUNDS, "dataset": {"set": sets[0]}},
        "samplers": dict.fromkeys(SCHEMES, SAMPLER),
        "cases": cases,
    }
    return made_up(runs, settings)


@pytest.fixture(scope="module")
def summaries(tuned):
    alone = dict.fromkeys(("dataset1", "dataset2", "dataset3", "shakespeare"), summary())
    return alone | {"writers_training": summary((1, 2)), "tuning": tuned}


def lose(runs, since=100):
    """Let one run of optimal sampling diverge."""
    rows = runs.rows.copy()
    lost = (rows["sampler"] == "optimal") & (rows["seed"] == 0)
    rows.loc[lost & (rows["at"] >= since) & (rows["metric"] == "accuracy"), "value"] = np.nan
    rows.loc[lost & (rows["metric"] == "diverged_at"), "value"] = float(since)
    return replace(runs, rows=rows)


def verdict(claim, summaries):
    return judge(PAPER, claim, summaries).verdict


def test_the_largest_clients_hold_a_share_of_the_samples():
    assert figures_training.held(np.array([1, 1, 2, 4]), 0.5) == 0.75


def test_bits_add_up_column_by_column(summaries):
    result = course(summaries["dataset1"])
    last = result[(result["at"] == ROUNDS) & (result["seed"] == 3)].set_index("sampler")
    assert last.loc["full", "bits"] == last.loc["full", "model_bits"] == ROUNDS * N * MODEL
    optimal = last.loc["optimal"]
    assert optimal["norm_bits"] == ROUNDS * 32 * N
    assert optimal["exchange_bits"] == ROUNDS * 2 * 64 * N
    assert optimal["bits"] == ROUNDS * (M * MODEL + 5 * 32 * N)
    first = result[result["at"] == 0]
    assert (first["bits"] == 0).all()
    assert first["train_loss"].isna().all()


def test_means_have_standard_errors_and_end_where_a_run_diverged(summaries):
    table = mean_course(course(summaries["dataset1"]))
    assert table["accuracy_se"].to_numpy() == pytest.approx(0.001 * np.sqrt(2.5 / 5))
    result = mean_course(course(lose(summaries["dataset1"])))
    optimal = result[result["sampler"] == "optimal"].set_index("at")
    assert optimal["accuracy"].notna().sum() == 20
    assert np.isnan(optimal.loc[100, "accuracy"])
    assert optimal.loc[100, "bits"] == 100 * (M * MODEL + 5 * 32 * N)


def test_shakespeare_of_which_no_runs_are_published_is_drawn(summaries):
    artefact = draw_function(PAPER, "shakespeare")({"shakespeare": summaries["shakespeare"]}, PAPER)
    assert all(panel.lines for panel in artefact.figure.axes)


@pytest.fixture(scope="module")
def tuned():
    """Accuracy of steps that learn late, early and both."""
    runs, cases = [], {}
    for case, step, accuracy in (("a", 0.5, 0.1), ("b", 0.25, 0.9), ("c", 0.125, 0.8)):
        cases[case] = {"work": {"step": step}}
        curve = {"accuracy": (np.array([0, ROUNDS]), np.array([1 - accuracy, accuracy]))}
        runs += [(case, "optimal", seed, curve) for seed in (100, 101)]
    settings = {"rounds": ROUNDS, "dataset": {"set": 1}}
    return made_up(runs, {"settings": settings, "cases": cases})


def test_the_step_is_chosen_by_late_rounds(tuned):
    (picked,) = figures_training.chosen(tuned).to_dict("records")
    assert picked == {"set": "Dataset 1", "sampler": "optimal", "step": 0.25, "accuracy": 0.9}


def test_budgets_are_read_between_measurements():
    seeds, accuracy = [0, 0, 0, 1, 1, 1], [0.1, 0.5, 0.9, 0.1, 0.4, 0.8]
    columns = {"seed": seeds, "bits": [0.0, 10, 20, 0, 10, 30], "accuracy": accuracy}
    table = pd.DataFrame({"sampler": "full", **columns})
    assert claims.accuracy_at(table, "full", 15).tolist() == pytest.approx([0.7, 0.5])
    assert np.isnan(claims.accuracy_at(table, "full", 21)).tolist() == [True, False]
    assert claims.bits_to(table, "full", 0.5).tolist() == [10, 30]
    assert claims.bits_to(table, "full", 0.85).tolist() == [20, np.inf]


@pytest.mark.parametrize(
    ("claim", "speed", "expected"),
    [
        ("c1", {}, "reproduced"),
        ("c1", {"optimal": 90.0}, "partly reproduced"),
        ("c1", {"uniform": 10.0}, "contradicted"),
        # The budget is 40 rounds: 80 %; full needs 1280 reports, optimal 150.
        ("c2", {}, "reproduced"),
        ("c2", {"optimal": 35.0}, "partly reproduced"),
        ("c2", {"optimal": 300.0}, "contradicted"),
    ],
)
def test_c1_judges_order_and_gap_and_c2_budget_and_ratio(claim, speed, expected, summaries):
    changed_set = {"c1": "dataset3", "c2": "dataset1"}[claim]
    runs = {name: summaries[name] for name in ("dataset1", "dataset2", "dataset3")}
    assert verdict(claim, runs | {changed_set: summary(speed=SPEED | speed)}) == expected


def test_c3_judges_the_share_that_reports(summaries):
    finding = judge(PAPER, "c3", summaries)
    assert finding.verdict == "reproduced"
    assert "9.38 %" in finding.ours


def test_claims_on_stand_ins_need_nothing_of_the_official_sets(summaries):
    runs = {"writers_training": summaries["writers_training"]}
    for name in ("c1_writers", "c2_writers", "c3_writers", "c4_network", "c5_network"):
        assert verdict(name, runs) in ("reproduced", "partly reproduced")


def writers(speed, uniform):
    """Runs of all schemes on two sets, uniform sampling at a step of 0.25 times `uniform`."""
    result = summary((1, 2), speed)
    changes = {"samplers": {name: {**SAMPLER, "scale": uniform} for name in SCHEMES}}
    changes["settings"] = {**result.settings["settings"], "work": {"step": 0.25}}
    return replace(result, settings={**result.settings, **changes})


@pytest.mark.parametrize(
    ("speed", "verdict"), [(400.0, "reproduced"), (5.0, "depends on unstated choices")]
)
def test_c1_writers_is_judged_over_the_steps_of_uniform_sampling(speed, verdict):
    runs = writers({**SPEED, "uniform": speed}, uniform=0.5)
    tuned_runs = replace(runs, rows=runs.select("uniform"))
    experiments = {"writers_training": writers(SPEED, uniform=0.25), "writers_tuned": tuned_runs}
    finding = judge(PAPER, "c1_writers", experiments)
    assert finding.verdict == verdict
    assert len(finding.readings) == 2


def test_c5_network_sees_a_bias(summaries):
    biased = changed(summaries["writers_training"], lambda v: v + 0.2, metric="deviation")
    assert verdict("c5_network", {"writers_training": biased}) == "contradicted"


def test_a_lost_run_leaves_claims_undecided(summaries):
    runs = {name: summaries[name] for name in ("dataset2", "dataset3")}
    assert verdict("c1", {"dataset1": lose(summaries["dataset1"]), **runs}) == "inconclusive"
