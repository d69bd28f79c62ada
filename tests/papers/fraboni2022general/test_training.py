"""Training figures and claims of fraboni2022general, from its published losses and changed ones."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from papers.fraboni2022general.client_draws import deviations
from papers.fraboni2022general.losses import HALF, departures

from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import draw_function, load_paper
from fedsampling.experiments.resolving import resolve_experiments
from papers.fraboni2022general import claims, figures_settings, figures_training

from ..shared import PAPERS, changed, judge, lost, published

KEY = "fraboni2022general"
PAPER = load_paper(KEY, PAPERS)
CASES = {"equal": "equal", "samples": ("samples", "alpha-0.1", "alpha-0.01", "alpha-0.001")}
# What schemes add to the loss: as the paper claims, and the reverse.
CLAIMED = {"equal": {"md": 1}, "samples": {"uniform": 1, "clustered": -1}}
REVERSED = {"equal": {"uniform": 1}, "samples": {"md": 1, "clustered": 2}}


def training_runs(added, power=-1, seeds=10):
    """Published runs with additions to their losses, times a power of the number of clients."""
    runs = {}
    for name, clients in {**{name: n for n, name in HALF.items()}, "cifar": 1}.items():
        summary, factor = published(KEY, name), (clients / 10) ** power
        for case, of_case in added.items():
            for sampler, loss in of_case.items():
                chosen = {"sampler": sampler, "metric": "loss", "case": CASES[case]}
                summary = changed(summary, lambda v, by=loss * factor: v + by, **chosen)
        runs[name] = replace(summary, rows=summary.rows[summary.rows["seed"] < seeds])
    return runs


def of_least_scale(name):
    """Published runs of the cases and samplers that the least scale has."""
    summary = published(KEY, name)
    quick = resolve_experiments(PAPER, Config(papers=[KEY], scale="quick"))[name].experiment
    rows = summary.rows[summary.rows["sampler"].isin(quick.samplers)]
    settings = summary.settings | {"samplers": quick.model_dump()["samplers"]}
    return replace(summary, rows=rows, settings=settings).only(list(quick.cases))


@pytest.mark.parametrize(
    "name", [*(f"figure{k}" for k in range(1, 8)), "learning_rate", "importance", "choices"]
)
def test_every_figure_is_drawn_from_what_the_least_scale_has(name):
    summaries = {behind: of_least_scale(behind) for behind in PAPER.artefacts[name].experiments}
    artefact = draw_function(PAPER, name)(summaries, PAPER)
    assert len(artefact.data)
    assert artefact.alt


def test_figure1_has_the_paired_difference_of_every_n():
    runs = training_runs({})
    data = figures_training.figure1(runs, PAPER).data
    assert len(data.groupby(["case", "clients"])) == 8
    for (case, n), part in data.groupby(["case", "clients"]):
        rows = runs[HALF[n]].select(metric="loss", case=case, since=1)
        losses = rows.pivot_table("value", "at", "sampler")
        np.testing.assert_allclose(part["mean"], losses["md"] - losses["uniform"], atol=1e-12)


def test_differences_are_below_losses_and_captions_name_the_smaller():
    runs = {"one_step": published(KEY, "one_step")}
    losses, differences = (
        figures_training.figure6(runs, PAPER),
        figures_training.figure5(runs, PAPER),
    )
    below = losses.data[losses.data["sampler"].str.contains("−") & (losses.data["at"] >= 25)]
    assert losses.figure.axes[6].get_ylabel() == "loss − MD’s"
    gaps = differences.data[differences.data["m"] == 8].set_index(["case", "at"])["mean"]
    shown = below[below["sampler"].str.contains("8")].set_index(["case", "at"])["mean"]
    np.testing.assert_allclose(shown, -gaps.loc[shown.index], atol=1e-12)
    seeds = len(runs["one_step"].settings["seeds"])
    assert f"{seeds} seeds (paper: 15)" in losses.caption_end
    assert losses.caption_end == differences.caption_end


@pytest.mark.parametrize(
    ("experiment", "words"),
    [
        ("shakespeare_10", "batches of 16 (paper: 64), 16 hidden units per layer (paper: 100)."),
        ("one_step", "8 hidden units per layer (paper: 100), network depth 1 (paper: 2)."),
        ("learning_rate", ", 20 clients (paper: 80), "),
        ("cifar", ", 10 to 100 samples per client (paper: 100 to 1,000), "),
    ],
)
def test_captions_name_every_size_that_is_not_the_papers(experiment, words):
    text = departures({experiment: published(KEY, experiment)}, PAPER)
    assert words in text
    at_its_size = published(KEY, experiment)
    paper = PAPER.experiments[experiment]
    settings = {**paper, "seeds": range(paper["seeds"]), "settings": paper}
    seeds = f"Here: {paper['seeds']} seeds."
    assert departures({experiment: replace(at_its_size, settings=settings)}, PAPER) == seeds


def test_c3_says_where_its_margin_finds_md_equal_to_uniform_too():
    finding = judge(PAPER, "c3", training_runs({}, seeds=20))
    assert "MD and Uniform sampling are equal, too, with 20, 40 and 80 clients." in finding.caveat
    assert judge(PAPER, "c3", training_runs(CLAIMED, power=0)).caveat == ""


def test_intervals_outside_the_panel_end_in_arrows_with_their_numbers():
    names = ("choices", "clients", "shakespeare_10")
    artefact = figures_settings.choices({name: published(KEY, name) for name in names}, PAPER)
    assert "Losses of round 50, the only one" in artefact.notes[1]
    assert artefact.figure.axes[0].get_ylabel().endswith(", $t = 50$")
    table = artefact.data
    for axes, case in zip(artefact.figure.axes, ("equal", "samples"), strict=True):
        bottom, top = axes.get_ylim()
        rows = table[table["case"] == case]
        clipped = (rows["low"] < bottom).sum() + (rows["high"] > top).sum()
        assert clipped == len(axes.texts) > 0
        assert rows["gap"].between(bottom, top).all()


def test_diverged_runs_are_named_and_end_their_mean():
    runs = training_runs(CLAIMED)
    runs["shakespeare_20"] = lost(runs["shakespeare_20"], "uniform", "samples", since=50)
    artefact = figures_training.figure2(runs, PAPER)
    assert any("1 of 10 runs diverged" in note for note in artefact.notes)
    data = artefact.data
    gone = (data["clients"] == 20) & (data["case"] == "samples") & (data["sampler"] == "uniform")
    means = data[gone & (data["at"] == 100)]["mean"]
    assert len(means)
    assert means.isna().all()
    assert judge(PAPER, "c2", runs).verdict == "partly reproduced"


@pytest.mark.parametrize(
    ("names", "added", "how", "verdict"),
    [
        (("c1", "c2", "c4", "c8"), CLAIMED, {}, "reproduced"),
        (("c1", "c2", "c4", "c8"), REVERSED, {}, "contradicted"),
        (("c1",), CLAIMED, {"seeds": 20}, "reproduced"),  # only some populations have twenty
        (("c1",), CLAIMED, {"power": 1}, "partly reproduced"),
        (("c1", "c2", "c3", "c4", "c8"), CLAIMED, {"seeds": 2}, "inconclusive"),
        (("c3",), {"equal": {"clustered": 1}}, {}, "contradicted"),
    ],
)
def test_verdicts_follow_the_losses(names, added, how, verdict):
    runs = training_runs(added, **how)
    assert {judge(PAPER, name, runs).verdict for name in names} == {verdict}


def test_clustered_and_uniform_sampling_differ_in_distribution():
    # n = 10, m = 5, p_i = 1/10: Clustered takes one of each of five pairs. Covariance of a pair
    # −1/100 and of others 0; Uniform −(1/9)/100 for all.
    assert claims.covariance_gap(10, 5) == pytest.approx(8 / 900)
    assert claims.covariance_gap(10, 10) == pytest.approx(0)


def test_populations_with_another_network_do_not_decide():
    runs = training_runs({})
    assert "80 clients" in judge(PAPER, "c1", runs).ours
    runs["shakespeare_80"] = deepcopy(runs["shakespeare_80"])
    runs["shakespeare_80"].settings["settings"]["model"]["hidden"] = 8  # as overrides may
    ours = judge(PAPER, "c1", runs).ours
    assert ("40 clients" in ours, "80 clients" in ours) == (True, False)
    assert any("n = 80" in note for note in figures_training.figure1(runs, PAPER).notes)


def test_a_single_population_decides_no_trend():
    """At quick scale, only ten clients have the paper's network and both samplers."""
    runs = training_runs(CLAIMED)
    for name in set(HALF.values()) - {HALF[10]}:
        runs[name] = deepcopy(runs[name])
        runs[name].settings["settings"]["model"]["hidden"] = 8
    assert [*judge(PAPER, "c1", runs).parts] == ["10 clients"]


def test_c5_compares_with_the_other_choices():
    summary = published(KEY, "clients")
    spread = deviations(summary).set_index(["seed", "n"])["sd"]
    rows = summary.select(metric="samples", until=9)
    sizes = rows.loc[rows["seed"] == 2240, "value"]
    assert spread[2240, 10] == pytest.approx(np.std(sizes / sizes.sum()))
    even = changed(summary, lambda samples: 0 * samples + 100, metric="samples")
    assert judge(PAPER, "c5", {"clients": even}).verdict == "contradicted"


def test_no_fresh_choice_of_clients_is_ours():
    fresh = published(KEY, "confirm_clients")
    finding = judge(PAPER, "c5", {"clients": fresh})
    spread = deviations(fresh)
    for n, row in zip((10, 80), finding.drawn, strict=True):
        sd = spread.loc[spread["n"] == n, "sd"]
        assert row.name == f"{n} clients: median and range of {len(sd)} choices"
        assert row.low < row.value < row.high
        assert row.value == pytest.approx(sd.median())
    explored = judge(PAPER, "c5", {"clients": published(KEY, "clients")})
    assert explored.drawn[0].name == "10 clients: our choice, and the range of 40 others"


def test_choices_are_compared_on_common_rounds_and_seeds():
    runs = {name: published(KEY, name) for name in ("choices", "clients", "shakespeare_10")}
    table = figures_settings.by_choice(runs)
    assert len(table) == len(runs["choices"].settings["cases"]) + 2
    own = table[table["own"]].set_index("case")
    assert set(own["choice"]) == {2240}
    rows = runs["shakespeare_10"].select(metric="loss", case="equal", since=50, until=50)
    losses = rows[rows["seed"] < 3].groupby("sampler")["value"].mean()
    assert own.loc["equal", "gap"] == pytest.approx(losses["md"] - losses["uniform"])
