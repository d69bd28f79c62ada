"""Synthetic delays against the moments of their law."""

import numpy as np

from fedsampling.clients.delays.synthetic import Synthetic

N, MS = 20_000, 4e6


def synthetic(clients, model_bytes, seed, **settings):
    return Synthetic(clients=clients, model_bytes=model_bytes, **settings).draw(seed)


def test_means_are_those_of_the_text():
    delays = synthetic(N, MS, 0)
    # E[MS / c] = MS ln(5 / 0.2) / 4.8e6 for c uniform on [0.2, 5] MB/s; E[comp] = 57.5.
    expected = MS * np.log(25) / 4.8e6 + 57.5
    assert abs(delays.base.mean() - expected) < 5 * delays.base.std() / np.sqrt(N)
    assert delays.base.min() > MS / 5e6 + 15
    assert delays.base.max() < MS / 200e3 + 100
    assert delays.noise is None


def test_per_round_redraws_only_the_computation():
    fixed, redrawn = synthetic(50, MS, 3), synthetic(50, MS, 3, per_round=True)
    seconds = redrawn.round_seconds(0, np.arange(2)[:, None], np.arange(50)) - redrawn.base
    assert (seconds >= 15).all()
    assert (seconds < 100).all()
    assert (seconds[0] != seconds[1]).all()
    computation = fixed.base - redrawn.base
    assert (computation >= 15).all()
    assert (computation < 100).all()


def test_a_client_keeps_its_delay_when_others_join_and_is_slower_with_a_larger_model():
    np.testing.assert_array_equal(synthetic(100, MS, 1).base[:10], synthetic(10, MS, 1).base)
    assert (synthetic(10, 2 * MS, 1).base > synthetic(10, MS, 1).base).all()


def test_a_training_run_gives_what_the_settings_leave_open():
    model = Synthetic()
    assert model.lacking() == ("clients", "model_bytes")
    np.testing.assert_array_equal(
        model.draw(1, clients=10, model_bytes=MS).base, synthetic(10, MS, 1).base
    )
