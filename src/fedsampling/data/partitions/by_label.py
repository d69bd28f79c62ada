"""Clients with one label each, or with label shares from a Dirichlet distribution.

:class:`ByDigit` is the first dataset of Fraboni et al. 2021: "100 clients where each one has 500
training and 100 testing samples composed by one digit only. Each digit is owned by 10 clients,
every client has the same number of samples."

:class:`Dirichlet` has the partitions that two papers describe, with symmetric distributions
Dir(alpha 1): fixed client sizes, or all data.  In contrast, ``label_skew`` draws around the labels'
shares in the data and uses each sample once.

References
----------
Fraboni, Vidal, Kameni, Lorenzi: Clustered sampling. ICML 2021, section 6 and appendix D.
Hsu, Qi, Brown: Measuring the effects of non-identical data distribution for federated visual
classification. arXiv 1909.06335, section 3 (Dirichlet distribution around the prior).
Harshvardhan et al.: Client selection in federated learning with data heterogeneity and network
latencies. arXiv 2504.01921, section 6 (alpha = 2; client sizes are not specified).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError
from fedsampling.base.records import Positive, PositiveFloat, hashed_if_set
from fedsampling.base.streams import stream
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.partition import LabelPartition, Variant
from fedsampling.data.samples import SMALLER, Samples, gather
from fedsampling.data.shares import Importance, Shares, rounded, starts, take

TRAIN = 500
TEST = {"text": 100, "code": 80}


class ByDigit(LabelPartition, name="by_digit"):
    """Clients with one label each, Fraboni et al. 2021."""

    needs_tests: ClassVar[bool] = True

    clients_per_label: Positive = 10
    variant: Variant = Field(
        default="text", description="as in the paper, or as in the authors' code"
    )
    order: Literal["label", "shuffled"] = hashed_if_set(
        "label", "numbering of the clients; samplers may break ties by number"
    )

    def share_out(self, samples: Samples, seed: int, importance: Importance) -> FederatedDataset:
        """Assign samples of one label to every client."""
        rng = stream(seed, "data.by_digit")
        train, test = by_digit(
            samples.y, samples.y_test, self.clients_per_label, self.variant, rng, self.order
        )
        return gather(samples, train, test, importance)


def by_digit(
    labels: ArrayLike,
    labels_test: ArrayLike,
    clients_per_label: int,
    variant: Literal["text", "code"],
    rng: np.random.Generator,
    order: Literal["label", "shuffled"] = "label",
) -> tuple[Shares, Shares]:
    """Assign samples of one label to every client; ``c * clients_per_label + j`` has label c.

    Every client has 500 training samples.  If the rarest label has too few (not on MNIST), every
    client has the largest number that all can have.  No sample is used twice.

    The paper's 100 test samples per client do not exist: MNIST has 892 fives for ten clients.
    Variants:

    ``"text"``
        Random samples; at most 100 tests per client, or an equal share of the label's tests (89 or
        90 for a five, 100 for a one).
    ``"code"``
        As in the authors' public code: samples in file order, 80 tests per client.

    `order`: ``"shuffled"`` numbers the clients at random.  With ``"label"``, a sampler that breaks
    ties by client number, as Algorithm 1 does for clients of equal size, groups clients by label,
    although no server knows the labels.
    """
    y, y_test = np.asarray(labels, np.int64), np.asarray(labels_test, np.int64)
    classes = max(y.max(initial=-1), y_test.max(initial=-1)) + 1
    n = clients_per_label
    stock = int(np.bincount(y, minlength=classes).min())
    stock_test = np.bincount(y_test, minlength=classes)
    limit = min(stock, int(stock_test.min()))
    if not 1 <= n <= limit:
        raise InputError(
            f"clients_per_label: {n} clients cannot each have a training and a test sample of "
            f"every label; use 1 to {limit}"
        )
    sizes = np.full(classes * n, min(TRAIN, stock // n))
    if variant == "code":
        sizes_test = np.full(classes * n, min(TEST["code"], stock_test.min() // n))
        train, test = _in_order(y, sizes, None), _in_order(y_test, sizes_test, None)
    else:
        tests = np.minimum(stock_test, TEST["text"] * n)
        sizes_test = (tests[:, None] // n + (np.arange(n) < tests[:, None] % n)).ravel()
        train, test = _in_order(y, sizes, rng), _in_order(y_test, sizes_test, rng)
    if order == "label":
        return train, test
    chosen = rng.permutation(classes * n)
    return take(train, chosen), take(test, chosen)


def _in_order(labels: Ints, sizes: Ints, rng: np.random.Generator | None) -> Shares:
    """Assign each label's rows, in file order or shuffled, to its clients one after another."""
    rows = np.arange(len(labels)) if rng is None else rng.permutation(len(labels))
    rows = rows[np.argsort(labels[rows], kind="stable")]
    first = starts(np.bincount(labels))[:-1]
    totals = sizes.reshape(len(first), -1).sum(1)
    chosen = [rows[begin : begin + total] for begin, total in zip(first, totals, strict=True)]
    return np.concatenate(chosen), starts(sizes)


class Dirichlet(LabelPartition, name="dirichlet"):
    """Clients of fixed sizes with label shares from Dir(α), Fraboni et al. 2021."""

    needs_tests: ClassVar[bool] = True

    alpha: PositiveFloat
    groups: Annotated[list[tuple[Positive, Positive]], Field(min_length=1)] = Field(
        default=[(10, 100), (30, 250), (30, 500), (20, 750), (10, 1000)],
        description="number of clients and training samples of each; tests are a fifth",
    )
    variant: Variant = Field(
        default="text", description="as in the paper, or as in the authors' code"
    )

    @property
    def max_clients(self) -> int:
        """Total number of clients in all groups."""
        return sum(clients for clients, _ in self.groups)

    def share_out(self, samples: Samples, seed: int, importance: Importance) -> FederatedDataset:
        """Draw label shares, then samples with these labels; stand-ins have smaller clients."""
        sizes = grouped_sizes(self.groups)
        if not samples.inputs:
            sizes = np.maximum(1, sizes // SMALLER)
        rng = stream(seed, "data.dirichlet")
        train, test = dirichlet(
            samples.y, samples.y_test, sizes, sizes // 5, self.alpha, self.variant, rng
        )
        return gather(samples, train, test, importance)


class AllByDirichlet(LabelPartition, name="all_by_dirichlet"):
    """All samples, over clients whose label shares follow Dir(α), Harshvardhan et al. 2025."""

    clients: Positive
    alpha: PositiveFloat

    def share_out(self, samples: Samples, seed: int, importance: Importance) -> FederatedDataset:
        """Assign every training sample to a client; the test set is common."""
        rng = stream(seed, "data.all_by_dirichlet")
        return gather(
            samples, all_by_dirichlet(samples.y, self.clients, self.alpha, rng), None, importance
        )


def grouped_sizes(groups: Sequence[tuple[int, int]]) -> Ints:
    """Expand (number of clients, samples of each) to one size per client, shape (n,)."""
    numbers, sizes = np.array(groups, np.int64).T
    return np.repeat(sizes, numbers)


def dirichlet(
    labels: ArrayLike,
    labels_test: ArrayLike,
    sizes: ArrayLike,
    sizes_test: ArrayLike,
    alpha: float,
    variant: Literal["text", "code"],
    rng: np.random.Generator,
) -> tuple[Shares, Shares]:
    """Assign samples to clients of fixed sizes, training and test by the same label shares.

    Client k's label shares are q_k ~ Dir(alpha 1), drawn once.  Variants:

    ``"text"``
        Numbers of samples by largest remainders.  No image is used twice until its label is
        exhausted.  Small alphas require more samples of a label than exist (in the paper's Figure
        5, too, labels have very unequal totals).  Then the numbers of uses of its images differ by
        at most one, and a client uses an image twice only if it requires more than exist.
    ``"code"``
        As in the authors' public code: ⌊q_kc n_k⌋ samples of every label except the last, which
        gets the remainder (at alpha = 10, 11 % of all samples instead of 10 %); images are drawn
        uniformly with replacement.

    Labels are 0 to C - 1. `sizes`, `sizes_test`, shape (n,): n_k, and the clients' numbers of test
    samples. `alpha`: towards 0 one label per client, towards infinity equal shares. Returns
    `train`, `test`: each client's rows label after label.
    """
    y, y_test = np.asarray(labels, np.int64), np.asarray(labels_test, np.int64)
    N, N_test = np.asarray(sizes, np.int64), np.asarray(sizes_test, np.int64)
    classes = _classes(y)
    if _classes(y_test) != classes:
        raise InputError("labels: training and test samples have different labels; fix the files")
    q = rng.dirichlet(np.full(classes, alpha), len(N))
    count, draw = (rounded, _draw_each_once) if variant == "text" else (_cut, _draw_any)
    train, tests = (count(q * totals[:, None], totals) for totals in (N, N_test))
    return draw(y, train, rng), draw(y_test, tests, rng)


def all_by_dirichlet(labels: ArrayLike, n: int, alpha: float, rng: np.random.Generator) -> Shares:
    """Assign all samples to n clients whose label shares follow Dir(alpha 1).

    With shares q_k ~ Dir(alpha 1), every label's samples are dealt in proportion to the clients'
    q_kc, by largest remainders.  Each sample is used once, so client sizes are random, about N / n.
    A client's label shares are its drawn shares times a factor per label, N_c / Σ_k q_kc, the same
    for all clients.

    For clients of equal size, ``label_skew(labels, sizes, C * alpha, rng)`` is the most similar
    partition with C equally frequent labels.

    Labels are 0 to C - 1. Returns each client's rows label after label.
    """
    y = np.asarray(labels, np.int64)
    q = rng.dirichlet(np.full(_classes(y), alpha), n)
    # If alpha is near 0, all shares of a label may be 0; it is then divided equally.
    weight = np.where(q.sum(0) > 0, q, 1.0)
    stock = np.bincount(y)
    counts = rounded((weight / weight.sum(0)).T * stock[:, None], stock).T
    if (counts.sum(1) == 0).any():
        raise InputError(
            f"alpha: with {alpha} some of {n} clients get no sample; "
            "give a larger alpha or fewer clients"
        )
    return _draw_each_once(y, counts, rng)


def _cut(exact: Array, totals: Ints) -> Ints:
    """Round down; the last label gets the remainder."""
    counts = exact.astype(np.int64)
    counts[:, -1] = totals - counts[:, :-1].sum(1)
    return counts


def _draw_each_once(labels: Ints, counts: Ints, rng: np.random.Generator) -> Shares:
    """Assign rows client by client; each label's rows have a random order, repeated if used up."""
    stock = np.bincount(labels, minlength=counts.shape[1])
    rows = rng.permutation(len(labels))
    rows = rows[np.argsort(labels[rows], kind="stable")]
    before = np.cumsum(counts, axis=0) - counts  # assigned to earlier clients
    label = _requested_labels(counts)
    rank = np.arange(len(label)) - np.repeat(starts(counts.ravel())[:-1], counts.ravel())
    place = (np.repeat(before.ravel(), counts.ravel()) + rank) % stock[label]
    return rows[starts(stock)[label] + place], starts(counts.sum(1))


def _draw_any(labels: Ints, counts: Ints, rng: np.random.Generator) -> Shares:
    """Draw each row uniformly, with replacement, from all rows of its label."""
    stock = np.bincount(labels, minlength=counts.shape[1])
    rows = np.argsort(labels, kind="stable")
    label = _requested_labels(counts)
    return rows[starts(stock)[label] + rng.integers(stock[label])], starts(counts.sum(1))


def _requested_labels(counts: Ints) -> Ints:
    n, classes = counts.shape
    return np.repeat(np.tile(np.arange(classes), n), counts.ravel())


def _classes(labels: Ints) -> int:
    stock = np.bincount(labels)
    if not stock.all():
        missing = np.flatnonzero(stock == 0).tolist()
        raise InputError(f"labels: no sample has label {missing}; number the labels from 0 up")
    return len(stock)
