"""Dropout whose masks depend only on a key, not on stacking, order or device."""

from collections.abc import Callable
from math import prod

import torch
from torch import Tensor

Keep = Callable[[Tensor, float], Tensor]
LANES = 4  # dropout decisions from one hash


def everything(h: Tensor, rate: float) -> Tensor:
    """Drop nothing: the `keep` of an evaluation."""
    return h


class Keeper:
    """The dropout of one local step; its masks depend only on their key.

    With a generator's sequence, a client's masks would depend on earlier computations and on the
    device.  Here 64 bits are hashed from (key of the slot, step, layer, position) and split into
    four decisions of 16 bits each, which are the same for every stacking, order and device.

    ``keep(h, rate)`` sets each element of h [slots, ...] to zero with probability `rate`, rounded
    to 16 bits, and scales the others to preserve the expectation.  Layers are distinguished by the
    order of their calls.

    `keys`, shape (slots,): hash of seed, round, client and occurrence. `step`, shape (): number of
    the local step.
    """

    def __init__(self, keys: Tensor, step: Tensor) -> None:
        self._keys, self._step, self._layers = keys, step, 0

    def __call__(self, h: Tensor, rate: float) -> Tensor:
        """Drop elements of h [slots, ...] with probability `rate`."""
        self._layers += 1
        drop = round(rate * 2**16)
        count = prod(h.shape[1:])
        word = torch.arange(-(-count // LANES), device=h.device)
        stream = mix(self._keys + (self._step * 64 + self._layers) * _GAMMA)
        lanes = mix(stream[:, None] + word * _GAMMA).view(torch.int16)[:, :count]
        mask = (lanes >= drop - 2**15).view(h.shape)
        return h * (mask.to(h.dtype) * (2**16 / (2**16 - drop)))

    def seeds(self, purpose: int) -> Tensor:
        """Return a seed for each slot's generator, in users' modules (0) and losses (1)."""
        return mix(mix(self._keys + self._step * 64 * _GAMMA) + purpose * _GAMMA) & (2**63 - 1)


def mix(z: Tensor) -> Tensor:
    """Scramble 64-bit integers, so that consecutive integers become independent: SplitMix64.

    References: Steele, Lea, Flood: Fast splittable pseudorandom number generators. OOPSLA 2014.
    """
    z = (z ^ _logical_shift(z, 30)) * _FIRST
    z = (z ^ _logical_shift(z, 27)) * _SECOND
    return z ^ _logical_shift(z, 31)


def _logical_shift(z: Tensor, bits: int) -> Tensor:
    # PyTorch has signed integers only, whose right shift copies the sign.
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def _wrapped(word: int) -> int:
    """Return the signed 64-bit integer with these low bits."""
    return (word + 2**63) % 2**64 - 2**63


_GAMMA = _wrapped(0x9E3779B97F4A7C15)
_FIRST = _wrapped(0xBF58476D1CE4E5B9)
_SECOND = _wrapped(0x94D049BB133111EB)
