"""Delays: keyed draws, and distributions with the given means."""

import numpy as np
import pytest

from fedsampling.clients.delays import Delays, LogNormalDelay, UniformDelay, assign

NOISY = Delays(np.array([10.0, 20.0, 30.0]), LogNormalDelay(np.array([1.0, 0.0, 5.0]), 0.5))


def test_draws_depend_on_seed_round_and_client_alone():
    clients = np.arange(3)
    seconds = NOISY.round_seconds(7, np.arange(4)[:, None], clients)
    assert seconds.shape == (4, 3)
    assert NOISY.round_seconds(7, 2, [2])[0] == seconds[2, 2]
    np.testing.assert_array_equal(NOISY.round_seconds(7, 3, clients[::-1]), seconds[3, ::-1])
    assert (NOISY.round_seconds(8, np.arange(4), 0) != seconds[:, 0]).all()


@pytest.mark.parametrize(
    ("noise", "median", "mean"),
    [
        (LogNormalDelay(np.array([5.0]), 0.5), 5.0, 5 * np.exp(0.125)),
        (UniformDelay(15, 100), 57.5, 57.5),
    ],
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
