"""Run tables of delays and of the selection studies."""

import numpy as np
import pytest
from papers.harshvardhan2025latency.simulations_selection import instance
from tests.helpers.small_runs import array as values
from tests.helpers.small_runs import settings, tables


def test_shares_and_quantiles_are_those_of_the_rounds_shown():
    (table,) = tables("delays")
    seconds = values(table, "round_seconds")
    assert seconds.size == 3 * 188
    assert values(table, "share") == np.mean(seconds > 1000)
    assert values(table, "slowest") == pytest.approx(seconds.reshape(3, 188).max(1).mean())
    assert values(table, "quantile/0.9") == pytest.approx(np.quantile(seconds, 0.9))
    parts = [values(table, name) for name in ("communication", "computation", "mean")]
    noise = 0.1 * np.exp(0.5)
    np.testing.assert_allclose(parts[0] * (1 + noise) + parts[1], parts[2])
    assert values(table, "hub_degree").size == 6


def test_without_detail_only_the_run_is_described():
    (table,) = tables("delays", detail=False)
    assert (table["at"] == -1).all()


def run(study, **changes):
    return tables("selection", sampler={"name": study}, **changes)


def test_enumeration_finds_what_is_proved_and_contradicts_what_is_claimed():
    (table,) = run("enumeration", draws=4)
    assert (values(table, "triples") == 1080).all()
    assert not values(table, "h_decreasing").any()
    assert not values(table, "h_supermodular").any()
    assert values(table, "g_submodular").all()
    np.testing.assert_allclose(values(table, "prefix_gap"), 0, atol=1e-12)


def test_with_few_samples_clients_of_one_distribution_differ():
    (table,) = run("assumptions", samples=10, dimension=60)
    assert (values(table, "alike") > 5).all()
    assert (values(table, "assumption3") > 5).all()
    (table,) = run("assumptions", samples=4000, dimension=5)
    assert (values(table, "alike") < 0.5).all()


def test_the_solver_never_passes_the_minimum_and_starts_where_it_is_told():
    (table,) = run("distribution", clients=8)
    for start in ("uniform", "fast", "random"):
        assert (values(table, f"{start}/ratio") >= 1 - 1e-9).all()
    assert values(table, "uniform/clients")[0] == pytest.approx(8)
    product = values(table, "uniform/seconds") * values(table, "uniform/rounds")
    assert (product > 0).all()


def test_instances_follow_their_settings():
    features, delays = instance(settings("selection", delays="long_tail"), 0, 1)
    assert features.shape == (6, 8, 10)
    assert (delays > 30).all()
    features_iid, _ = instance(settings("selection", samples=5000), 0, 0, same_distribution=True)
    spread = features_iid.var(axis=1)
    np.testing.assert_allclose(spread / spread.mean(0), 1, atol=0.15)


@pytest.mark.parametrize(("study", "timed"), [("overhead", True), ("minnorm", False)])
def test_only_the_study_of_the_overhead_measures_times(study, timed):
    assert settings("selection", sampler={"name": study}).timed == timed
