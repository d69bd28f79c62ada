"""Each claim of fraboni2021clustered reaches the verdicts that its rule in paper.yaml names.

The summaries are made up: levels and spreads over seeds are known.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from fedsampling.experiments.papers import load_paper

from ..shared import PAPERS, changed, made_up
from ..shared import judge as judge_by

PAPER = load_paper("fraboni2021clustered", PAPERS)
SEEDS, AT = 10, np.arange(0, 101, 2)
SCHEMES = ("md", "algorithm1", "algorithm2")
MNIST = {
    "settings": {"dataset": {"partition": {"name": "by_digit"}}},
    "samplers": {name: {"m": 10} for name in SCHEMES},
}


def judge(claim, **summaries):
    return judge_by(PAPER, claim, summaries)


def runs(levels, spread=0.01, **settings):
    """Give each its level, times noise that seeds share and noise of its own."""
    rng = np.random.default_rng(0)
    common = 1 + 0.1 * rng.normal(size=SEEDS)
    tables = []
    for ((case, sampler, metric), level), seed in product(levels.items(), range(SEEDS)):
        noise = 1 + spread * rng.normal() if metric in ("loss", "accuracy") else 1
        shared = common[seed] if metric == "loss" else 1
        curve = np.broadcast_to(level, AT.shape) * noise * shared
        tables.append((case, sampler, seed, {metric: (AT, curve)}))
    return made_up(tables, {"settings": {}, "cases": {"base": {}}, **settings})


def losses(case="base", **levels):
    return {(case, sampler, "loss"): level for sampler, level in levels.items()}


def counted(metric, **of_rounds):
    """Counts of each round, the same for every seed; the round before the first has none."""
    levels = {
        ("base", sampler, metric): np.array([0.0, *np.resize(values, len(AT) - 1)])
        for sampler, values in of_rounds.items()
    }
    return runs(levels, **MNIST)


USUAL = [10, 10, 10, 10, 10, 9, 9, 9] * 6 + [10, 10]  # 63 % of fifty rounds
RARE = [10, 9, 9, 9, 9]


@pytest.mark.parametrize(
    ("md", "ours", "verdict"),
    [
        (USUAL, [10], "reproduced"),
        (RARE, [10], "partly reproduced"),
        (USUAL, [10] * 49 + [9], "partly reproduced"),
        (RARE, [10, 9], "contradicted"),
    ],
)
def test_c1_needs_the_share_and_always(md, ours, verdict):
    finding = judge("c1", mnist=counted("clients", md=md, algorithm1=ours, algorithm2=[10]))
    assert finding.verdict == verdict
    assert "closed form 62.8 %" in finding.ours


def test_c1_is_open_where_the_interval_of_the_share_is_wide():
    summary = counted("clients", md=USUAL, algorithm1=[10], algorithm2=[10])
    rows, md = summary.rows, summary.rows["sampler"] == "md"
    value = rows["value"].mask(md & (rows["seed"] % 2 == 0), 10)
    value = value.mask(md & (rows["seed"] % 4 == 1), 9)
    wide = replace(summary, rows=rows.assign(value=value))
    assert judge("c1", mnist=wide).verdict == "inconclusive"


@pytest.mark.parametrize(
    ("digits", "verdict"), [([6, 7, 8, 9], "reproduced"), ([5, 5, 9, 6], "contradicted")]
)
def test_c2_wants_most_rounds(digits, verdict):
    assert judge("c2", mnist=counted("labels", md=digits)).verdict == verdict


def ended(loss, accuracy, labels, spread):
    """Algorithm 2 over target."""
    ratios = {"loss": (0.4, loss), "accuracy": (0.9, accuracy), "labels": (10.0, labels)}
    levels = {}
    for metric, (target, ratio) in ratios.items():
        levels["base", "target", metric] = target
        levels["base", "algorithm2", metric] = ratio * target
    return runs(levels, spread)


@pytest.mark.parametrize(
    ("ratios", "spread", "verdict"),
    [
        ((1.02, 0.99, 0.97), 0.01, "reproduced"),
        ((1.5, 0.99, 0.97), 0.01, "partly reproduced"),
        ((1.5, 0.7, 0.7), 0.01, "contradicted"),
        ((1.1, 0.9, 0.85), 0.3, "contradicted"),
    ],
)
def test_c3_compares_with_target_over_the_second_half(ratios, spread, verdict):
    summary = ended(*ratios, spread)
    finding = judge("c3", mnist=summary)
    assert finding.verdict == verdict
    early = changed(summary, lambda value: 0 * value + 100, until=49)
    assert judge("c3", mnist=early).ours == finding.ours


ORDERED = {"md": 1.0, "algorithm1": 0.9, "algorithm2": 0.8}
EQUAL = dict.fromkeys(SCHEMES, 1.0)
WORSE = {**EQUAL, "algorithm2": 1.2}


def by_alpha(*levels, spread=0.01):
    """Late losses at α = 0.001, 0.01, 0.1 and 10; if there is one alone, at 0.01."""
    alphas = {"a": 0.001, "b": 0.01, "c": 0.1, "d": 10} if len(levels) > 1 else {"b": 0.01}
    joined = {}
    for case, level in zip(alphas, levels, strict=True):
        joined |= losses(case, **level)
    cases = {case: {"dataset": {"partition": {"alpha": a}}} for case, a in alphas.items()}
    return runs(joined, spread, cases=cases)


@pytest.mark.parametrize(
    ("levels", "spread", "verdict"),
    [
        ((ORDERED, ORDERED, EQUAL, WORSE), 0.01, "reproduced"),
        ((ORDERED, ORDERED, ORDERED, {**ORDERED, "algorithm2": 0.5}), 0.01, "partly reproduced"),
        ((ORDERED,), 0.01, "partly reproduced"),
        ((WORSE, ORDERED, EQUAL, EQUAL), 0.01, "contradicted"),
        ((EQUAL, EQUAL, EQUAL, EQUAL), 0.0, "inconclusive"),
    ],
)
def test_c4_wants_the_order_and_more_of_it_for_smaller_alpha(levels, spread, verdict):
    assert judge("c4", alpha=by_alpha(*levels, spread=spread)).verdict == verdict


@pytest.mark.parametrize(
    ("level", "spread", "verdict"),
    [(0.97, 0.01, "reproduced"), (0.7, 0.01, "contradicted"), (0.93, 0.2, "inconclusive")],
)
def test_c5_wants_closeness_for_large_alpha_only(level, spread, verdict):
    close = {"md": 1.0, "algorithm1": level, "algorithm2": level}
    summary = by_alpha(ORDERED, ORDERED, close, close, spread=spread)
    assert judge("c5", alpha=summary).verdict == verdict
    assert judge("c5", alpha=by_alpha(ORDERED)).verdict == "not run"


@pytest.mark.parametrize(
    ("much", "verdict"), [(0.6, "reproduced"), (0.9, "partly reproduced"), (0.99, "contradicted")]
)
def test_c6_compares_gains(much, verdict):
    steps = {name: {"work": {"steps": n}} for name, n in {"much": 500, "little": 10}.items()}
    work = losses("little", md=2.0, algorithm2=1.8) | losses("much", md=1, algorithm2=much)
    clients = losses("one", **{"md-5": 1, "algorithm2-5": 0.6, "md-20": 3, "algorithm2-20": 2.7})
    skewed = {"one": {"dataset": {"partition": {"alpha": 0.01}}}}
    samplers = {f"{name}-{m}": {"m": m} for name in ("md", "algorithm2") for m in (5, 20)}
    summaries = {
        "work": runs(work, cases=steps),
        "clients": runs(clients, cases=skewed, samplers=samplers),
    }
    assert judge("c6", **summaries).verdict == verdict


@pytest.mark.parametrize(
    ("l1", "spread", "verdict"),
    [(1.02, 0.01, "reproduced"), (1.3, 0.01, "contradicted"), (1.08, 0.1, "inconclusive")],
)
def test_c7_wants_equivalence(l1, spread, verdict):
    summary = runs(losses(arccos=1.0, l2=1.0, l1=l1), spread)
    assert judge("c7", measures=summary).verdict == verdict


@pytest.mark.parametrize(
    ("algorithm1", "verdict"),
    [(0.9, "reproduced"), (1.0, "partly reproduced"), (1.1, "contradicted")],
)
def test_c8_wants_both_below_md(algorithm1, verdict):
    summary = runs(losses(md=1.0, algorithm1=algorithm1, algorithm2=0.8))
    assert judge("c8", prox=summary).verdict == verdict


def test_a_diverged_run_decides_nothing():
    summary = runs(losses(**ORDERED))
    rows = summary.rows
    value = rows["value"].mask((rows["seed"] == 3) & (rows["at"] > 50), np.nan)
    lost = replace(summary, rows=rows.assign(value=value))
    assert judge("c8", prox=lost).verdict == "inconclusive"


BOUNDS = ("rows_off", "columns_off", "variance_above_md", "inclusion_below_md", "draws_above_bound")


@pytest.mark.parametrize(
    ("metric", "value", "verdict"),
    [
        ("variance_above_md", 1e-15, "reproduced"),
        ("draws_above_bound", -1, "reproduced"),
        ("rows_off", 1, "contradicted"),
        ("columns_off", 1, "contradicted"),
        ("variance_above_md", 1e-6, "contradicted"),
        ("inclusion_below_md", 1e-6, "contradicted"),
        ("draws_above_bound", 1, "contradicted"),
    ],
)
def test_c9_wants_every_bound_in_every_allocation(metric, value, verdict):
    levels = dict.fromkeys(product(("mnist", "cifar10"), SCHEMES, BOUNDS), 0.0)
    values = np.zeros(AT.shape)
    values[3] = value
    levels["mnist", "algorithm1", metric] = values
    assert judge("c9", allocation_mnist=runs(levels)).verdict == verdict


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [({}, "reproduced"), ({"accuracy": 0.7}, "partly reproduced"), ({"loss": 1.2}, "contradicted")],
)
def test_c10_wants_all_six_comparisons(changes, verdict):
    values = (1.0, 0.7, 6.5, 0.9, 0.8, 7.0, 0.8, 0.9, 9.5)
    keys = product(["base"], SCHEMES, ("loss", "accuracy", "labels"))
    levels = dict(zip(keys, values, strict=True))
    levels |= {("base", "algorithm1", metric): level for metric, level in changes.items()}
    assert judge("c10", mnist=runs(levels, spread=0)).verdict == verdict
