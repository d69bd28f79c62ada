"""Claims c19 to c24, on Figure 2 and the parts of Table 3, from made-up courses."""

import numpy as np
import pandas as pd
import pytest
from papers.harshvardhan2025latency.claims_random import flanp_over_random
from papers.harshvardhan2025latency.printed_tables import PROPOSED, SEVEN

from papers.harshvardhan2025latency import figures_runtime
from papers.harshvardhan2025latency import figures_tables as tables

from .courses import PAPER, joined, judged, made, overheads, summary

BY_CLIENTS = ("m-5", "m-10", "m-20", "m-30")
RISING = ((5, 4), (6, 4), (9, 7))  # rounds of both proposed samplers at 30°, 45° and 60°


def sweep(rounds=RISING, seeds=(3, 3, 3)):
    """Give both proposed samplers their rounds, and the number of seeds, at each angle."""
    angles = ("rotation", "degrees-30"), ("rotated_mnist", "synthetic"), ("rotation", "degrees-60")
    first, middle, last = (
        summary(experiment, dict(zip(PROPOSED, pair, strict=True)), case, seeds=range(n))
        for (experiment, case), pair, n in zip(angles, rounds, seeds, strict=True)
    )
    unread = summary("rotated_mnist", dict.fromkeys(PROPOSED, 1), "nycmesh")
    return {"rotation": joined(first, last), "rotated_mnist": joined(middle, unread)}


def overhead(minnorm, approx):
    values = {"heterogeneity": 2.0, "minnorm": minnorm, "trust-constr": 5.0, "approx_opt": approx}
    return {"overhead": overheads(values, "quadratic")}


def faster(slow, usual, fast):
    """Give both proposed samplers the rounds of each seed, at each speed of the links."""

    def runs(experiment, case, rounds):
        equal = [dict.fromkeys(PROPOSED, number) for number in rounds]
        seeds = enumerate(equal)
        return joined(*(summary(experiment, row, case, seeds=(seed,)) for seed, row in seeds))

    links = joined(runs("links", "speed-1", slow), runs("links", "speed-10", fast))
    return {"links": links, "dirichlet_mnist": runs("dirichlet_mnist", "synthetic", usual)}


def reached(experiment, case, names):
    """Give samplers their rounds to the target."""
    return lambda *rounds: made(**{experiment: {case: dict(zip(names, rounds, strict=True))}})


IID = reached("quadratic_iid", "nycmesh", ("random", "divfl", "power_of_choice"))


def no_delays(random, flanp):
    """Give both samplers their rounds without delays, one more for each further seed."""
    name = "quadratic_no_delays"
    rounds = ({"random": random + seed, "flanp": flanp + seed} for seed in range(3))
    seeds = enumerate(rounds)
    return {name: joined(*(summary(name, row, "none", seeds=(seed,)) for seed, row in seeds))}


CLIENTS = reached("quadratic_clients_draws", "nycmesh", BY_CLIENTS)


@pytest.mark.parametrize(
    ("claim", "runs", "rounds", "verdict"),
    [
        ("c19", IID, (20, 20, 21), "reproduced"),
        ("c19", IID, (20, 5, 21), "partly reproduced"),
        ("c19", IID, (20, 99, 21), "reproduced"),
        ("c19", IID, (40, 21, 21), "contradicted"),
        ("c19", IID, (99, 20, 21), "inconclusive"),
        ("c20", no_delays, (10, 12), "reproduced"),
        ("c20", no_delays, (10, 8), "contradicted"),
        ("c20", no_delays, (10, 99), "reproduced"),
        ("c20", no_delays, (99, 99), "inconclusive"),
        ("c21", sweep, (RISING,), "reproduced"),
        ("c21", sweep, (((5, 4), (6, 9), (9, 7)),), "partly reproduced"),
        ("c21", sweep, (((5, 4), (4, 3), (3, 2)),), "contradicted"),
        ("c21", sweep, (((5, 4), (6, 4), (99, 7)),), "inconclusive"),
        # Only between its ends, a sweep may have fewer seeds.
        ("c21", sweep, (((5, 4), (6, 5), (9, 7)), (6, 3, 6)), "reproduced"),
        ("c21", sweep, (((5, 4), (6, 5), (9, 7)), (6, 3, 3)), "inconclusive"),
        ("c22", faster, ((9, 9, 9), (6, 6, 6), (5, 5, 5)), "reproduced"),
        ("c22", faster, ((5, 5, 5), (6, 6, 6), (9, 9, 9)), "contradicted"),
        # It lies within the noise of the seeds.
        ("c22", faster, ((9, 6, 7), (7, 6, 7), (6, 7, 6)), "inconclusive"),
        ("c23", CLIENTS, (30, 10, 12, 20), "reproduced"),
        ("c23", CLIENTS, (8, 10, 12, 20), "contradicted"),
        ("c23", CLIENTS, (99, 12, 12, 20), "reproduced"),
        ("c23", CLIENTS, (99, 99, 99, 99), "inconclusive"),
        ("c24", overhead, (0.1, 75.0), "reproduced"),
        ("c24", overhead, (0.1, 9.0), "partly reproduced"),
        ("c24", overhead, (3, 11), "partly reproduced"),
        ("c24", overhead, (3, 1.0), "contradicted"),
    ],
)
def test_verdicts_follow_the_runs(claim, runs, rounds, verdict):
    assert judged(claim, **runs(*rounds)).verdict == verdict


def test_c20_is_judged_over_all_rules_of_flanp_that_fresh_seeds_ran():
    name, rounds = "confirm_quadratic_no_delays", (10, 14, 8)
    labels = ("random", "flanp", "flanp-first-10-every-round")
    by_seed = [dict(zip(labels, (n + seed for n in rounds), strict=True)) for seed in range(3)]
    runs = (summary(name, row, "none", seeds=(seed,)) for seed, row in enumerate(by_seed))
    finding = judged("c20", quadratic_no_delays=joined(*runs))
    assert [reading.verdict for reading in finding.readings] == ["reproduced", "contradicted"]
    assert finding.verdict == "depends on unstated choices"


def test_c20_counts_a_run_of_flanp_that_ended_early_with_its_own_rounds():
    never = pd.Series([np.inf] * 3)
    ended, random = pd.Series([20.0, 21.0, 22.0]), pd.Series([10.0, 11.0, 12.0])
    finding = flanp_over_random(never, random, 2.95, ended)
    assert finding.verdict == "reproduced"
    early = flanp_over_random(never, random, 2.95, ended / 4)
    assert early.verdict == "inconclusive"


def by_clients(*rounds, **how):
    return summary("quadratic_clients_draws", dict(zip(BY_CLIENTS, rounds, strict=True)), **how)


def test_c23_changes_no_table_that_figures_share():
    runs = by_clients(30, 10, 12, 20)
    first, second = (judged("c23", quadratic_clients_draws=runs) for _ in range(2))
    assert first == second


def test_c23_is_open_unless_both_ends_are_slower_and_depends_on_the_bound():
    usual, reverse = by_clients(30, 10, 12, 20, seeds=(0, 1)), by_clients(9, 10, 12, 20, seeds=(2,))
    assert judged("c23", quadratic_clients_draws=joined(usual, reverse)).verdict == "inconclusive"
    main, bounded = by_clients(30, 10, 12, 20), by_clients(8, 10, 12, 20)
    finding = judged("c23", quadratic_clients_draws=main, quadratic_clients_draws_bounded=bounded)
    assert finding.verdict == "depends on unstated choices"


def test_forecasts_use_the_papers_effects():
    """Rotated MNIST from 30° to 60°, and random selection over FLANP with synthetic delays."""
    drawn = judged("c21", **sweep()).drawn
    assert [interval.effect for interval in drawn] == pytest.approx([1391 / 619, 597 / 293])
    row = judged(
        "c3", **made(rotated_mnist={"synthetic": dict(zip(SEVEN, range(5, 12), strict=True))})
    )
    effects = {interval.name: interval.effect for interval in row.drawn}
    assert effects["random"] == pytest.approx(1.122 / 0.36)


@pytest.mark.parametrize(
    ("rounds_at_60", "verdict"), [(7, "reproduced"), (3, "depends on unstated choices")]
)
def test_c21_depends_on_the_reading_of_delayhet_sampling(rounds_at_60, verdict):
    """With B_p < 1 everywhere runtime increases with rotation; what with Assumption 3 alone?"""
    label = "sampling-start"
    ends = {"degrees-30": {label: 4}, "degrees-60": {label: rounds_at_60}}
    runs = made(rotation_sampling=ends, rotated_mnist_sampling={"synthetic": {label: 5}})
    assert judged("c21", **sweep(), **runs).verdict == verdict


def test_a_sweep_does_not_compare_runs_of_different_sizes():
    result = sweep()
    result["rotation"].provenance["scale"] = "reduced"
    assert judged("c21", **result).verdict == "inconclusive"
    assert tables.table3a(result, PAPER).table["Submodular"].tolist()[1] == "– (845)"


def test_table3d_draws_the_runs_that_miss_the_target():
    parts = {"quadratic_clients_draws": by_clients(99, 99, 99, 99)}
    parts["quadratic_clients_draws_bounded"] = by_clients(8, 10, 12, 20)
    artefact = figures_runtime.table3d(parts, PAPER)
    assert "0 of 12 runs reach 2.95; the others end after 400 s" in artefact.notes[0]
    assert "5 clients 80.0 s, 10 clients 100 s" in artefact.notes[1]
