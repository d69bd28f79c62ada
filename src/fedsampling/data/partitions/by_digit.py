"""One label per client: the first dataset of fraboni2021clustered.

"100 clients where each one has 500 training and 100 testing samples composed by one digit only.
Each digit is owned by 10 clients, every client has the same number of samples."
"""

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from fedsampling.base.arrays import Ints
from fedsampling.base.errors import InputError
from fedsampling.base.records import Positive
from fedsampling.base.streams import stream
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.partition import LabelPartition, Variant
from fedsampling.data.partitions.shares import Importance, Shares, starts, take
from fedsampling.data.samples import Samples, gather

TRAIN = 500
TEST = {"text": 100, "code": 80}


class ByDigit(LabelPartition, name="by_digit"):
    """Clients with one label each, fraboni2021clustered."""

    needs_tests: ClassVar[bool] = True

    clients_per_label: Positive = 10
    variant: Variant = Field("text", description="as in the paper, or as in the authors' code")
    order: Literal["label", "shuffled"] = Field(
        "label",
        description="numbering of the clients; samplers may break ties by number",
        exclude_if=lambda order: order == "label",  # keeps the hashes of earlier runs
    )

    @property
    def max_clients(self) -> int:
        """Upper bound: clients_per_label for each of ten labels."""
        return 10 * self.clients_per_label

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
    """Assign samples of one label to every client.

    Client ``c * clients_per_label + j`` has label c.

    Every client has 500 training samples.  If the rarest label has too few (not on MNIST), every
    client has the largest number that all can have.  No sample is used twice.

    The paper's 100 test samples per client do not exist: MNIST has 892 fives for ten clients.
    Variants:

    ``"text"``
        Random samples; at most 100 tests per client, or an equal share of the label's tests (89 or
        90 for a five, 100 for a one).
    ``"code"``
        As in the authors' public code: samples in file order, 80 tests per client.

    `labels_test`, shape (T,). `labels`, shape (N,): training labels; labels are 0 to C - 1.
    `clients_per_label`: 10 in the paper. `order`: ``"shuffled"`` numbers the clients at random.
    With ``"label"``, a sampler that breaks ties by client number, as Algorithm 1 does for clients
    of equal size, groups clients by label, although no server knows the labels. Returns `train`,
    `test`: C * clients_per_label clients.

    References: Fraboni, Vidal, Kameni, Lorenzi: Clustered sampling. ICML 2021, section 6.
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
