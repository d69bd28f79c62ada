"""Synthetic delays against the moments of their law."""

import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.base.records import check
from fedsampling.clients.delays import SyntheticDelays

N, MS = 20_000, 4e6


def synthetic(clients, model_bytes, seed, **settings):
    return SyntheticDelays(clients=clients, model_bytes=model_bytes, **settings).draw(seed)


def test_means_are_those_of_the_text():
    delays = synthetic(N, MS, 0)
    # E[MS / c] = MS ln(5 / 0.2) / 4.8e6 for c uniform on [0.2, 5] MB/s; E[comp] = 57.5.
    expected = MS * np.log(25) / 4.8e6 + 57.5
    assert abs(delays.base.mean() - expected) < 5 * delays.base.std() / np.sqrt(N)
    assert MS / 5e6 + 15 < delays.base.min() < delays.base.max() < MS / 200e3 + 100
    assert delays.noise is None


def test_per_round_redraws_only_the_computation():
    fixed, redrawn = synthetic(50, MS, 3), synthetic(50, MS, 3, per_round=True)
    seconds = redrawn.round_seconds(0, np.arange(2)[:, None], np.arange(50)) - redrawn.base
    assert (seconds[0] != seconds[1]).all()
    for computation in (seconds, fixed.base - redrawn.base):
        assert ((computation >= 15) & (computation < 100)).all()


def test_with_a_spread_seconds_vary_around_each_clients_mean():
    fixed, varying = synthetic(5, MS, 3), synthetic(5, MS, 3, spread=0.5)
    np.testing.assert_allclose(varying.mean, fixed.mean)
    seconds = varying.round_seconds(0, np.arange(20_000)[:, None], np.arange(5))
    np.testing.assert_allclose(seconds.mean(0), fixed.mean, rtol=0.02)
    np.testing.assert_allclose(np.log(seconds).std(0), 0.5, rtol=0.02)


def test_in_the_order_of_samples_larger_clients_are_slower():
    def drawn(n_samples, **settings):
        n = np.array(n_samples)
        return SyntheticDelays(**settings).for_clients(1, None, np.arange(len(n)), n, MS, 10).mean

    sizes = [30, 10, 20, 20, 50]
    ordered, random = drawn(sizes, order="samples"), drawn(sizes)
    np.testing.assert_array_equal(np.sort(ordered), np.sort(random))
    assert (np.diff(ordered[[1, 2, 0, 4]]) > 0).all()
    np.testing.assert_allclose(drawn([7] * 5, order="samples", spread=0.3), drawn([7] * 5))
    with pytest.raises(InputError, match="spread, order: no effect with per_round"):
        check(SyntheticDelays, {"per_round": True, "spread": 0.3}, "")
    with pytest.raises(InputError, match="order: no effect without training"):
        check(SyntheticDelays, {"clients": 5, "order": "samples"}, "")


def test_delays_do_not_depend_on_other_clients_but_on_the_model():
    np.testing.assert_array_equal(synthetic(100, MS, 1).base[:10], synthetic(10, MS, 1).base)
    assert (synthetic(10, 2 * MS, 1).base > synthetic(10, MS, 1).base).all()
