"""Availability: rates, correlation over rounds, and keyed draws."""

import numpy as np
import pytest

from fedsampling.clients.availability import Bernoulli, Markov


@pytest.mark.parametrize("model", [Bernoulli(), Markov()], ids=lambda model: model.named)
def test_a_trace_is_keyed_by_client_and_round(model):
    trace = model.trace(3, 20, 30)
    np.testing.assert_array_equal(trace[:7], model.trace(3, 7, 30))
    np.testing.assert_array_equal(trace[:, :9], model.trace(3, 20, 9))
    assert (trace != model.trace(4, 20, 30)).any()
    assert trace.any(1).all()


def test_at_least_one_client_is_always_available():
    rare = Bernoulli(rate=(0.01, 0.01)).trace(0, 400, 3)
    assert (rare.sum(1) >= 1).all()
    assert len(set(rare.argmax(1))) == 3  # not always the same


def test_rates_are_those_of_the_settings():
    model = Bernoulli(rate=(0.2, 0.9))
    rates = model.rates(0, 400)
    assert ((rates >= 0.2) & (rates < 0.9)).all()
    share = model.trace(0, 2000, 400).mean(0)
    spread = np.sqrt(rates * (1 - rates) / 2000)
    assert (np.abs(share - rates) < 5 * spread).all()


def test_markov_availability_keeps_the_rate_and_decorrelates_geometrically():
    persistence = 0.7
    model = Markov(rate=(0.4, 0.4), persistence=persistence)
    trace = model.trace(1, 4000, 100).astype(float)
    assert trace.mean() == pytest.approx(0.4, abs=0.01)
    assert trace[0].mean() == pytest.approx(0.4, abs=5 * 0.5 / 10)
    for lag in (1, 2, 4):
        covariance = (trace[lag:] * trace[:-lag]).mean() - 0.4**2
        assert covariance / (0.4 * 0.6) == pytest.approx(persistence**lag, abs=0.03)
    independent = Markov(persistence=0.0)
    np.testing.assert_array_equal(independent.trace(0, 50, 9), Bernoulli().trace(0, 50, 9))
