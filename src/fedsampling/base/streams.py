"""Random numbers from a counter-based generator, keyed by seed, purpose, round and client.

There is no global state, so no draw affects another: the numbers for the batches of client 7 in
round 40 of seed 3 depend only on the purpose "batches" and these three numbers.  Therefore a client
gets the same batches in the same round under every sampler (common random numbers), results do not
depend on call order, stacking or other runs in the job, and a resumed run continues exactly.

:func:`stream` returns a NumPy generator for one key; :func:`uniforms` returns the first numbers of
many keys at once, as stacked training needs them.

References
----------
Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3. SC 2011 (Philox).
"""

import hashlib
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsampling.base.arrays import Array, Ints


def stream(seed: int, purpose: str, *counters: int) -> np.random.Generator:
    """Return the Philox generator of one key, for draws of any distribution.

    The key is a seed in [0, 2**32), the purpose of the numbers, such as ``"model"``, and up to
    three counters, such as round and client. Streams of different keys never overlap.
    """
    counter = np.zeros(4, np.uint64)  # word 0 counts the blocks within the stream
    counter[1 : 1 + len(counters)] = counters
    key = np.array([seed, _word(purpose)], np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def uniforms(seed: ArrayLike, purpose: str, *counters: ArrayLike, n: int) -> Array:
    """Draw the first `n` uniform numbers of many keys at once.

    `seed`, shape (...): in [0, 2**32); broadcasts against the counters. `*counters`, shape (...):
    up to three, in [0, 2**32), such as round and client. `n`: numbers per key; a larger `n` does
    not change the first numbers. Returns shape (..., n): in [0, 1), 53 random bits each.
    """
    blocks = -(-n // 2)  # one Philox block holds two doubles
    keys = np.broadcast_arrays(seed, *counters)
    shape = keys[0].shape
    words = [np.ravel(key).astype(np.uint64) for key in keys]
    words += [np.zeros(1, np.uint64) for _ in range(4 - len(words))]
    # Blocks along the first axis, keys along the second; Philox's second round broadcasts them.
    counter = [np.arange(blocks, dtype=np.uint64)[:, None], *words[1:]]
    bits = philox(counter, [words[0], np.array([_word(purpose)], np.uint64)])
    doubles = np.empty((words[0].size, blocks, 2))
    for half in range(2):
        high, low = bits[2 * half], bits[2 * half + 1]
        integers = (high >> np.uint64(5)) * 67108864.0 + (low >> np.uint64(6))
        doubles[:, :, half] = (integers / 9007199254740992.0).T
    return doubles.reshape(*shape, 2 * blocks)[..., :n]


@dataclass(frozen=True)
class Draws:
    """The random numbers of one round for all runs that are stacked in a job."""

    seeds: Ints  # shape (runs,)
    round: int

    def generators(self, purpose: str) -> list[np.random.Generator]:
        """One generator per run."""
        return [stream(int(seed), purpose, self.round) for seed in self.seeds]

    def uniform(self, purpose: str) -> Array:
        """One number per run, shape (runs,)."""
        return self.uniforms(purpose, 1)[:, 0]

    def uniforms(self, purpose: str, n: int) -> Array:
        """`n` numbers per run, shape (runs, n)."""
        return uniforms(self.seeds, purpose, self.round, n=n)

    def client_uniforms(self, purpose: str, run: Ints, client: Ints, n: int) -> Array:
        """Return `n` numbers for each slot, shape (slots, n), keyed by seed, round and client."""
        return uniforms(self.seeds[run], purpose, self.round, client, n=n)


def philox(
    counter: list[NDArray[np.uint64]], key: list[NDArray[np.uint64]]
) -> list[NDArray[np.uint64]]:
    """Philox 4x32-10: four 32-bit words (in uint64 arrays) from four of counter and two of key."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        product0, product1 = c0 * _M0, c2 * _M1
        c0, c1 = (product1 >> _SHIFT) ^ c1 ^ k0, product1 & _MASK
        c2, c3 = (product0 >> _SHIFT) ^ c3 ^ k1, product0 & _MASK
        k0, k1 = (k0 + _W0) & _MASK, (k1 + _W1) & _MASK
    return [c0, c1, c2, c3]


_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_SHIFT, _MASK = np.uint64(32), np.uint64(0xFFFFFFFF)


@cache
def _word(purpose: str) -> int:
    return int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:4], "little")
