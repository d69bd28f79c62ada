"""Delays: keyed draws, and distributions with the given means."""

import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.base.records import check
from fedsampling.clients.delays import Delays, LogNormal, Synthetic, Uniform, assign

NOISY = Delays(np.array([10.0, 20.0, 30.0]), LogNormal(np.array([1.0, 0.0, 5.0]), 0.5))


def test_draws_depend_on_seed_round_and_client_alone():
    clients = np.arange(3)
    seconds = NOISY.round_seconds(7, np.arange(4)[:, None], clients)
    assert seconds.shape == (4, 3)
    assert NOISY.round_seconds(7, 2, [2])[0] == seconds[2, 2]
    np.testing.assert_array_equal(NOISY.round_seconds(7, 3, clients[::-1]), seconds[3, ::-1])
    assert (NOISY.round_seconds(8, np.arange(4), 0) != seconds[:, 0]).all()


@pytest.mark.parametrize(
    ("noise", "median", "mean"),
    [(LogNormal(np.array([5.0]), 0.5), 5.0, 5 * np.exp(0.125)), (Uniform(15, 100), 57.5, 57.5)],
)
def test_noise_follows_its_law(noise, median, mean):
    delays = Delays(np.zeros(1), noise)
    seconds = delays.round_seconds(0, np.arange(40_000), 0)
    # Five standard errors each: a wrong alarm in fewer than one of a million seeds.
    assert abs((seconds > median).mean() - 0.5) < 5 * 0.5 / 200
    assert abs(seconds.mean() - mean) < 5 * seconds.std() / 200
    np.testing.assert_allclose(delays.mean, mean)


def test_a_client_without_median_has_no_noise():
    assert (NOISY.round_seconds(0, np.arange(50), 1) == 20).all()


def test_assign_repeats_places_only_when_they_run_out():
    three, seven = assign(NOISY, 3, 0), assign(NOISY, 7, 0)
    np.testing.assert_array_equal(np.sort(three.base), NOISY.base)
    np.testing.assert_array_equal(seven.base[:3], three.base)
    np.testing.assert_array_equal(seven.base[3:6], three.base)
    noise = dict(zip(NOISY.base, NOISY.noise.median, strict=True))
    assert [noise[base] for base in seven.base] == list(seven.noise.median)


# Synthetic delays against the moments of their law.


N, MS = 20_000, 4e6


def synthetic(clients, model_bytes, seed, **settings):
    return Synthetic(clients=clients, model_bytes=model_bytes, **settings).draw(seed)


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


def test_in_the_order_of_samples_larger_clients_are_slower_and_equal_ones_keep_their_delays():
    def drawn(n_samples, **settings):
        n = np.array(n_samples)
        return Synthetic(**settings).for_clients(1, None, np.arange(len(n)), n, MS, 10).mean

    sizes = [30, 10, 20, 20, 50]
    ordered, random = drawn(sizes, order="samples"), drawn(sizes)
    np.testing.assert_array_equal(np.sort(ordered), np.sort(random))
    assert (np.diff(ordered[[1, 2, 0, 4]]) > 0).all()
    np.testing.assert_allclose(drawn([7] * 5, order="samples", spread=0.3), drawn([7] * 5))
    with pytest.raises(InputError, match="spread, order: no effect with per_round"):
        check(Synthetic, {"per_round": True, "spread": 0.3}, "")
    with pytest.raises(InputError, match="order: no effect without training"):
        check(Synthetic, {"clients": 5, "order": "samples"}, "")


def test_a_client_keeps_its_delay_when_others_join_and_is_slower_with_a_larger_model():
    np.testing.assert_array_equal(synthetic(100, MS, 1).base[:10], synthetic(10, MS, 1).base)
    assert (synthetic(10, 2 * MS, 1).base > synthetic(10, MS, 1).base).all()
