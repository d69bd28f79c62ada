"""Training figures and claims of fraboni2022general, from made-up losses."""

from itertools import product

import numpy as np
import pytest
from papers.fraboni2022general.runs import deviations

from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import draw_function, load_paper
from fedsampling.experiments.resolving import resolve_experiments
from papers.fraboni2022general import claims, figures_settings, figures_training

from ..shared import PAPERS, judge, made_up

KEY = "fraboni2022general"
PAPER = load_paper(KEY, PAPERS)
TRAINED = [name for name, fields in PAPER.experiments.items() if fields["kind"] == "network"]
HALF = [f"shakespeare_{n}" for n in (10, 20, 40, 80)]
CLAIMED = [*HALF, "cifar"]
RESOLVED = {
    scale: {name: experiments[name].experiment for name in experiments}
    for scale in ("quick", "reduced", "paper")
    if (experiments := resolve_experiments(PAPER, Config(papers=[KEY], scale=scale)))
}
# What each scheme adds to the loss: as the paper claims, in all three kinds of case.
EQUAL = {"md": 0.3, "uniform": 0.0, "clustered": 0.0}
SAMPLES = {"md": 0.0, "uniform": 0.3, "clustered": -0.3}
# How the sign of its own noise turns with half the seed.
TURN = {"md": 2, "uniform": 2, "full": 2, "clustered": 1}


def training_runs(
    scale="paper",
    equal=EQUAL,
    samples=SAMPLES,
    shrinks=True,
    noise=1e-3,
    lost=(),
    seeds=range(5),
    names=TRAINED,
):
    """Summaries of training experiments: falling losses, with noise that schemes share and own."""
    values = {}
    for name in names:
        experiment = RESOLVED[scale][name]
        clients = int(name.removeprefix("shakespeare_")) if "shakespeare" in name else 80
        runs = []
        at = np.linspace(0, experiment.settings["rounds"], 6).astype(int)
        for case, sampler, seed in product(experiment.cases, experiment.samplers, seeds):
            scheme = sampler.partition("-")[0]
            shift = (equal if "equal" in case else samples).get(scheme, 0.0)
            shift *= 10 / clients if shrinks else 1
            sign = (-1.0) ** (TURN[scheme] * seed // 2 + (scheme == "uniform"))
            shared = 0.1 * np.random.default_rng([seed, clients]).standard_normal()
            loss = 4.6 - 2 * at / at[-1] + shared + (at > 0) * (shift + noise * sign)
            diverged = -1.0
            if (name, case, sampler) in lost and seed == 0:
                loss[at > at[3]], diverged = np.nan, float(at[3])
            columns = {"loss": (at, loss), "diverged_at": ([-1], [diverged])}
            runs.append((case, sampler, seed, columns))
        settings = experiment.model_dump(mode="json") | {"seeds": list(seeds)}
        values[name] = made_up(runs, settings)
    return values


SIZES = {  # of 80 clients: choices 2240 and 0 to 39
    seed: np.random.default_rng(seed).lognormal(8, 1, 80).round() for seed in (2240, *range(40))
}


def clients(sizes):
    runs = [("base", "none", seed, {"samples": (np.arange(80), n)}) for seed, n in sizes.items()]
    return made_up(runs, {"seeds": [*sizes]})


@pytest.fixture(scope="module")
def summaries():
    return training_runs() | {"clients": clients(SIZES)}


def verdict(claim, summaries):
    return judge(PAPER, claim, summaries).verdict


@pytest.mark.parametrize(
    "name", [*(f"figure{k}" for k in range(1, 8)), "learning_rate", "importance", "choices"]
)
def test_every_figure_is_drawn_from_what_the_least_scale_has(name):
    behind = set(PAPER.artefacts[name].experiments) - {"clients"}
    summaries = training_runs("quick", seeds=range(2), names=behind) | {"clients": clients(SIZES)}
    artefact = draw_function(PAPER, name)(summaries, PAPER)
    assert len(artefact.data)
    assert artefact.alt


def test_figure1_has_the_paired_difference_of_every_n(summaries):
    data = figures_training.figure1(summaries, PAPER).data
    parts = dict([*data.groupby(["case", "clients"])])
    assert parts.keys() == set(product(("equal", "samples"), (10, 20, 40, 80)))
    for (case, n), part in parts.items():
        shift = (EQUAL["md"] - EQUAL["uniform"]) if case == "equal" else -SAMPLES["uniform"]
        np.testing.assert_allclose(part["mean"], shift * 10 / n, atol=0.005)


def test_diverged_runs_are_named_and_end_their_mean():
    lost = training_runs(lost=[("shakespeare_20", "samples", "uniform")], names=HALF)
    artefact = figures_training.figure2(lost, PAPER)
    assert any("1 of 5 runs diverged" in note for note in artefact.notes)
    data = artefact.data
    gone = (data["clients"] == 20) & (data["case"] == "samples") & (data["sampler"] == "uniform")
    assert data[gone & (data["at"] == 600)]["mean"].isna().all()
    assert verdict("c2", lost) == "partly reproduced"


def test_orderings_are_reproduced_where_they_hold_and_contradicted_where_reversed(summaries):
    for name in ("c1", "c2", "c4", "c5"):
        assert verdict(name, summaries) == "reproduced"
    reversed_shifts = {
        "equal": {"md": 0.0, "uniform": 0.3, "clustered": 0.3},
        "samples": {"md": 0.3, "uniform": 0.0, "clustered": 0.6},
    }
    reverse = training_runs(**reversed_shifts, names=CLAIMED)
    for name in ("c1", "c2", "c4", "c8"):
        assert verdict(name, reverse) == "contradicted"


def test_c1_is_partly_so_where_the_gap_does_not_shrink():
    assert verdict("c1", training_runs(shrinks=False, names=HALF)) == "partly reproduced"


def test_orderings_are_open_where_noise_hides_them_or_seeds_are_too_few():
    noisy = training_runs(equal={}, samples={}, noise=0.3, names=CLAIMED)
    two_seeds = training_runs(seeds=range(2), names=CLAIMED)
    for name in ("c1", "c2", "c4", "c8"):
        assert verdict(name, noisy) == verdict(name, two_seeds) == "inconclusive"
    assert verdict("c3", two_seeds) == "inconclusive"


def test_c3_tells_the_same_losses_from_the_same_distribution(summaries):
    # n = 10, m = 5, p_i = 1/10: Clustered takes one of each of five pairs. Covariance of a pair
    # −1/100 and of others 0; Uniform −(1/9)/100 for all.
    assert claims.covariance_gap(10, 5) == pytest.approx(8 / 900)
    assert claims.covariance_gap(10, 10) == pytest.approx(0)
    assert verdict("c3", summaries) == "partly reproduced"
    different = training_runs(equal={"clustered": 0.5}, shrinks=False, names=HALF)
    assert verdict("c3", different) == "contradicted"


def test_populations_with_another_network_do_not_decide():
    reduced = training_runs("reduced", equal={"md": 0.3}, shrinks=False, names=HALF)
    assert "80 clients" in judge(PAPER, "c1", reduced).ours
    reduced["shakespeare_80"].settings["settings"]["model"]["hidden"] = 8  # as overrides may
    ours = judge(PAPER, "c1", reduced).ours
    assert ("40 clients" in ours, "80 clients" in ours) == (True, False)
    assert any("n = 80" in note for note in figures_training.figure1(reduced, PAPER).notes)


def test_c5_compares_with_the_other_choices(summaries):
    spread = deviations(summaries["clients"])
    ours = spread[(spread["seed"] == 2240) & (spread["n"] == 10)]["sd"].item()
    sizes = SIZES[2240][:10]
    assert ours == pytest.approx(np.std(sizes / sizes.sum()))
    even = clients({seed: np.full(80, 100.0) for seed in SIZES})
    assert verdict("c5", {"clients": even}) == "contradicted"


def test_choices_are_compared_on_common_rounds_and_seeds(summaries):
    table = figures_settings.by_choice(summaries)
    assert len(table) == 12
    assert set(table[table["own"]]["choice"]) == {2240}
    other_choices = table[(table["case"] == "equal") & ~table["own"]]
    np.testing.assert_allclose(other_choices["gap"], 0.3 * 10 / 80, atol=0.005)
    np.testing.assert_allclose(table[table["own"] & (table["case"] == "equal")]["gap"], 0.3, 0.02)
