"""Sets, training runs and tuning of chen2022optimal, from its published runs."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from papers.chen2022optimal.courses import BITS, course, mean_course

from fedsampling.base.text import show_interval
from fedsampling.evidence.statistics import compare, difference, mean, ratio
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


def test_figure_1_says_that_it_shows_one_of_its_draws():
    sets = published(PAPER.key, "sets")
    (note, _) = figures_datasets.figure1({"sets": sets}, PAPER).notes
    draws = sets.rows["seed"].nunique()
    assert note.endswith(f"One draw is shown; the shares are means over {draws} draws.")


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


def test_no_rate_of_uniform_sampling_is_separated_from_its_best_on_digits():
    rows = figures_tuning.scores(published(PAPER.key, "tuning"))
    scores = rows[rows["sampler"] == "uniform"].pivot(
        index="seed", columns="step", values="accuracy"
    )
    best = scores.mean().idxmax()
    assert (best, len(scores)) == (2**-5, 3)
    others = [compare(scores[best], scores[step], difference) for step in scores if step != best]
    assert len(others) == 4
    assert all(other.low < 0 < other.high for other in others)


@pytest.fixture(scope="module")
def digits():
    """Exploring and fresh runs on FEMNIST's digits, by dataset."""
    return {
        number: pd.concat(
            [
                course(published(PAPER.key, f"{prefix}dataset{number}"))
                for prefix in ("", "confirm_")
            ]
        )
        for number in (1, 2, 3)
    }


def bits_ratio(runs, first, second):
    bits = [claims_bits.bits_to(runs, sampler, 0.85) for sampler in (first, second)]
    times = compare(*bits, ratio)
    return show_interval(times.value, times.low, times.high)


def test_the_note_of_c6_has_the_numbers_of_the_runs_on_digits(digits):
    note, runs = PAPER.claims["c6_writers"].caveat, digits[1]
    uniform = claims_bits.bits_to(runs, "uniform", 0.85)
    assert f"in {np.isfinite(uniform).sum()} of {len(uniform)} runs" in note
    sent = runs[runs["sampler"] == "uniform"].groupby("seed")["bits"].max() / BITS
    assert f"They end at {sent.min():.0f}·10^8 to {sent.max():.0f}·10^8 bits" in note
    full = claims_bits.bits_to(runs, "full", 0.85) / BITS
    assert f"needs {full.min():.0f}·10^8 to {full.max():.0f}·10^8" in note
    times = [bits_ratio(digits[number], "uniform", "full") for number in (2, 3)]
    assert f"uniform sampling needs {' and '.join(times)} times full" in note


def test_the_note_of_c7_has_the_numbers_of_the_runs_on_digits(digits):
    note = PAPER.claims["c7_writers"].caveat
    for sampler, before in (("full", "full participation needs"), ("uniform", "uniform sampling")):
        times = [bits_ratio(digits[number], sampler, "optimal") for number in (2, 3)]
        assert f"{before} {' and '.join(times)} times" in note
    for number in (2, 3):
        accuracy = mean(100 * claims_bits.accuracy_at(digits[number], "uniform", 64 * BITS))
        shown = show_interval(accuracy.value, accuracy.low, accuracy.high)
        assert re.search(rf"{re.escape(shown)} % (?:accuracy )?on Dataset {number}", note)


def test_a_run_that_misses_the_accuracy_is_named_with_its_sampler_and_dataset():
    pairs = {"uniform over full": ("dataset1", "uniform", "full")}
    full = pd.Series([1.0, 2.0])
    missing = claims_bits._misses(
        pairs, {"uniform over full": (pd.Series([3.0, np.inf]), full)}, 0.85
    )
    assert missing == "85 % is never reached by 1 of 2 runs of uniform on Dataset 1."
    assert claims_bits._misses(pairs, {"uniform over full": (full, full)}, 0.85) == ""
