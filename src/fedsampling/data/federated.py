"""The federated dataset: pooled samples, sorted by client.

A loader reads or generates arrays, a partition assigns them to clients, and the result is a
:class:`FederatedDataset`.  Training does not depend on the origin of the samples.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError
from fedsampling.data.shares import clients, random_ranks, starts


class ClientInfo(dict[str, NDArray[Any]]):
    """Properties of the clients by name, such as their energy; each an array of shape (n,)."""

    def __missing__(self, name: str) -> NDArray[Any]:
        known = ", ".join(self) or "none"
        raise InputError(f"client_info: no column {name!r}; known: {known}; add it to the table")


@dataclass(frozen=True, eq=False, repr=False)
class FederatedDataset:
    """Samples of all clients, pooled so that client k owns rows ``start[k]:start[k + 1]``.

    Parameters
    ----------
    name : str
        For provenance, such as ``"ijcnn1"``.
    x : array of numbers, shape (total, ...)
        Training samples, client after client, of any type and at least one axis each: feature
        vectors, images (uint8 as stored), token ids.
    y : float64 array, shape (total,), or int64 array, shape (total, ...)
        Targets or labels -1 and +1 as float64; class labels (for a sequence, one per step) as
        int64 in [0, classes).
    start : int64 array, shape (n + 1,)
        Starts with 0, ends with total, strictly increasing: no client is empty.
    p : float64 array, shape (n,)
        Importance of each client in the objective; sums to 1.
    x_test : array, shape (tests, ...)
        Of the type and sample shape of `x`; may have no rows.
    y_test : array, shape (tests, ...)
        Of the type and sample shape of `y`.
    unverified : bool
        Whether a file could not be compared with its publisher's checksum.
    inputs : mapping of str to str
        The files read, by name, with the SHA-256 of their content; empty for generated data.
    start_test : int64 array, shape (n + 1,), optional
        The test rows of client k are ``start_test[k]:start_test[k + 1]``, possibly none.  If None,
        the test set is common to all clients.
    classes : int, optional
        Number of labels; set if and only if `y` is int64.
    names : tuple, optional
        Names of the clients, text or numbers; if None, their numbers.
    info : ClientInfo
        Properties of the clients by name, each an array of shape (n,).

    Raises
    ------
    ValueError
        If the arrays are inconsistent: a bug of a loader or partition, not a user's error.
    """

    name: str
    x: NDArray[Any]
    y: NDArray[Any]
    start: Ints
    p: Array
    x_test: NDArray[Any]
    y_test: NDArray[Any]
    unverified: bool = False
    inputs: Mapping[str, str] = field(default_factory=dict)
    start_test: Ints | None = None
    classes: int | None = None
    names: tuple[Any, ...] | None = None
    info: ClientInfo = field(default_factory=ClientInfo)

    def __post_init__(self) -> None:
        if fault := _fault(self):
            raise ValueError(f"dataset {self.name}: {fault}")
        for name in ("x", "y", "start", "p", "x_test", "y_test"):  # users' code cannot change them
            view = getattr(self, name).view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    def __repr__(self) -> str:
        target = "regression" if self.classes is None else f"{self.classes} classes"
        return (
            f"<FederatedDataset {self.name!r}: {self.n_clients} clients, {len(self.x)} training "
            f"and {len(self.x_test)} test samples of shape {self.x.shape[1:]}, {target}>"
        )

    @property
    def n_clients(self) -> int:
        """Number of clients n."""
        return len(self.p)

    @property
    def input_type(self) -> str:
        """Conversion of stored samples for training: ``unit`` (x/255), ``tokens`` or ``raw``."""
        if np.issubdtype(self.x.dtype, np.floating):
            return "raw"
        return "unit" if self.x.ndim > 2 else "tokens"

    @property
    def n_samples(self) -> Ints:
        """Number of training samples of each client, shape (n,)."""
        return np.diff(self.start)

    def label_counts(self) -> Ints:
        """Count each client's training labels, shape (n, classes); needs `classes`."""
        if self.classes is None:
            raise ValueError(f"dataset {self.name}: its targets are not class labels")
        per_sample = self.y[0].size
        client = np.repeat(np.arange(self.n_clients), self.n_samples * per_sample)
        cell = client * self.classes + self.y.ravel()
        counts = np.bincount(cell, minlength=self.n_clients * self.classes)
        return counts.reshape(self.n_clients, self.classes).astype(np.int64)

    def describe(self) -> Mapping[str, int | float | str]:
        """Compute the statistics for the dataset's card.

        Returns clients: number, samples per client, share of all samples held by the largest tenth,
        smallest and largest p.  Samples: shape and type.  Class labels: number, median number of a
        client's labels, share of the commonest.  Tests: number and, if clients have their own,
        number per client.
        """
        statistics: dict[str, int | float | str] = {
            "clients": self.n_clients,
            "samples": len(self.x),
            **_spread("samples per client", self.n_samples),
            "share of the largest tenth": share_of_largest(self.n_samples, 0.1),
            "smallest p": float(self.p.min()),
            "largest p": float(self.p.max()),
            "sample shape": " x ".join(map(str, self.x.shape[1:])),
            "sample type": str(self.x.dtype),
        }
        if self.classes is not None:
            statistics |= {
                "classes": self.classes,
                "median labels of a client": float(np.median((self.label_counts() > 0).sum(1))),
            }
        counts = np.unique(self.y, return_counts=True)[1]
        if 10 * len(counts) <= self.y.size:  # labels repeat, measurements do not
            statistics["share of the commonest label"] = float(counts.max() / self.y.size)
        statistics["test samples"] = len(self.x_test)
        if self.start_test is not None:
            statistics |= _spread("test samples per client", np.diff(self.start_test))
        return statistics


def hold_out(
    data: FederatedDataset, share: float, rng: np.random.Generator, keep_owner: bool = False
) -> FederatedDataset:
    """Build a test set from a share of each client's training samples.

    `share`: rounded down for each client, so that every client keeps some samples. `rng`: chooses
    the samples. `keep_owner`: whether they remain their client's own; otherwise, the test set is
    common to all clients. Importances stay the same; the previous test set is dropped.
    """
    n_holdout = (share * data.n_samples).astype(np.int64)
    if not n_holdout.any():
        raise InputError(
            f"{share:g} of a client's samples, at most {data.n_samples.max()}, is less than one; "
            "increase it, or add samples"
        )
    all_rows = np.arange(len(data.x)), data.start
    holdout = random_ranks(all_rows, rng) < n_holdout[clients(all_rows)]
    return replace(
        data,
        x=data.x[~holdout],
        y=data.y[~holdout],
        start=starts(data.n_samples - n_holdout),
        x_test=data.x[holdout],
        y_test=data.y[holdout],
        start_test=starts(n_holdout) if keep_owner else None,
    )


def share_of_largest(sizes: Ints, fraction: float) -> float:
    """Return the share of all samples that the largest `fraction` of the clients hold.

    `sizes`, shape (n,). `fraction`: the number of clients is rounded and at least one.
    """
    count = max(1, round(fraction * len(sizes)))
    return float(np.sort(sizes)[-count:].sum() / sizes.sum())


def _spread(kind: str, sizes: Ints) -> Mapping[str, int | float]:
    return {
        f"fewest {kind}": int(sizes.min()),
        f"median {kind}": float(np.median(sizes)),
        f"most {kind}": int(sizes.max()),
    }


def _fault(data: FederatedDataset) -> str:
    """Return the first inconsistency of the arrays; empty if there is none."""
    x, y, start, p, classes = data.x, data.y, data.start, data.p, data.classes
    target = np.float64 if classes is None else np.int64
    for part, labels in ((x, y), (data.x_test, data.y_test)):
        if not (np.issubdtype(part.dtype, np.number) or part.dtype == np.bool_):
            return f"samples must be numbers, not {part.dtype}"
        if labels.dtype != target:
            return f"targets must be {target.__name__}, not {labels.dtype}"
        if part.ndim < 2 or len(part) != len(labels) or (classes is None and labels.ndim != 1):
            return f"samples {part.shape} and targets {labels.shape} do not fit together"
        is_alike = (part.dtype, part.shape[1:]) == (x.dtype, x.shape[1:])
        if not is_alike or labels.shape[1:] != y.shape[1:]:
            return "training and test samples differ in type or shape"
        if not (_finite(part) and _finite(labels)):
            return "samples and targets must be finite"
        if classes is not None and labels.size and not 0 <= labels.min() <= labels.max() < classes:
            return f"labels must lie in [0, {classes})"
    if p.dtype != np.float64 or p.ndim != 1 or not (p >= 0).all() or abs(p.sum() - 1) > 1e-9:
        return "p must be float64, non-negative and sum to 1"
    tests = np.zeros(len(start), np.int64) if data.start_test is None else data.start_test
    n_tests = 0 if data.start_test is None else len(data.x_test)
    for name, begin, total in (("start", start, len(x)), ("start_test", tests, n_tests)):
        if begin.dtype != np.int64 or begin.shape != (len(p) + 1,):
            return f"{name} must be int64 of shape ({len(p) + 1},)"
        if begin[0] != 0 or begin[-1] != total or (np.diff(begin) < 0).any():
            return f"{name} must rise from 0 to {total}"
    return "" if (np.diff(start) > 0).all() else "start must rise strictly: no client is empty"


def _finite(values: NDArray[Any]) -> bool:
    return not np.issubdtype(values.dtype, np.inexact) or bool(np.isfinite(values).all())
