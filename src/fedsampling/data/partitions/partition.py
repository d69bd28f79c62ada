"""The base class of partitions, and the natural clients: by writer or role, with LEAF's steps.

A partition is a record of settings that distributes samples over clients.  Adding a file with such
a class to this folder registers it.

References
----------
Caldas et al.: LEAF: a benchmark for federated settings. arXiv 1812.01097, and the utilities of
its public repository (sample, remove_users, split_data), whose rules the natural clients follow:
group samples by owner, sample clients, drop clients with few samples, split each client's samples.
"""

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from fedsampling.base.errors import InputError
from fedsampling.base.families import Named
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.samples import Samples
from fedsampling.data.shares import (
    Importance,
    Shares,
    clients,
    random_ranks,
    ranks,
    select,
    starts,
    take,
)

Variant = Literal["text", "code"]  # as in the paper, or as in the authors' code


class Partition(Named, package="fedsampling.data.partitions"):
    """The settings of a partition."""

    needs_writers: ClassVar[bool] = False  # whether it uses the writer of each sample
    needs_tests: ClassVar[bool] = False  # whether it also assigns test samples to clients

    @property
    def max_clients(self) -> int | None:
        """Upper bound on the number of clients; None if the settings do not determine it."""
        return getattr(self, "clients", None)

    def share_out(self, samples: Samples, seed: int, importance: Importance) -> FederatedDataset:
        """Assign the samples, with writers if the partition `needs_writers`, to clients."""
        raise NotImplementedError


class LabelPartition(Partition):
    """A partition that uses no information about samples except their labels."""


def by_owner(owner: ArrayLike) -> Shares:
    """Make each owner a client, in ascending order of owners' numbers; rows in file order.

    `owner`, shape (N,): writer, role or other owner of each row.  Client k is owner
    ``owner[index[start[k]]]``.
    """
    _, sizes = np.unique(np.asarray(owner), return_counts=True)
    return np.argsort(np.asarray(owner), kind="stable"), starts(sizes)


def at_least(shares: Shares, minimum: int) -> Shares:
    """Return the clients with `minimum` or more samples.

    LEAF's documentation calls its option -k the "minimum number of samples per user", but its code
    requires more than k samples: its -k 100 is a `minimum` of 101 here.
    """
    sizes = np.diff(shares[1])
    return _checked(take(shares, np.flatnonzero(sizes >= minimum)), f"min_samples: {minimum}")


def sample_clients(shares: Shares, fraction: float, rng: np.random.Generator) -> Shares:
    """Draw clients in random order until they hold `fraction` of all samples (LEAF's niid).

    As in LEAF, the last client contributes only its first samples, as many as are still needed.
    LEAF seeds this draw with the time of day, so its clients cannot be reproduced; here, `rng`
    determines them.

    `fraction`: above 0 and at most 1; with 1, only the order of the clients is random. Returns
    clients in the order of the draw, so that a smaller fraction gives a prefix of it.
    """
    index, start = shares
    count = int(fraction * len(index))
    if count < 1:
        raise InputError(f"fraction: {fraction} of {len(index):,} samples is none; increase it")
    drawn = take(shares, rng.permutation(len(start) - 1))
    return drawn[0][:count], np.unique(np.minimum(drawn[1], count))


def split(
    shares: Shares, fraction: float, gap: int = 0, rng: np.random.Generator | None = None
) -> tuple[Shares, Shares]:
    """Split each client's samples into training and test.

    Of n samples, ⌊fraction n⌋, at least 1, are for training.  The next `gap` samples are left out,
    so that windows of a text do not overlap across the split (79 for LEAF's windows of 80
    characters).  The remaining samples are tests.  Clients without a test are dropped: with a gap
    of 79, clients with fewer than 396 samples at 0.8, and fewer than 791 at 0.9.

    `fraction`: strictly between 0 and 1. `rng`: draws the training samples, as LEAF does for
    images.  If None, the first samples are for training, as in LEAF's Shakespeare. Returns `train`,
    `test`: the same clients in both.
    """
    sizes = np.diff(shares[1])
    train_sizes = np.maximum(1, (fraction * sizes).astype(np.int64))
    fits = np.flatnonzero(sizes > train_sizes + gap)
    selected = _checked(take(shares, fits), f"train, gap: {fraction} and {gap}")
    train_sizes = train_sizes[fits][clients(selected)]
    rank = ranks(selected) if rng is None else random_ranks(selected, rng)
    return select(selected, rank < train_sizes), select(selected, rank >= train_sizes + gap)


def _checked(shares: Shares, settings: str) -> Shares:
    if len(shares[1]) < 2:
        raise InputError(f"{settings} leave no client with enough samples; require fewer")
    return shares
