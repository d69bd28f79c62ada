"""Observations agree with their definitions, and only participants renew them."""

from itertools import combinations

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from small_network import SIZES, learner

from fedsampling.learning.training.network.evaluation import client_losses
from fedsampling.learning.training.network.local_work import LocalWork
from fedsampling.learning.training.network.observing import (
    OBSERVATIONS,
    Heterogeneity,
    HeterogeneityOfSome,
)
from fedsampling.samplers.scheme import Slots
from fedsampling.theory.heterogeneity import pairwise

SEEDS = np.array([4, 9])
CALLS = pytest.mark.parametrize("name", OBSERVATIONS)


def sight(name: str, batch: int = 100):
    trainer = learner(LocalWork(batch=4, step=0.1, steps=3))
    return trainer, OBSERVATIONS[name](trainer, batch, np.random.default_rng(0))


def test_losses_are_those_of_the_current_model():
    made, losses = sight("losses")
    for seeds in (SEEDS, SEEDS + 1):
        theta = made.start(seeds)
        np.testing.assert_array_equal(losses(theta), client_losses(made, theta))
    assert losses.bits().tolist() == [5 * 32, 5 * 32]
    asked = np.array([[True, False, False, True, False], [False, False, False, True, False]])
    assert losses.bits(asked).tolist() == [2 * 32, 32]


def test_batch_losses_are_means_over_a_new_mini_batch_of_each_client():
    made, losses = sight("batch_losses")
    theta = made.start(SEEDS)
    first, second = losses(theta), losses(theta)
    assert losses.bits().tolist() == [5 * 32, 5 * 32]
    for client in range(5):
        rows = slice(made.data.start[client], made.data.start[client + 1])
        x = torch.from_numpy(made.data.x[rows]).float() / 255
        z = made.network.outputs(theta[:1], x[None])[0]
        each = F.cross_entropy(z, torch.from_numpy(made.data.y[rows]), reduction="none").numpy()
        batch = min(4, SIZES[client])
        subsets = [np.mean(kept) for kept in combinations(each, batch)]
        for result in (first, second):
            assert np.isclose(subsets, result[0, client], atol=1e-5).any()
    assert (first[:, SIZES > 5] != second[:, SIZES > 5]).any()
    np.testing.assert_allclose(first[:, SIZES <= 4], second[:, SIZES <= 4])
    some = losses(theta, np.array([1, 3]))
    assert np.isnan(some[:, [0, 2, 4]]).all()
    assert np.isfinite(some[:, [1, 3]]).all()


def test_a_restored_run_continues_with_the_next_mini_batch():
    made, losses = sight("batch_losses")
    _, other = sight("batch_losses")
    theta = made.start(SEEDS)
    losses(theta)
    other.restore(losses.state())
    np.testing.assert_array_equal(losses(theta), other(theta))


def test_heterogeneity_is_that_of_the_last_layers_inputs():
    made, heterogeneity = sight("heterogeneity")
    theta = made.start(SEEDS)
    result = heterogeneity(theta)
    for run in range(2):
        w = made.network.parts(theta[run : run + 1])
        moments = []
        for client in range(5):
            rows = slice(made.data.start[client], made.data.start[client + 1])
            x = torch.from_numpy(made.data.x[rows]).float() / 255
            h = made.network.body(w, x[None], lambda h, rate: h)[0].double().numpy()
            moments.append(h.T @ h / SIZES[client])
        inverse = np.linalg.pinv(np.mean(moments, axis=0), rcond=1e-12)
        for i in range(5):
            for j in range(5):
                norm = np.linalg.norm((moments[i] - moments[j]) @ inverse, 2)
                assert result[run, i, j] == pytest.approx(norm, rel=1e-3, abs=1e-6)


def test_gradients_are_those_of_a_clients_whole_data():
    made, gradients = sight("gradients")
    theta = made.start(SEEDS)
    result = gradients(theta)
    for client in range(5):
        rows = slice(made.data.start[client], made.data.start[client + 1])
        x = torch.from_numpy(made.data.x[rows]).float() / 255
        leaf = theta[:1].clone().requires_grad_()
        z = made.network.outputs(leaf, x[None])[0]
        F.cross_entropy(z, torch.from_numpy(made.data.y[rows])).backward()
        np.testing.assert_allclose(result[0, client], leaf.grad[0].numpy(), atol=1e-6)


@pytest.mark.parametrize("name", ["heterogeneity", "gradients"])
def test_only_participants_renew_features_and_gradients(name):
    made, known = sight(name)
    first = known(made.start(SEEDS)).copy()
    sent = known.bits()
    known.renew(made.start(SEEDS + 1), Slots.stack([np.array([1, 3]), np.array([0])]))
    later = known(made.start(SEEDS + 1))
    unchanged = np.ones((2, 5), bool)
    unchanged[0, [1, 3]] = unchanged[1, 0] = False
    for run in range(2):
        same = np.flatnonzero(unchanged[run])
        rest = np.flatnonzero(~unchanged[run])
        if name == "heterogeneity":
            np.testing.assert_array_equal(
                later[run][np.ix_(same, same)], first[run][np.ix_(same, same)]
            )
        else:
            np.testing.assert_array_equal(later[run, same], first[run, same])
        assert (later[run, rest] != first[run, rest]).any(axis=1).all()
    assert (known.bits() * [5 / 2, 5] == sent).all()
    assert not known.bits().any()


def test_all_features_are_renewed_if_requested():
    made, _ = sight("heterogeneity")
    known = Heterogeneity(made, 100, np.random.default_rng(0), renewal="everyone")
    known(made.start(SEEDS))
    later = made.start(SEEDS + 1)
    known.renew(later, Slots.stack([np.array([1, 3]), np.array([0])]))
    fresh = Heterogeneity(made, 100, np.random.default_rng(0))(later)
    np.testing.assert_allclose(known(later), fresh, rtol=1e-6, atol=1e-9)


@CALLS
def test_observations_survive_a_checkpoint(name):
    made, known = sight(name)
    theta = made.start(SEEDS)
    known(theta)
    _, other = sight(name)
    other.restore(known.state())
    slots = Slots.stack([np.array([1, 3]), np.array([0])])
    for each in (known, other):
        each.renew(made.start(SEEDS + 1), slots)
    np.testing.assert_array_equal(known(theta), other(theta))


def test_a_batch_of_features_is_scaled_to_a_mean():
    made, few = sight("heterogeneity", batch=4)
    few(made.start(SEEDS))
    assert few.features.shape[:3] == (2, 5, 4)  # the second client has three samples
    np.testing.assert_array_equal(few.B[0], pairwise(few.features[0]))
    assert not few.features[:, 1, 3].any()


def test_blocks_of_heterogeneity_are_computed_from_their_clients_alone():
    made, known = sight("heterogeneity")
    some = HeterogeneityOfSome(made, 100, np.random.default_rng(0))
    theta, later = made.start(SEEDS), made.start(SEEDS + 1)
    everyone, few = np.arange(5), np.array([0, 2, 3])
    for run in range(2):
        np.testing.assert_array_equal(
            some(theta)[run][np.ix_(everyone, everyone)], known(theta)[run]
        )
        block = pairwise(known.features[run, few])
        np.testing.assert_array_equal(some(theta)[run][np.ix_(few, few)], block)
    with pytest.raises(IndexError, match="some, some"):
        some(theta)[0][np.ix_(few, everyone)]
    slots = Slots.stack([np.array([1]), np.array([4])])
    for each in (some, known):
        each.bits()
        each.renew(later, slots)
    np.testing.assert_array_equal(some.features, known.features)
    np.testing.assert_array_equal(some.bits(), known.bits())
    assert some.B.size == 0
