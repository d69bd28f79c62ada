"""Clients of unequal size whose label shares differ.

:func:`sizes` draws client sizes from their smallest and largest value and their total.
Rizk et al. 2022 states nothing else for ijcnn1: 35,000 samples, 100 agents, N_k "from 79 to
688".
"""

import numpy as np
from numpy.typing import ArrayLike

from fedsampling.base.arrays import Ints
from fedsampling.base.errors import InputError
from fedsampling.data.shares import rounded


def label_skew(labels: ArrayLike, sizes: ArrayLike, alpha: float, rng: np.random.Generator) -> Ints:
    """Assign samples so that each client's label shares follow a Dirichlet distribution.

    Client k's shares are q_k ~ Dirichlet(alpha * prior), where prior are the labels' shares in the
    data, and it requests multinomial(N_k, q_k) samples of each label.  For alpha to infinity this
    is IID; for alpha to 0 each client has one label.  Samples are used at most once.

    All requests together match the data only on average, so some labels run out.  Requests are
    therefore served in random order over all clients; requests for an exhausted label get random
    remaining samples at the end.  This changes the distribution in the same way for all clients:
    requests for a scarce label shrink by the same factor.  (If clients were served in turn, the
    last clients would differ most: of 100 clients with 10 % positives and alpha = 100, one would
    get 90 %.)  If all samples are used, the shares averaged over clients with weights N_k are
    exactly the prior.

    `labels`: any values that can be sorted. `sizes`, shape (K,): N_k. If the sizes sum to less than
    the number of samples, randomly chosen samples stay unused. Returns row numbers, shape (sum of
    sizes,): the first N_1 belong to client 1, and so on, in random order within each client.
    """
    label = np.unique(np.asarray(labels), return_inverse=True)[1]
    N = np.asarray(sizes, np.int64)
    prior = np.bincount(label) / len(label)
    counts = rng.multinomial(N, rng.dirichlet(alpha * prior, len(N)))
    requests = np.repeat(np.tile(np.arange(len(prior)), len(N)), counts.ravel())
    index = _served(requests, label, rng)
    client = np.repeat(np.arange(len(N)), N)
    return index[np.lexsort([rng.random(len(index)), client])]


def _served(requests: Ints, label: Ints, rng: np.random.Generator) -> Ints:
    """Return a row for each request, with the requested label until it is exhausted."""
    index = np.empty(len(requests), np.int64)
    gaps, unused = [], []
    for c in range(label.max() + 1):
        positions = rng.permutation(np.flatnonzero(requests == c))
        stock = rng.permutation(np.flatnonzero(label == c))
        served = min(len(positions), len(stock))
        index[positions[:served]] = stock[:served]
        gaps.append(positions[served:])
        unused.append(stock[served:])
    gap = np.concatenate(gaps)
    index[gap] = rng.permutation(np.concatenate(unused))[: len(gap)]
    return index


def sizes(total: int, K: int, low: int, high: int, rng: np.random.Generator) -> Ints:
    """Draw K sizes that sum to `total`, with minimum exactly `low` and maximum exactly `high`.

    One client has `low` and one has `high` samples.  The other sizes are first independent and
    uniform on [low, high].  Then their distances to one end of the range are scaled by the factor
    that gives the total, and rounded by largest remainders.  Clients get the sizes in random order.
    """
    fewest, most = high + (K - 1) * low, low + (K - 1) * high
    if K < 1 or not (1 <= low <= high and fewest <= total <= most):
        raise InputError(
            f"agents, smallest, largest: {K} agents with {low} to {high} samples each cannot hold "
            f"all {total:,} samples; change one of the three"
        )
    if low == high:
        return np.full(K, low, np.int64)
    remaining = total - low - high
    draws = rng.uniform(low, high, K - 2)
    if draws.sum() > remaining:
        draws = low + (draws - low) * (remaining - (K - 2) * low) / (draws - low).sum()
    elif draws.sum() < remaining:
        draws = high - (high - draws) * ((K - 2) * high - remaining) / (high - draws).sum()
    return rng.permutation(np.concatenate([rounded(draws, remaining), [low, high]]))
