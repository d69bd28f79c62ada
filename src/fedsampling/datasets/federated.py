"""What every dataset becomes before training: pooled samples, cut into clients.

A loader of this package reads or generates arrays, a partition decides who owns what, and the
result is one :class:`FederatedDataset`; nothing after it knows where the samples came from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class FederatedDataset:
    """Samples of all clients, pooled so that client k owns rows ``start[k]:start[k + 1]``.

    Parameters
    ----------
    name : str
        For provenance, such as ``"ijcnn1"``.
    x : float64 array, shape (total, M)
        Features of the training samples, client after client.
    y : float64 array, shape (total,)
        Targets, or labels -1 and +1.
    start : int64 array, shape (n + 1,)
        Begins with 0, ends with total, rises strictly: no client is empty.
    p : float64 array, shape (n,)
        Importance of each client in the objective; sums to 1.
    x_test : float64 array, shape (tests, M)
        May have no rows.
    y_test : float64 array, shape (tests,)
    unverified : bool
        Whether some file could not be compared with its publisher's checksum.
    inputs : mapping of str to str
        The files read, by name, with the SHA-256 of their content; empty for generated data.

    Raises
    ------
    ValueError
        If the parts do not fit together: a loader's or partition's mistake, not a user's.
    """

    name: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    start: NDArray[np.int64]
    p: NDArray[np.float64]
    x_test: NDArray[np.float64]
    y_test: NDArray[np.float64]
    unverified: bool = False
    inputs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        faults = [
            *_sample_faults("x", self.x, "y", self.y),
            *_sample_faults("x_test", self.x_test, "y_test", self.y_test),
            *_client_faults(self.start, self.p, len(self.x)),
        ]
        if not faults and self.x.shape[1] != self.x_test.shape[1]:
            faults.append("x and x_test differ in their number of features")
        if faults:
            raise ValueError(f"dataset {self.name}: " + "; ".join(faults))

    @property
    def n_clients(self) -> int:
        """Number of clients n."""
        return len(self.p)

    @property
    def n_samples(self) -> NDArray[np.int64]:
        """Number of training samples of each client, shape (n,)."""
        return np.diff(self.start)


def _sample_faults(
    x_name: str, x: NDArray[np.float64], y_name: str, y: NDArray[np.float64]
) -> list[str]:
    if x.dtype != np.float64 or y.dtype != np.float64:
        return [f"{x_name} and {y_name} must be float64, not {x.dtype} and {y.dtype}"]
    if x.ndim != 2 or y.shape != x.shape[:1]:
        return [f"{x_name} {x.shape} and {y_name} {y.shape} must be (samples, M) and (samples,)"]
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return [f"{x_name} and {y_name} must be finite"]
    return []


def _client_faults(start: NDArray[np.int64], p: NDArray[np.float64], total: int) -> list[str]:
    faults = []
    if start.dtype != np.int64 or start.ndim != 1 or len(start) < 2:
        return ["start must be a vector of int64 with an end for every client"]
    if start[0] != 0 or start[-1] != total or not (np.diff(start) > 0).all():
        faults.append(f"start must rise strictly from 0 to {total}")
    if p.dtype != np.float64 or p.shape != (len(start) - 1,):
        faults.append(f"p must be float64 of shape ({len(start) - 1},), not {p.dtype} {p.shape}")
    elif not (p >= 0).all() or abs(p.sum() - 1) > 1e-9:
        faults.append("p must be non-negative and sum to 1")
    return faults
