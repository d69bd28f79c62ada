"""Quadratic: linear regression, each client with its own features and its own test set.

The setting `data` has no effect: the paper itself generates the data.

References
----------
Harshvardhan, Yu, Šimunić Rosing, Mazumdar: Client Selection in Federated Learning with Data
Heterogeneity and Network Latencies. 2025 (arXiv 2504.01921), sections 3 and 7.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Array
from fedsampling.base.records import Positive, PositiveFloat, Range
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import NetworkData
from fedsampling.data.federated import FederatedDataset


class Quadratic(NetworkData, name="quadratic", title="Quadratic"):
    """Linear regression with heterogeneous features, Harshvardhan et al. 2025, section 3."""

    clients: Positive = Field(100, description="m")
    samples: Positive = Field(100, description="n, of each client")
    tests: Positive = Field(20, description="of each client")
    dimension: Positive = Field(500, description="d")
    eigenvalues: Range = Field((1.0, 10.0), description="range of the covariances' eigenvalues")
    noise: PositiveFloat = Field(0.001, description="standard deviation")
    iid: bool = Field(False, description="one covariance for all clients")

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Draw y = ⟨w*, x⟩ + ζ for all clients.

        All covariances have the same eigenvectors (Haar).  The eigenvalues of each are uniform on
        `eigenvalues`.  The coordinates of w* are 0 or 1 with probability ½ each.

        Returns x float32 of shape (m n, d), y float64, p_k = 1/m, `tests` test samples of each
        client.
        """
        m, d = self.clients, self.dimension
        w_star = (stream(seed, "data.model").random(d) < 0.5).astype(np.float64)
        rng = stream(seed, "data.features")
        axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
        spread = np.sqrt(rng.uniform(*self.eigenvalues, (m, 1, d)))
        if self.iid:
            spread = np.broadcast_to(spread[:1], spread.shape)
        disturbance = stream(seed, "data.noise")

        def drawn(count: int) -> tuple[NDArray[np.float32], Array]:
            x = ((rng.standard_normal((m, count, d)) * spread) @ axes.T).reshape(m * count, d)
            y = x @ w_star + self.noise * disturbance.standard_normal(m * count)
            return x.astype(np.float32), y

        x, y = drawn(self.samples)
        x_test, y_test = drawn(self.tests)
        start, start_test = (np.arange(m + 1) * count for count in (self.samples, self.tests))
        p = np.full(m, 1 / m)
        return FederatedDataset("quadratic", x, y, start, p, x_test, y_test, start_test=start_test)
