"""The cross matrix's rules, on runs whose steps, targets and costs are known."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from papers.crossmatrix.runs import (
    costs_to_target,
    gains,
    grid_scores,
    speed_ups,
    target_score,
    tuned_trajectories,
)

from fedsampling.base.errors import InputError
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.config import Config
from fedsampling.experiments.paper_selection import load_papers
from fedsampling.experiments.specs import jobs
from fedsampling.samplers.scheme import Scheme
from papers.crossmatrix import figures_by_dataset, figures_clients, figures_over_datasets

PAPERS = Path(__file__).parents[3] / "papers"
ROUNDS = 10
STEPS = {"small": {"work": {"step": 0.1}}, "large": {"work": {"step": 0.3}}}
SETTINGS = {"title": "A set", "settings": {}, "cases": STEPS}


def run(case, sampler, seed, scores, metric="accuracy"):
    """Ten rounds of 100 bits and 2 seconds each, asked for 1 second before the first one."""
    key = (case, sampler, seed)
    rows = [(*key, t, metric, score) for t, score in enumerate(scores)]
    for t in range(1, ROUNDS + 1):
        rows += [(*key, t, "model_bits", 90.0), (*key, t, "norm_bits", 10.0)]
        rows += [(*key, t, "seconds", 2.0), (*key, t, "asking_seconds", float(t == 1))]
    return [*rows, (*key, -1, "diverged_at", -1.0)]


def rising(slope):
    return [slope * t for t in range(ROUNDS + 1)]


def summary(*runs):
    columns = ["case", "sampler", "seed", "at", "metric", "value"]
    rows = pd.DataFrame([row for rows in runs for row in rows], columns=columns)
    return Summary(rows, SETTINGS, {})


@pytest.fixture
def tuning():
    lost = [*rising(0.1)[:9], np.nan, np.nan]
    return summary(
        run("small", "md", 100, rising(0.04)),
        run("large", "md", 100, rising(0.05)),
        run("small", "other", 100, rising(0.02)),
        run("large", "other", 100, lost),
    )


@pytest.fixture
def evaluation():
    slopes = {"md": (0.01, 0.05), "other": (0.1, 0.2), "user_defined": (0.01, 0.025)}
    return summary(
        *(
            run(case, name, seed, rising(slope))
            for name, by_case in slopes.items()
            for case, slope in zip(("small", "large"), by_case, strict=True)
            for seed in (0, 1)
        )
    )


def with_accuracy(runs, sampler, value, seeds=(0, 1), **settings):
    """Let a sampler have the same accuracy in all rounds."""
    rows = runs.rows.copy()
    chosen = (rows["sampler"] == sampler) & (rows["metric"] == "accuracy")
    rows.loc[chosen & rows["seed"].isin(seeds), "value"] = value
    return Summary(rows, SETTINGS | settings, {})


def test_a_step_is_the_holdouts_best_and_a_run_that_diverged_loses(tuning):
    grid = grid_scores(tuning)
    assert dict(grid.loc[grid["chosen"], ["sampler", "step"]].to_numpy()) == {
        "md": 0.3,
        "other": 0.1,
    }
    assert grid["score"].tolist() == pytest.approx([0.04 * 7.5, 0.05 * 7.5, 0.02 * 7.5, -np.inf])


def test_scores_that_differ_by_rounding_tie_and_the_smaller_step_wins():
    slopes = {"small": 0.05, "large": 0.05 * (1 + 1e-8)}
    grid = grid_scores(summary(*(run(case, "md", 0, rising(k)) for case, k in slopes.items())))
    assert grid.loc[grid["chosen"], "case"].tolist() == ["small"]


def test_the_target_is_mds_holdout_score_after_half_of_the_rounds(tuning):
    assert target_score(tuning) == pytest.approx(0.05 * (3 + 4 + 5) / 3)


def test_without_md_there_is_no_target(tuning):
    rows = tuning.rows[tuning.rows["sampler"] != "md"]
    with pytest.raises(InputError, match="md sets the targets"):
        target_score(Summary(rows, SETTINGS, {}))


def test_the_cost_of_a_run_is_counted_at_its_schemes_own_step(evaluation, tuning):
    table = costs_to_target(evaluation, tuning).set_index(["sampler", "seed"])
    # The target is 0.2: md meets it as in the tuning; the other's mean of three is 0.2 after t = 3,
    # at the step 0.1 that it chose; what was not tuned has MD's step, where it is slow.
    assert table["step"].tolist() == [0.3, 0.3, 0.1, 0.1, 0.3, 0.3]
    assert table.loc[("md", 0), ["rounds", "bits", "seconds"]].tolist() == [5, 500, 11]
    assert table.loc[("other", 1), ["rounds", "bits", "seconds"]].tolist() == [3, 300, 7]
    assert table.loc["user_defined", "rounds"].tolist() == [9, 9]


def test_a_run_that_misses_the_target_has_no_speed(evaluation, tuning):
    slow = with_accuracy(evaluation, "other", 0.1, seeds=[1])
    values = {"a": costs_to_target(slow, tuning)}
    table = speed_ups(values, "rounds")["a"]
    assert table.loc["other"].tolist() == [pytest.approx(5 / 3), 0.0]
    assert table.loc["md"].tolist() == [1.0, 1.0]
    assert values["a"].set_index("sampler").loc["other", "all_bits"].tolist() == [1000, 1000]


def test_where_there_is_no_accuracy_the_loss_decides_on_a_logarithmic_scale():
    falling = [np.exp(-t) for t in range(ROUNDS + 1)]
    tuned = summary(run("small", "md", 100, falling, "test_loss"))
    assert target_score(tuned) == pytest.approx(4)
    assert costs_to_target(tuned, tuned)["rounds"].tolist() == [5]


def test_scores_are_read_only_in_rounds_that_were_measured(tuning):
    rows = tuning.rows
    measured = rows[(rows["metric"] != "accuracy") | (rows["at"] % 2 == 0)]
    table = costs_to_target(Summary(measured, SETTINGS, {}), Summary(measured, SETTINGS, {}))
    # Rounds 0, 2, 4 are the only three until half of the rounds.
    assert table.loc[table["sampler"] == "md", "rounds"].tolist() == [4]
    assert table.loc[table["sampler"] == "md", "bits"].tolist() == [400]


def test_tables_show_targets_that_were_missed_and_mark_the_smallest_mean(evaluation, tuning):
    slow = with_accuracy(evaluation, "user_defined", 0.0, seeds=[1])
    summaries = {"a": slow, "tuning_a": tuning}
    artefact = figures_by_dataset.matrix_rounds(summaries, None)
    table = artefact.table.set_index("scheme")["A set"]
    assert table["MD"] == "5.00 [5.00, 5.00]"
    assert table["other"] == "3.00 [3.00, 3.00] *"
    assert table["user_defined"] == ">10.0 (1 of 2)"
    tidy = artefact.data.set_index("scheme")
    assert tidy.loc["other", ["set", "cost", "reached", "speed_up"]].tolist() == [
        "a",
        pytest.approx(3),
        2,
        pytest.approx(5 / 3),
    ]
    assert np.isnan(tidy.loc["user_defined", "speed_up"])
    assert tidy.loc["user_defined", "missed_after"] == 10
    bits = figures_by_dataset.matrix_bits(summaries, None).table.set_index("scheme")["A set"]
    assert bits["user_defined"] == ">0.00100 (1 of 2)"


def test_a_set_that_a_scheme_misses_is_in_its_mean_and_shown(evaluation, tuning):
    missed = with_accuracy(evaluation, "other", 0.0, title="B set")
    summaries = {f"a{k}": evaluation for k in range(4)} | {"b": missed}
    summaries |= {f"tuning_{name}": tuning for name in summaries}
    artefact = figures_over_datasets.ranks(summaries, None)
    row = artefact.data.set_index(["measure", "scheme"]).loc[("rounds", "other")]
    assert (row["speed_up"], row["worst"], row["worst_set"]) == (0, 0, "b")
    assert (row["reached"], row["runs"], row["win_rate"]) == (8, 10, 0.8)
    assert "Zero, as no run reached the target of a dataset: other on B set." in artefact.notes
    labels = [text.get_text() for text in artefact.figure.axes[0].get_yticklabels()]
    assert "other (2 of 10 missed)" in labels


def test_a_gain_is_the_area_under_the_score_within_mds_budget(evaluation, tuning):
    runs = tuned_trajectories(evaluation, tuning)
    result = gains(runs, "rounds").set_index(["sampler", "seed"])
    # A score holds until the next round: 0.05 (0 + … + 9), and 0.1 of it for the other.
    assert result.loc["md", "gain"].tolist() == pytest.approx([1, 1])
    assert result.loc["other", "gain"].tolist() == pytest.approx([2, 2])
    assert result.loc["user_defined", "gain"].tolist() == pytest.approx([0.5, 0.5])
    cheap = runs.copy()
    cheap.loc[cheap["sampler"] == "other", "bits"] /= 2
    cheap = gains(cheap, "bits").set_index(["sampler", "seed"])
    # After half of the budget the score is 1, and stays: 2.25 instead of 4.5 there, and 5.
    assert cheap.loc["other", "gain"].tolist() == pytest.approx([7.25 / 2.25] * 2)
    assert cheap["held"].tolist() == pytest.approx([0, 0, 0.5, 0.5, 0, 0])


def test_a_run_that_diverged_gains_nothing_from_there_on(evaluation, tuning):
    runs = tuned_trajectories(evaluation, tuning)
    lost = (runs["sampler"] == "other") & (runs["at"] >= 5)
    runs.loc[lost, "score"] = np.nan
    result = gains(runs, "rounds").set_index("sampler").loc["other", "gain"]
    assert result.tolist() == pytest.approx([0.1 * (0 + 1 + 2 + 3 + 4) / 2.25] * 2)


def test_a_set_on_which_md_gains_nothing_is_left_out_of_the_areas(evaluation, tuning):
    flat = summary(*(run("small", name, 0, rising(0)) for name in ("md", "other")))
    empty = figures_over_datasets.areas({"b": flat, "tuning_b": tuning}, None)
    assert empty.data.empty
    (note,) = empty.notes
    assert note == "Left out, because MD gains nothing there: A set."
    summaries = {"a": evaluation, "tuning_a": tuning}
    areas = figures_over_datasets.areas({**summaries, "b": flat, "tuning_b": tuning}, None)
    pd.testing.assert_frame_equal(areas.data, figures_over_datasets.areas(summaries, None).data)
    assert note in areas.notes


def test_what_is_cheaper_in_every_run_is_so_with_certainty_and_first(evaluation, tuning):
    summaries = {"a": evaluation, "tuning_a": tuning, "b": evaluation, "tuning_b": tuning}
    often = figures_over_datasets.improvement(summaries, None).data.set_index(["measure", "scheme"])
    assert often.loc["rounds", "probability"].to_dict() == {
        "md": 0.5,
        "other": 1.0,
        "user_defined": 0.0,
    }
    order = figures_over_datasets.agreement(summaries, None)
    assert order.data.set_index(["measure", "scheme"]).loc["bits", "mean_rank"].tolist() == [
        2,
        1,
        3,
    ]
    assert "0 of 3 pairs are farther apart" in order.notes[0]  # two sets tell nobody apart
    single = figures_over_datasets.agreement({"a": evaluation, "tuning_a": tuning}, None)
    assert single.notes == ("With a single dataset there is no agreement to test.",)


def test_clients_are_shown_over_mds_rounds_as_far_as_runs_record_them(tuning):
    def recorded(name, seed, worst, met, long):
        key = ("large", name, seed)
        rows = [(*key, t, "accuracy_worst", worst) for t in range(long)]
        rows += [(*key, t + 1, "met", share) for t, share in enumerate(met)]
        rows += [(*key, t, "update_error", 2.0 * t) for t in (1, 6)]
        return rows + [(*key, t, "update_square", 7.0) for t in (1, 6)]

    compared = summary(
        run("large", "md", 0, rising(0.05)),
        recorded("md", 0, 0.4, [0.5, 0.5, 1.0] + [1.0] * 7, ROUNDS + 1),
        run("large", "other", 0, rising(0.05)),
        recorded("other", 0, 0.2, [0.5] * 30, ROUNDS + 20),
    )
    artefact = figures_clients.clients({"a": compared, "tuning_a": tuning}, None)
    result = artefact.data.set_index("sampler")
    assert result["worst"].to_dict() == {"md": pytest.approx(0.4), "other": pytest.approx(0.2)}
    # Half of the clients in round 1, the others in round 3; or not within MD's ten rounds.
    assert result["first"].to_dict() == {"md": 2.0, "other": 6.0}
    assert result["error"].tolist() == [1.0, 1.0]  # (2 + 12) / (7 + 7)
    assert result["jain"].isna().all()
    assert "A set: MD 0.400 (MD 0.400)" in artefact.notes[0]
    assert artefact.notes[1:3] == (
        "Worst tenth below MD's in every seed of at least two datasets: none.",
        "Worst tenth below MD's in every seed of a single dataset: other (A set).",
    )


def test_figures_name_every_scheme_and_a_set_that_is_only_tuned_shows_its_steps(evaluation, tuning):
    summaries = {"a": evaluation, "tuning_a": tuning, "tuning_b": tuning}
    artefact = figures_over_datasets.ranks(summaries, None)
    assert set(artefact.data["scheme"]) == {"md", "other", "user_defined"}
    first = artefact.data.set_index(["measure", "scheme"]).loc["rounds"].loc["other"]
    assert (first["rank"], first["speed_up"]) == (1, pytest.approx(5 / 3))
    labels = [text.get_text() for text in artefact.figure.axes[0].get_yticklabels()]
    assert labels == ["user_defined", "MD", "other"]
    steps = figures_by_dataset.tuning(summaries, None)
    assert [text.get_text() for text in steps.figure.axes[0].get_xticklabels()] == ["A set"] * 2


@pytest.mark.parametrize("scale", ["quick", "reduced", "paper"])
def test_every_registered_scheme_for_networks_is_in_it_at_every_scale(scale):
    config = Config(papers=["crossmatrix"], scale=scale)
    (paper,) = load_papers(config, PAPERS).values()
    compared = {job.sampler for job in jobs(paper, config) if job.experiment == "digit"}
    assert compared == Scheme.members().keys() - {"isfedavg"}


def test_a_scheme_that_was_run_at_one_step_is_compared_at_it(tuning):
    single = summary(run("large", "md", 0, rising(0.05)), run("large", "other", 0, rising(0.1)))
    result = tuned_trajectories(single, tuning)
    assert result.groupby("sampler")["step"].first().to_dict() == {"md": 0.3, "other": 0.3}
    tuned = figures_by_dataset.tuning({"tuning_a": tuning}, None).data
    best = tuned[tuned["chosen"]].set_index("sampler")["case"]
    assert best.to_dict() == {"md": "large", "other": "small"}


@pytest.mark.parametrize(
    "draw",
    [
        figures_over_datasets.ranks,
        figures_over_datasets.agreement,
        figures_clients.clients,
        figures_by_dataset.matrix_bits,
    ],
)
def test_nothing_is_drawn_of_a_holdout_alone(draw, tuning):
    artefact = draw({"tuning_a": tuning}, None)
    assert artefact.data.empty
    assert artefact.notes == ("No dataset is both tuned and compared yet.",)
