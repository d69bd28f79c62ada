"""A local step: explicit gradients, independence of slots, and keyed dropout."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedsampling.learning.models.dropout import Keeper, everything, mix
from fedsampling.learning.models.settings import Mlp, Softmax
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.step import Batch, Copies, sgd_step

NETWORKS = {
    "mlp": Mlp(hidden=5).build((3, 2), 4),
    "large enough for products slot by slot": Mlp(hidden=51).build((29, 27), 10),
    "softmax": Softmax().build((7,), 3),
}
WORK = LocalWork(batch=9, step=1, steps=1)
KEYS = torch.tensor([3, 2**52 + 1, 77])


def stepped(network, slots, only=None):
    rng = torch.Generator().manual_seed(3)
    (_, inputs), *_, (classes, *_) = network.shapes.values()
    w = 0.1 * torch.randn(slots, network.dimension, generator=rng)
    x = torch.rand(slots, 9, inputs, generator=rng)
    y = torch.randint(classes, (slots, 9), generator=rng)
    weight = torch.rand(slots, 9, generator=rng)
    weight[:, -2:] = 0  # padded
    step = torch.rand(slots, 1, generator=rng)
    if only is not None:
        w, x, y, weight, step = (array[only, None] for array in (w, x, y, weight, step))
    w = w.clone()
    copies = Copies(w, w.clone(), velocity=w[:, :0], step=step)
    loss = sgd_step(network, WORK, copies, Batch(x, y, weight, everything))
    return w, loss


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_the_explicit_step_agrees_with_automatic_differentiation(network):
    assert network.layers
    result, loss = stepped(network, 3)
    expected, expected_loss = stepped(replace(network, layers=()), 3)
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(loss, expected_loss)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_a_slot_does_not_depend_on_the_slots_stacked_with_it(network):
    stacked, losses = stepped(network, 6)
    for slot in np.arange(6):
        single, loss = stepped(network, 6, only=slot)
        assert torch.equal(stacked[slot], single[0])
        assert torch.equal(losses[slot], loss[0])


def mask(keys, step, *shape, rate=0.2):
    return Keeper(keys, torch.tensor(step))(torch.ones(len(keys), *shape), rate)


@pytest.mark.parametrize("rate", [0.1, 0.2, 0.5])
def test_dropout_has_its_rate_and_preserves_the_expectation(rate):
    factors = mask(KEYS, 0, 1000, 100, rate=rate)
    error = np.sqrt(rate * (1 - rate) / factors.numel())
    assert abs(float((factors == 0).double().mean()) - rate) < 5 * error + 2**-16
    assert abs(float(factors.double().mean()) - 1) < 5 * error / (1 - rate)


def test_neighbouring_positions_steps_layers_and_slots_are_independent():
    keep = Keeper(KEYS, torch.tensor(0))
    first, second = (keep(torch.ones(3, 50_001), 0.5) > 0 for _ in range(2))
    later = mask(KEYS, 1, 50_001, rate=0.5) > 0
    pairs = [(first[:, 1:], first[:, :-1]), (first[0], first[1])]
    pairs += [(first, second), (first, later), (second, later)]
    for first, second in pairs:
        agree = float((first == second).double().mean())
        assert abs(agree - 0.5) < 5 * 0.5 / np.sqrt(first.numel())


def test_masks_do_not_depend_on_other_slots_and_rate_zero_drops_nothing():
    stacked = mask(KEYS, 4, 7, 5)
    single = torch.cat([mask(key[None], 4, 7, 5) for key in KEYS])
    assert torch.equal(stacked, single)
    assert torch.equal(mask(KEYS, 0, 9, rate=0.0), torch.ones(3, 9))


def test_mixing_is_splitmix64():
    # The first outputs of the published generator for seed 0.
    gamma = 0x9E3779B97F4A7C15
    states = [(n * gamma + 2**63) % 2**64 - 2**63 for n in (1, 2, 3)]
    values = [int(z) % 2**64 for z in mix(torch.tensor(states))]
    assert values == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
