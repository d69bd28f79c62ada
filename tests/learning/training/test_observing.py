"""Observations agree with their definitions, and only participants renew them."""

from itertools import combinations

import numpy as np
import pytest
import torch.nn.functional as F  # noqa: N812
from tests.helpers.small_network import SIZES, learner, samples

from fedsampling.learning.training import observing
from fedsampling.learning.training.evaluation import client_losses
from fedsampling.learning.training.observing import (
    OBSERVATIONS,
    Heterogeneity,
    observations_for,
)
from fedsampling.samplers.delayhet import DelayHetSubmodular
from fedsampling.samplers.protocol.slots import Slots
from fedsampling.theory.heterogeneity import pairwise

SEEDS = np.array([4, 9])
SLOTS = Slots.stack([np.array([1, 3]), np.array([0])])


def observation(name, batch=100):
    trainer = learner()
    return trainer, OBSERVATIONS[name](trainer, batch, np.random.default_rng(0))


def test_losses_are_those_of_the_current_model():
    trainer, losses = observation("losses")
    for seeds in (SEEDS, SEEDS + 1):
        theta = trainer.start(seeds)
        np.testing.assert_array_equal(losses(theta), client_losses(trainer, theta))
    assert losses.bits().tolist() == [5 * 32, 5 * 32]
    requested = np.array([[True, False, False, True, False], [False, False, False, True, False]])
    assert losses.bits(requested).tolist() == [2 * 32, 32]


def test_batch_losses_are_means_over_a_new_mini_batch_of_each_client():
    trainer, losses = observation("batch_losses")
    theta = trainer.start(SEEDS)
    first, second = losses(theta), losses(theta)
    assert losses.bits().tolist() == [5 * 32, 5 * 32]
    for client in range(5):
        x, y = samples(client)
        z = trainer.network.outputs(theta[:1], x[None])[0]
        losses_of_samples = F.cross_entropy(z, y, reduction="none").numpy()
        batch = min(4, SIZES[client])
        subsets = [np.mean(subset) for subset in combinations(losses_of_samples, batch)]
        for result in (first, second):
            assert np.isclose(subsets, result[0, client], atol=1e-5).any()
    assert (first[:, SIZES > 5] != second[:, SIZES > 5]).any()
    np.testing.assert_allclose(first[:, SIZES <= 4], second[:, SIZES <= 4])
    losses_of_two = losses(theta, np.array([1, 3]))
    assert np.isnan(losses_of_two[:, [0, 2, 4]]).all()
    assert np.isfinite(losses_of_two[:, [1, 3]]).all()


def test_heterogeneity_is_that_of_the_last_layers_inputs():
    trainer, heterogeneity = observation("heterogeneity")
    theta = trainer.start(SEEDS)
    result = heterogeneity(theta)
    for run in range(2):
        w = trainer.network.parts(theta[run : run + 1])
        moments = []
        for client in range(5):
            x, _ = samples(client)
            h = trainer.network.body(w, x[None], lambda h, rate: h)[0].double().numpy()
            moments.append(h.T @ h / SIZES[client])
        inverse = np.linalg.pinv(np.mean(moments, axis=0), rcond=1e-12)
        for i in range(5):
            for j in range(5):
                norm = np.linalg.norm((moments[i] - moments[j]) @ inverse, 2)
                assert result[run, i, j] == pytest.approx(norm, rel=1e-3, abs=1e-6)


def test_gradients_are_those_of_a_clients_whole_data():
    trainer, gradients = observation("gradients")
    theta = trainer.start(SEEDS)
    result = gradients(theta)
    for client in range(5):
        x, y = samples(client)
        leaf = theta[:1].clone().requires_grad_()
        F.cross_entropy(trainer.network.outputs(leaf, x[None])[0], y).backward()
        np.testing.assert_allclose(result[0, client], leaf.grad[0].numpy(), atol=1e-6)


@pytest.mark.parametrize("name", ["heterogeneity", "gradients"])
def test_only_participants_renew_features_and_gradients(name):
    trainer, observer = observation(name)
    first = observer(trainer.start(SEEDS)).copy()
    sent = observer.bits()
    observer.renew(trainer.start(SEEDS + 1), SLOTS)
    later = observer(trainer.start(SEEDS + 1))
    for run, participants in enumerate(([1, 3], [0])):
        others = np.setdiff1d(np.arange(5), participants)
        unchanged = np.ix_(others, others) if name == "heterogeneity" else others
        np.testing.assert_array_equal(later[run][unchanged], first[run][unchanged])
        assert (later[run, participants] != first[run, participants]).any(axis=1).all()
    assert (observer.bits() * [5 / 2, 5] == sent).all()
    assert not observer.bits().any()


def test_all_features_are_renewed_if_requested():
    trainer, _ = observation("heterogeneity")
    heterogeneity = Heterogeneity(trainer, 100, np.random.default_rng(0), renewal="everyone")
    heterogeneity(trainer.start(SEEDS))
    later = trainer.start(SEEDS + 1)
    heterogeneity.renew(later, SLOTS)
    fresh = Heterogeneity(trainer, 100, np.random.default_rng(0))(later)
    np.testing.assert_allclose(heterogeneity(later), fresh, rtol=1e-6, atol=1e-9)


def test_heterogeneity_is_computed_and_renewed_with_the_chosen_cutoff(monkeypatch):
    cutoffs = []

    def noting(function):
        def noted(*arguments, cutoff="float64"):
            cutoffs.append(cutoff)
            return function(*arguments, cutoff=cutoff)

        return noted

    for name in ("pairwise", "refresh"):
        monkeypatch.setattr(observing, name, noting(getattr(observing, name)))
    trainer, rng = learner(), np.random.default_rng(0)
    (heterogeneity,) = observations_for(DelayHetSubmodular(), trainer, 100, rng, "float32").values()
    heterogeneity(trainer.start(SEEDS))
    heterogeneity.renew(trainer.start(SEEDS + 1), SLOTS)
    assert cutoffs == ["float32"] * 4


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_a_restored_run_continues_with_equal_observations_and_batches(name):
    trainer, original = observation(name)
    _, restored = observation(name)
    theta = trainer.start(SEEDS)
    original(theta)
    restored.restore(original.state())
    for observed in (original, restored):
        observed.renew(trainer.start(SEEDS + 1), SLOTS)
    np.testing.assert_array_equal(original(theta), restored(theta))


def test_a_batch_of_features_is_scaled_to_a_mean():
    trainer, heterogeneity = observation("heterogeneity", batch=4)
    heterogeneity(trainer.start(SEEDS))
    assert heterogeneity.features.shape[:3] == (2, 5, 4)  # the second client has three samples
    np.testing.assert_array_equal(heterogeneity.B[0], pairwise(heterogeneity.features[0]))
    assert not heterogeneity.features[:, 1, 3].any()
