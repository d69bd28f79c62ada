"""Runtimes to a target, and the claims that rest on them, on courses that are made up."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedsampling.artefacts import harshvardhan2025latency_quadratic as page
from fedsampling.artefacts.harshvardhan2025latency_claims import CLAIMS
from fedsampling.evidence.summaries import Summary
from fedsampling.papers import load_paper

PAPER = load_paper("harshvardhan2025latency", Path(__file__).parents[2] / "papers")
D = 100


def summary(rounds, case="nycmesh", seconds=None, asking=0.0, seeds=3, length=40):
    """Give each scheme the round in which it reaches the target, and the seconds of a round."""
    rows = []
    for name, reached in rounds.items():
        each = (seconds or {}).get(name, 10.0)
        for seed in range(seeds):
            for t in range(length + 1):
                loss = 2.0 if t >= reached else 4.0  # normalised
                rows.append((case, name, seed, t, "test_loss", loss * np.sqrt(D) / 2))
                if t:
                    rows.append((case, name, seed, t, "seconds", each))
                    rows.append((case, name, seed, t, "asking_seconds", asking if t == 1 else 0.0))
    names = ["case", "sampler", "seed", "at", "metric", "value"]
    settings = {"settings": {"dataset": {"dimension": D}, "rounds": length}}
    return Summary(pd.DataFrame(rows, columns=names), settings, {})


def judged(name, **summaries):
    return CLAIMS[name](summaries, PAPER.claims[name]).verdict


def test_runtime_adds_up_the_rounds_until_the_target_on_both_clocks():
    found = page.runtimes(summary({"random": 7}, asking=100.0)).iloc[0]
    assert found[["rounds", "counted", "all"]].tolist() == [7, 70, 170]


def test_what_never_reaches_the_target_is_not_available():
    table = page.table1({"quadratic": summary({"random": 7, "divfl": 99}, "synthetic")}, PAPER).data
    assert table.loc[0, "DivFL"] == "N/A (0.635)"
    assert table.loc[0, "random"] == "0.0700 ± 0 * (0.714)"
    assert table.loc[0, "FLANP"] == "– (3.5)"
    assert table.loc[table["data"] == "FEMNIST", "ApproxOptSampling"].tolist() == ["– (N/A)"]


@pytest.mark.parametrize(
    ("sampling", "random", "verdict"),
    [(10, 12, "reproduced"), (10, 39, "partly"), (12, 10, "partly"), (99, 99, "inconclusive")],
)
def test_the_winners_claim(sampling, random, verdict):
    rounds = {"submodular": 99, "sampling": sampling, "random": random}
    assert judged("c1", quadratic=summary(rounds, "synthetic")) == verdict


def test_the_winner_by_another_factor_contradicts():
    rounds = {"submodular": 99, "sampling": 20, "random": 10}
    assert judged("c10", quadratic=summary(rounds)) == "contradicted"


@pytest.mark.parametrize(
    ("divfl", "verdict"), [(20, "reproduced"), (5, "partly"), (99, "reproduced")]
)
def test_heterogeneity_alone(divfl, verdict):
    rounds = {"random": 20, "divfl": divfl, "power_of_choice": 21}
    assert judged("c19", quadratic_iid=summary(rounds)) == verdict


@pytest.mark.parametrize(
    ("flanp", "verdict"), [(12, "reproduced"), (8, "contradicted"), (99, "reproduced")]
)
def test_flanp_without_delays(flanp, verdict):
    found = judged("c20", quadratic_no_delays=summary({"random": 10, "flanp": flanp}, "none"))
    assert found == verdict


@pytest.mark.parametrize(
    ("rounds", "verdict"),
    [
        ((30, 10, 12, 20), "reproduced"),
        ((8, 10, 12, 20), "contradicted"),
        ((99, 12, 12, 20), "reproduced"),
        ((99, 99, 99, 99), "inconclusive"),
    ],
)
def test_the_u_shape(rounds, verdict):
    names = ("m-5", "m-10", "m-20", "m-30")
    found = judged("c23", quadratic_clients=summary(dict(zip(names, rounds, strict=True))))
    assert found == verdict


def overheads(minnorm, approx):
    values = {"heterogeneity": 2.0, "minnorm": minnorm, "trust-constr": 5.0, "approx_opt": approx}
    rows = [("quadratic", "overhead", 0, 0, name, value) for name, value in values.items()]
    names = ["case", "sampler", "seed", "at", "metric", "value"]
    return Summary(pd.DataFrame(rows, columns=names), {}, {})


@pytest.mark.parametrize(
    ("minnorm", "approx", "verdict"),
    [(0.1, 9.0, "reproduced"), (0.1, 1.0, "partly"), (3, 11, "partly"), (3, 1.0, "contradicted")],
)
def test_the_overheads(minnorm, approx, verdict):
    assert judged("c24", overhead=overheads(minnorm, approx)) == verdict


def test_the_figures_are_drawn():
    parts = {
        "quadratic": summary({"random": 7, "sampling": 9}),
        "quadratic_no_delays": summary({"random": 7}, "none"),
        "quadratic_iid": summary({"random": 7}),
        "quadratic_clients": summary({"m-5": 7, "m-10": 99}),
    }
    assert len(page.figure2(parts, PAPER).figure.axes) == 3
    assert "3 runs with 10 clients" in page.table3d(parts, PAPER).notes[1]
