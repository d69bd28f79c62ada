"""What would decide a claim: seeds, by the power of simulated t-tests, and missing runs."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from scipy import stats

from fedsampling.evidence.looks import Looks
from fedsampling.evidence.power import deciding, open_intervals, seeds_needed, seeds_sentence
from fedsampling.evidence.statistics import allowing_for, mean
from fedsampling.evidence.verdicts import Interval, Reading, intervals


def drawn(value, deviation, seeds, unit="points", **bounds):
    half = stats.t.ppf(0.975, seeds - 1) * deviation / np.sqrt(seeds)
    return Interval("a − b", unit, value, value - half, value + half, seeds=seeds, **bounds)


@pytest.mark.parametrize(("value", "deviation"), [(0.5, 1.0), (1.0, 1.0), (2.0, 1.0)])
def test_power_at_the_number_of_seeds_is_80_percent(value, deviation):
    seeds = int(seeds_needed(drawn(value, deviation, 3, least=0.0)))
    samples = np.random.default_rng(0).normal(value, deviation, (40_000, seeds))
    t = samples.mean(1) / (samples.std(1, ddof=1) / np.sqrt(seeds))
    assert (t > stats.t.ppf(0.975, seeds - 1)).mean() > 0.79
    shift = value / deviation * np.sqrt(seeds - 1)
    fewer = stats.nct.sf(stats.t.ppf(0.975, seeds - 2), seeds - 2, shift)
    assert fewer < 0.8


def test_ratios_are_compared_by_logarithms():
    ratio = Interval("a over b", "times", 2.0, 1 / 2, 8.0, least=1.0, seeds=5)
    log = Interval("log", "points", np.log(2), -np.log(2), np.log(8), least=0.0, seeds=5)
    assert seeds_needed(ratio) == seeds_needed(log)


def test_an_effect_on_the_bound_is_never_decided():
    assert seeds_needed(drawn(1.0, 1.0, 5, least=1.0)) == inf


def test_the_nearest_bound_counts():
    seeds = seeds_needed(drawn(0.9, 1.0, 5, least=0.0, most=1.0))
    assert seeds == seeds_needed(drawn(0.9, 1.0, 5, most=1.0))


def test_looks_take_power_but_do_not_widen_the_spread():
    values = np.random.default_rng(0).normal(0.3, 1.0, 10)
    with allowing_for(Looks((10, 29))):
        (at_looks,) = intervals({"a − b": mean(values)}, "points", least=0.0)
    (once,) = intervals({"a − b": mean(values)}, "points", least=0.0)
    assert at_looks.high - at_looks.low > once.high - once.low
    # As wide an interval of a single look at 95 % would come from a larger spread.
    wider = replace(at_looks, look_level=None)
    assert seeds_needed(once) < seeds_needed(at_looks) < seeds_needed(wider)


def test_intervals_of_decided_parts_ask_for_no_seeds_in_any_reading():
    parts = {"order": "holds", "size": "open"}
    order = drawn(0.5, 1.0, 5, least=0.0, part="order")
    size = drawn(2.0, 1.0, 5, least=0.0, part="size")
    assert deciding([order, size], parts) == [size]
    readings = [
        Reading("one", "reproduced", "", (order, size), {"order": "holds", "size": "holds"}),
        Reading("two", "inconclusive", "", (size, order), parts),
    ]
    assert deciding([order, size], parts, readings) == [size]


def test_a_paper_s_number_on_the_bound_gives_no_forecast():
    on_bound = drawn(0.5, 1.0, 5, least=0.0, paper=0.0)
    assert "if it is the paper's" not in seeds_sentence([on_bound])


def test_only_open_intervals_ask_for_seeds():
    decided, undecided = drawn(9.0, 1.0, 5, least=0.0), drawn(0.5, 1.0, 5, least=0.0, paper=2.0)
    assert open_intervals([decided, undecided]) == [undecided]
    assert seeds_sentence([decided]) == ""
    forecast = (
        f"{seeds_needed(undecided)} if the effect is as observed, "
        f"{seeds_needed(undecided, 2.0)} if it is the paper's; it has 5."
    )
    assert seeds_sentence([decided, undecided]).endswith(forecast)
    unprinted = drawn(0.5, 1.0, 5, least=0.0, effect=2.0)  # of which the paper prints no number
    assert seeds_sentence([unprinted]).endswith(forecast)
