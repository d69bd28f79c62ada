"""Sets, training runs and tuning of chen2022optimal, from its published runs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from papers.chen2022optimal.courses import course, mean_course

from fedsampling.experiments.papers import draw_function, load_paper
from papers.chen2022optimal import claims_bits, figures_datasets, figures_tuning

from ..shared import PAPERS, changed, judge, lost, made_up, published

PAPER = load_paper("chen2022optimal", PAPERS)
MODEL = 32 * 1_663_370  # bits of an update
ROUNDS, N = 151, 32


def runs(*names):
    return {name: published(PAPER.key, name) for name in names}


def raised(summary, sampler, by):
    """Raise the accuracy of a sampler."""
    return changed(summary, lambda accuracy: accuracy + by, sampler=sampler, metric="accuracy")


def test_the_largest_clients_hold_a_share_of_the_samples():
    assert figures_datasets.held(np.array([1, 1, 2, 4]), 0.5) == 0.75


def test_bits_add_up_column_by_column():
    result = course(published(PAPER.key, "dataset1"))
    last = result[(result["at"] == ROUNDS) & (result["seed"] == 3)].set_index("sampler")
    assert last.loc["full", "bits"] == last.loc["full", "model_bits"] == ROUNDS * N * MODEL
    optimal = last.loc["optimal"]
    assert optimal["norm_bits"] == ROUNDS * 32 * N
    assert optimal["model_bits"] == optimal["reports"] * MODEL
    assert optimal["bits"] == optimal[["model_bits", "norm_bits", "exchange_bits"]].sum()
    first = result[result["at"] == 0]
    assert {*first["sampler"]} == {*last.index}
    assert (first["bits"] == 0).all()
    assert first["train_loss"].isna().all()


def test_means_have_standard_errors_and_end_where_a_run_diverged():
    summary = published(PAPER.key, "dataset1")
    table = mean_course(course(summary)).set_index(["sampler", "at"])
    accuracies = summary.select("optimal", "accuracy", since=ROUNDS)["value"]
    error = np.std(accuracies, ddof=1) / np.sqrt(5)
    assert table.loc[("optimal", ROUNDS), "accuracy_se"] == pytest.approx(error)
    result = mean_course(course(lost(summary, "optimal", since=100))).set_index(["sampler", "at"])
    optimal = result.loc["optimal"]
    assert optimal["accuracy"].isna().tolist() == (optimal.index >= 100).tolist()
    assert optimal["bits"].tolist() == table.loc["optimal", "bits"].tolist()


def test_shakespeare_of_which_no_runs_are_published_is_drawn():
    shakespeare = {"shakespeare": published(PAPER.key, "dataset1")}
    artefact = draw_function(PAPER, "shakespeare")(shakespeare, PAPER)
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
    (picked,) = figures_tuning.chosen(tuned).to_dict("records")
    assert picked == {"set": "Dataset 1", "sampler": "optimal", "step": 0.25, "accuracy": 0.9}


def test_a_best_step_at_an_end_of_the_grid_is_named(tuned):
    inside = figures_tuning.tuning({"tuning": tuned}, PAPER)
    assert inside.notes == ("Best steps. Dataset 1: optimal (AOCS) 0.250.",)
    assert not inside.caption_end
    shorter = replace(tuned, rows=tuned.rows[tuned.rows["case"] != "a"])
    edge = figures_tuning.tuning({"tuning": shorter}, PAPER).caption_end
    assert edge.endswith("a better step may lie beyond: optimal (AOCS) (Dataset 1, 0.250).")


def test_budgets_are_read_between_measurements():
    seeds, accuracy = [0, 0, 0, 1, 1, 1], [0.1, 0.5, 0.9, 0.1, 0.4, 0.8]
    columns = {"seed": seeds, "bits": [0.0, 10, 20, 0, 10, 30], "accuracy": accuracy}
    table = pd.DataFrame({"sampler": "full", **columns})
    assert claims_bits.accuracy_at(table, "full", 15).tolist() == pytest.approx([0.7, 0.5])
    assert np.isnan(claims_bits.accuracy_at(table, "full", 21)).tolist() == [True, False]
    assert claims_bits.bits_to(table, "full", 0.5).tolist() == [10, 30]
    assert claims_bits.bits_to(table, "full", 0.85).tolist() == [20, np.inf]


@pytest.mark.parametrize(
    ("claim", "experiment", "sampler", "by", "verdict"),
    [
        ("c1", "dataset3", "full", 0.2, "partly reproduced"),
        ("c1", "dataset3", "uniform", 1, "contradicted"),
        ("c2", "dataset1", "optimal", 0.05, "reproduced"),
        ("c2", "dataset1", "uniform", 1, "contradicted"),
    ],
)
def test_c1_judges_order_and_gap_and_c2_budget_and_ratio(claim, experiment, sampler, by, verdict):
    summaries = runs("dataset1", "dataset2", "dataset3")
    summaries[experiment] = raised(summaries[experiment], sampler, by)
    assert judge(PAPER, claim, summaries).verdict == verdict


def test_a_lost_run_leaves_claims_undecided():
    summaries = runs("dataset1", "dataset2", "dataset3")
    summaries["dataset1"] = lost(summaries["dataset1"], "optimal", since=100)
    assert judge(PAPER, "c1", summaries).verdict == "inconclusive"


def test_claims_on_stand_ins_need_nothing_of_the_official_sets():
    for name in ("c1_writers", "c2_writers", "c3_writers", "c4_network", "c5_network"):
        finding = judge(PAPER, name, runs("writers_training"))
        assert finding.verdict in ("reproduced", "partly reproduced")


@pytest.mark.parametrize(
    ("by", "verdict"), [(0, "reproduced"), (-1, "depends on unstated choices")]
)
def test_c1_writers_is_judged_over_the_steps_of_uniform_sampling(by, verdict):
    summaries = runs("writers_training", "writers_tuned")
    summaries["writers_training"] = raised(summaries["writers_training"], "uniform", -by)
    finding = judge(PAPER, "c1_writers", summaries)
    assert finding.verdict == verdict
    assert len(finding.readings) == 2


@pytest.mark.parametrize(
    ("claim", "metric", "change"),
    [
        ("c3_writers", "reports", lambda reports: 5 * reports),
        ("c4_network", "alpha_exact", lambda alpha: alpha + 1),
        ("c5_network", "deviation", lambda deviation: deviation + 0.2),
    ],
)
def test_reports_factors_and_a_bias_contradict(claim, metric, change):
    biased = changed(published(PAPER.key, "writers_training"), change, metric=metric)
    assert judge(PAPER, claim, {"writers_training": biased}).verdict == "contradicted"


def test_a_run_that_misses_the_accuracy_is_named_with_its_sampler_and_dataset():
    pairs = {"uniform over full": ("dataset1", "uniform", "full")}
    full = pd.Series([1.0, 2.0])
    missing = claims_bits._misses(
        pairs, {"uniform over full": (pd.Series([3.0, np.inf]), full)}, 0.85
    )
    assert missing == "85 % is never reached by 1 of 2 runs of uniform on Dataset 1."
    assert claims_bits._misses(pairs, {"uniform over full": (full, full)}, 0.85) == ""
