"""The base class of partitions: a record of settings that distributes samples over clients.

Adding a file with such a class to this folder registers the partition.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from fedsampling.base.families import Named
from fedsampling.base.streams import stream
from fedsampling.data.federated import (
    FederatedDataset,
    Importance,
    Samples,
    Shares,
    clients,
    random_ranks,
    select,
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
        """Assign the samples to clients.

        `samples`: samples, with writers if the partition `needs_writers`.
        """
        raise NotImplementedError


class LabelPartition(Partition):
    """A partition that uses no information about samples except their labels."""


# Unbalanced versions of balanced clients: the three datasets of Chen et al. 2022.
#
# Federated EMNIST is well balanced, so the authors "modify it by removing some clients or some of
# their training images".  They published the three files, but neither the procedure nor its
# parameters.  They state only the files' shares: about 10 % of the clients hold about 82 % of the
# data, 20 % hold 90 %, 50 % hold 98 %.  The procedure here matches these shares; it also unbalances
# other data in the same way.


Number = Literal[1, 2, 3]  # of the authors' dataset


@dataclass(frozen=True)
class Unbalancing:
    """Parameters for one dataset, and the share that it should match.

    `s`: fraction of the clients that keep all their samples. `a`, `b`: the other clients keep a
    number drawn uniformly from a, ..., b. `share`: published fraction of all samples that this
    fraction s of the clients holds.
    """

    s: float
    a: int
    b: int
    share: float


# Our choice.  With an average of 101 samples per client (EMNIST digits), the other clients should
# keep 2.5, 2.8 and 2.1 samples on average; these keep 2.5, 3 and 2: shares 81.8, 89.4, 98.1 %.
SETS = {
    1: Unbalancing(0.1, 1, 4, 0.82),
    2: Unbalancing(0.2, 1, 5, 0.90),
    3: Unbalancing(0.5, 1, 3, 0.98),
}


def unbalanced(shares: Shares, number: Number, seed: int) -> Shares:
    """Unbalance clients like the dataset with this number."""
    chosen = SETS[number]
    return unbalance(shares, chosen.s, chosen.a, chosen.b, stream(seed, "data.unbalance"))


def unbalance(shares: Shares, s: float, a: int, b: int, rng: np.random.Generator) -> Shares:
    """Keep round(s n) random clients unchanged; reduce the others to a, ..., b samples.

    The remaining samples of a client are random.  Clients with fewer samples keep all of them.

    `shares`: balanced partition of n clients. `s`: fraction in [0, 1]. `a`, `b`: 1 <= a <= b.
    Returns the same n clients in the same order; rows of each client stay in their order.

    References: Chen, Horváth, Richtárik: Optimal client sampling for federated learning. TMLR 2022;
    the section on experiments (Figure 1), and the notes in the repository of its datasets.
    """
    index, start = shares
    n = len(start) - 1
    limit = rng.integers(a, b, n, endpoint=True)
    limit[rng.permutation(n)[: round(s * n)]] = len(index)
    return select(shares, random_ranks(shares, rng) < limit[clients(shares)])
