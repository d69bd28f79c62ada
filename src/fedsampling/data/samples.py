"""Samples as read from files, before a partition makes them a federated dataset.

Steps: verified files -> a reader -> :class:`Samples` -> a partition's
:data:`~fedsampling.data.shares.Shares` (the rows of each client), or only its
:func:`first_clients` -> :func:`gather`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Ints
from fedsampling.base.errors import InputError
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.shares import Importance, Shares, importances, take

SMALLER = 10  # factor by which stand-ins are smaller; also divides fixed client sizes


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples in the order of their files."""

    name: str  # for provenance, such as ``"mnist"``
    # shape (N, ...): training samples as stored: bytes remain uint8, and the loader scales them
    x: NDArray[Any]
    y: NDArray[Any]  # shape (N,): labels in [0, classes)
    x_test: NDArray[Any]  # shape (T, ...): of the type and sample shape of `x`; may have no rows
    y_test: NDArray[Any]  # shape (T,)
    classes: int | None  # number of labels; None if `y` has the targets of a regression, as float64
    # shape (N,): owner of each training sample (writer, role, client of the publisher)
    writer: Ints | None = None
    writer_test: Ints | None = None  # shape (T,): same numbering as `writer`
    # whether some file could not be compared with its publisher's checksum
    unverified: bool = False
    # the files read, by name, with the SHA-256 of their content; empty for generated data
    inputs: Mapping[str, str] = field(default_factory=dict)
    # the owners' names in the order of their numbers; None if they have none
    names: NDArray[Any] | None = None


def gather(
    samples: Samples, train: Shares, test: Shares | None, importance: Importance
) -> FederatedDataset:
    """Collect each client's rows in a :class:`FederatedDataset`.

    `train`: rows of ``samples.x``, at least one per client. `test`: rows of ``samples.x_test`` of
    the same clients; None for one common test set.
    """
    index, start = train
    rows = slice(None) if test is None else test[0]
    return FederatedDataset(
        name=samples.name,
        x=samples.x[index],
        y=samples.y[index],
        start=start,
        p=importances(start, importance),
        x_test=samples.x_test[rows],
        y_test=samples.y_test[rows],
        unverified=samples.unverified,
        inputs=samples.inputs,
        start_test=None if test is None else test[1],
        classes=samples.classes,
    )


def first_clients(shares: Shares, clients: int | None) -> Shares:
    """Return the first clients, or all; a smaller number gives a prefix of a larger number's."""
    n = len(shares[1]) - 1
    if clients is None:
        return shares
    if not 1 <= clients <= n:
        raise InputError(f"clients: only {n} have enough samples; must be 1 to {n}")
    return take(shares, np.arange(clients))


def check_contents(name: str, checks: Mapping[str, bool]) -> None:
    """Raise an error with the phrases of the `checks` that are false."""
    lines = [
        f"{name}: the files do not have {phrase} as published; delete them and fetch them again"
        for phrase, passed in checks.items()
        if not passed
    ]
    if lines:
        raise InputError(*lines)
