"""Unbalanced versions of balanced clients: the three datasets of Chen et al. 2022.

Federated EMNIST is well balanced, so the authors "modify it by removing some clients or some of
their training images".  They published the three files, but neither the procedure nor its
parameters.  They state only the files' shares: about 10 % of the clients hold about 82 % of the
data, 20 % hold 90 %, 50 % hold 98 %.  The procedure here matches these shares; it also unbalances
other data in the same way.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fedsampling.base.records import Positive, hashed_if_set
from fedsampling.base.streams import stream
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.partition import Partition, by_owner, sample_clients
from fedsampling.data.samples import Samples, first_clients, gather
from fedsampling.data.shares import Importance, Shares, clients, random_ranks, select

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


def unbalance(shares: Shares, s: float, a: int, b: int, rng: np.random.Generator) -> Shares:
    """Keep round(s n) random clients unchanged; reduce the others to a, ..., b samples.

    The remaining samples of a client are random.  Clients with fewer samples keep all of them.

    Clients and their rows stay in their order.

    References: Chen, Horváth, Richtárik: Optimal client sampling for federated learning. TMLR 2022;
    the section on experiments (Figure 1), and the notes in the repository of its datasets.
    """
    index, start = shares
    n = len(start) - 1
    limit = rng.integers(a, b, n, endpoint=True)
    limit[rng.permutation(n)[: round(s * n)]] = len(index)
    return select(shares, random_ranks(shares, rng) < limit[clients(shares)])


class ByWriter(Partition, name="by_writer"):
    """A client for each writer."""

    needs_writers: ClassVar[bool] = True

    unbalance: Number | None = Field(
        default=None, description="imbalance, as in chen2022optimal's datasets; null: unchanged"
    )
    clients: Positive | None = hashed_if_set(None, "number of writers, drawn at random; null: all")

    def share_out(self, samples: Samples, seed: int, importance: Importance) -> FederatedDataset:
        """Make each writer a client, with its name if it has one; all share the test samples."""
        assert samples.writer is not None
        train = by_owner(samples.writer)
        if self.clients is not None:
            shuffled = sample_clients(train, 1.0, stream(seed, "data.writers"))
            train = first_clients(shuffled, self.clients)
        if self.unbalance is not None:
            chosen, rng = SETS[self.unbalance], stream(seed, "data.unbalance")
            train = unbalance(train, chosen.s, chosen.a, chosen.b, rng)
        data = gather(samples, train, None, importance)
        if samples.names is None:
            return data
        index, start = train
        owner = samples.writer[index[start[:-1]]]
        return replace(data, names=tuple(samples.names[owner].tolist()))
