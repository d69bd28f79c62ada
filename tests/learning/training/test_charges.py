"""Costs of rounds small enough to count by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

import fedsampling as fs
from fedsampling.base.streams import Draws
from fedsampling.clients.delays import Delays
from fedsampling.learning.training import costs
from fedsampling.learning.training.participation import evenness, participation
from fedsampling.samplers.protocol.slots import Slots

SLOTS = Slots.stack([np.array([2, 0, 2]), np.array([1])])
OMEGA = np.array([0.5, 0.0, 0.5, 1.0])
TAU = np.array([5.0, 1.0, 3.0, 9.0])
ALL = np.arange(4)
REQUESTED = np.array([[False, True, False, False], [True, False, True, False]])


def scheme(*needs, **methods):
    """Stand-in for a sampler, with what its costs depend on."""
    defaults = {"exchange_bits": lambda: None, "asked": lambda: None}
    return SimpleNamespace(needs=frozenset(needs), **defaults | methods)


def test_clients_reports_and_labels_are_counted_run_by_run():
    result = participation(SLOTS, OMEGA, np.array([7, 7, 7, 8]), 2)
    assert {name: value.tolist() for name, value in result.items()} == {
        "clients": [2, 1],
        "reports": [2, 1],
        "labels": [1, 1],
    }


def test_evenness_is_one_for_equal_counts():
    result = evenness(np.array([[3.0, 3, 3, 3], [4, 0, 0, 0], [2, 1, 1, 0], [0, 0, 0, 0]]))
    assert result["met"].tolist() == [1, 0.25, 0.75, 0]
    assert result["jain"].tolist() == pytest.approx([1, 1 / 4, 16 / (4 * 6), 0])
    # log 4 is the unit: halves and quarters have 1.5 bits of 2.
    assert result["entropy"].tolist() == pytest.approx([1, 0, 0.75, 0])


def test_bits_are_32_for_each_number_and_those_of_the_samplers_exchanges():
    sampler = scheme("update_norms", exchange_bits=lambda: np.array([3.0, 4.0]))
    result = costs.bits(sampler, SLOTS, OMEGA, 10, 2)
    assert {name: value.tolist() for name, value in result.items()} == {
        "model_bits": [640, 320],
        "norm_bits": [96, 32],
        "down_bits": [640, 320],
        "exchange_bits": [3, 4],
    }
    result = costs.bits(scheme(), SLOTS, OMEGA, 10, 2)
    assert not result["norm_bits"].any()
    assert "exchange_bits" not in result


def test_the_server_charges_label_counts_of_any_sampler_once():
    """Twelve numbers before the first round, besides what the sampler's own protocol sends."""
    own = scheme("label_counts", exchange_bits=lambda: np.array([3.0, 4.0]))
    for sampler, sent in ((own, [3.0, 4.0]), (scheme("label_counts"), [0.0, 0.0])):
        first = costs.bits(sampler, SLOTS, OMEGA, 10, 2, labels=12)["exchange_bits"]
        later = costs.bits(sampler, SLOTS, OMEGA, 10, 2)["exchange_bits"]
        assert (later.tolist(), (first - later).tolist()) == (sent, [384, 384])


@pytest.mark.parametrize("needs", [frozenset({"label_counts"}), frozenset()])
def test_a_users_sampler_pays_for_label_counts_as_fedgs_does(needs):
    class ByLabel(fs.Sampler, name=f"by_label_{len(needs)}"):
        """The first clients."""

        m: int
        unbiased = False

        def select(self, view, rng):
            return np.arange(self.m)

    ByLabel.needs = needs
    data = fs.federated(np.ones((20, 2)), np.arange(20) % 2, clients=np.arange(20) % 5)
    work = {"model": "softmax", "steps": 1, "batch": 2, "step": 0.1, "rounds": 2}
    charged = [
        history[history["metric"] == "exchange_bits"][["at", "value"]].to_numpy().tolist()
        for history in (
            fs.train(data, by, **work) for by in (ByLabel(m=2), fs.scheme("fedgs", m=2))
        )
    ]
    ByLabel.named = ""
    assert charged[1] == [[1, 32.0 * 5 * 2], [2, 0]]
    assert charged[0] == (charged[1] if needs else [])


@pytest.mark.parametrize(
    ("sampler", "round", "available", "asking"),
    [
        (scheme(), 0, ALL, [0, 0]),
        (scheme("losses"), 7, ALL, [9, 9]),
        (scheme("losses"), 7, ALL[:3], [5, 5]),
        (scheme("heterogeneity"), 0, ALL, [9, 9]),
        (scheme("heterogeneity"), 1, ALL, [0, 0]),
        (scheme("gradients"), 0, ALL, [9, 9]),
        (scheme(asked=lambda: REQUESTED), 0, ALL, [1, 5]),
    ],
)
def test_a_round_takes_as_long_as_its_slowest_client(sampler, round, available, asking):
    rng = Draws(np.array([1, 2]), round)
    result = costs.seconds(sampler, SLOTS, Delays(TAU), available, rng)
    assert result["seconds"].tolist() == [5, 1]
    assert result["asking_seconds"].tolist() == asking
    nobody = Slots.stack([np.empty(0, np.int64), np.array([1])])
    result = costs.seconds(sampler, nobody, Delays(TAU), available, rng)
    assert result["seconds"].tolist() == [0, 1]


def test_a_request_takes_a_share_of_each_clients_delay():
    shares, rng = np.array([0.1, 1.0, 0.5, 0.2]), Draws(np.array([1, 2]), 7)
    result = costs.seconds(scheme("losses"), SLOTS, Delays(TAU), ALL, rng, shares)
    assert result["asking_seconds"].tolist() == pytest.approx([0.2 * 9, 0.2 * 9])
    assert result["seconds"].tolist() == [5, 1]


@pytest.mark.parametrize(
    ("needs", "d", "shares"),
    [
        ({"losses", "delays"}, 50, [0.1, 1.0]),
        ({"gradients"}, 50, [0.3, 3.0]),
        ({"heterogeneity"}, 60, [0.1, 0.2]),
        ({"batch_losses"}, 50, [20 / 300, 20 / 300]),  # a forward pass over at most 20 samples
        (set(), 50, [0, 0]),
    ],
)
def test_a_request_costs_the_passes_over_data_that_it_needs(needs, d, shares):
    n_samples, trained = np.array([30, 300]), np.array([100, 100])
    result = costs.request_shares(frozenset(needs), n_samples, trained, d, 20)
    np.testing.assert_allclose(result, shares)
