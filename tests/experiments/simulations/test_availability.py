"""A training run whose clients come and go."""

import numpy as np
import pytest
from tests.helpers.network_runs import network, tables
from tests.helpers.small_runs import NOWHERE
from tests.helpers.small_runs import column as by_round

from fedsampling.base.errors import InputError
from fedsampling.experiments.networks.training import load_trace
from fedsampling.learning.training.learner import NetworkLearner

HALF = {"name": "bernoulli", "rate": [0.3, 0.7]}


@pytest.mark.parametrize(
    ("scheme", "sampler"),
    [
        *((name, {"m": 4}) for name in ("oort", "divfl", "tifl")),
        *(("full", {}), ("fedcs", {"d": 8}), ("power_of_choice", {"m": 4, "d": 8})),
    ],
)
def test_only_available_clients_train_and_are_asked(scheme, sampler, monkeypatch):
    settings = network({"availability": HALF, "sampler": {"name": scheme, **sampler}})
    trace, rounds = load_trace(settings, 20), []
    work = NetworkLearner.work

    def watched(self, theta, slots, sampler, rng):
        assert trace[rng.round, slots.client].all()
        rounds.append(rng.round)
        return work(self, theta, slots, sampler, rng)

    monkeypatch.setattr(NetworkLearner, "work", watched)
    result = tables(settings)
    assert rounds == [*range(6)]
    for table in result:
        np.testing.assert_array_equal(by_round(table, "offered"), trace.sum(1))
        if scheme == "full":
            np.testing.assert_array_equal(by_round(table, "clients"), trace.sum(1))
        if scheme == "power_of_choice":
            candidates = np.minimum(8, trace.sum(1))
            np.testing.assert_array_equal(by_round(table, "observation_bits"), 32 * candidates)


def test_samplers_without_the_clients_that_they_need_are_refused():
    with pytest.raises(InputError, match="clustered_size requires every client to be available"):
        network({"availability": HALF, "sampler": {"name": "clustered_size", "m": 4}})


def test_absences_can_follow_labels():
    by_label = {"name": "bernoulli", "rate": [0.2, 0.9], "by": "label"}
    settings = network({"availability": by_label, "rounds": 400})
    labels = np.repeat([0, 1, 2], 20)
    trace = load_trace(settings, 60, labels)
    rates = [trace[:, labels == label].mean() for label in range(3)]
    np.testing.assert_allclose(rates, [0.2, 0.55, 0.9], atol=0.02)
    with pytest.raises(InputError, match=r"availability\.by: label needs labels; choose random"):
        load_trace(settings, 60)


def test_runs_of_other_learning_rates_are_stacked_without_changing_them():
    uniform = {"sampler": {"name": "uniform", "m": 4}, "availability": {"name": "markov"}}
    slow, fast = network(uniform), network(uniform | {"work": {"step": 0.02}, "server_step": 2})
    assert slow.stacks_with(fast)
    assert not slow.stacks_with(network())
    variants, seeds = [slow, slow, fast, fast], [0, 1, 0, 1]
    stacked = slow.simulate_stacked(variants, "embedded", seeds, NOWHERE).tables
    for table, single in zip(stacked, [*tables(slow), *tables(fast)], strict=True):
        np.testing.assert_array_equal(table["value"], single["value"])


def test_thin_tables_sum_the_costs_between_measurements():
    full = tables(network())[0]
    thin = tables(network({"evaluation": {"thin": True, "every": 4}}))[0]
    spent = by_round(full, "seconds")
    assert by_round(thin, "seconds").to_dict() == {4: spent[:4].sum(), 6: spent[4:].sum()}
    assert "clients" not in set(thin["metric"])
