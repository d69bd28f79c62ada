"""Data that the papers themselves generate; the setting `data` has no effect.

Synthetic(α, β) is classification in which models and features differ between clients; Quadratic is
linear, with features of each client's own.

References
----------
T. Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith: Federated Optimization in Heterogeneous Networks
(FedProx). MLSys 2020 (arXiv 1812.06127), section 5.1 and appendix C.1.  Sizes, tests and the
meaning of β = 0 follow the authors' ``generate_synthetic.py``.
Harshvardhan, Yu, Šimunić Rosing, Mazumdar: Client Selection in Federated Learning with Data
Heterogeneity and Network Latencies. 2025 (arXiv 2504.01921), sections 3 and 7 (Quadratic).
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.records import NotNegative, Positive, Range, Variance
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import NetworkData, PublishedData
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.partition import Variant, split
from fedsampling.data.samples import Samples, gather
from fedsampling.data.shares import starts

DIMENSION, CLASSES = 60, 10
SMALLEST = 50  # samples of a client
LOG_MEAN, LOG_DEVIATION = 4.0, 2.0  # of the log-normal law of the samples beyond these
TRAIN = 0.9  # share of a client's samples


class Synthetic(PublishedData, name="synthetic", title="Synthetic"):
    """Synthetic(α, β) of FedProx: each client has its own model and feature distribution.

    y = argmax(W_k x + b_k) with W_k, b_k ~ N(u_k, 1) and x ~ N(v_k, Σ), v_k ~ N(B_k, 1): α says
    how much models differ, β how much features do.  The paper's four sets are (0, 0), (0.5, 0.5),
    (1, 1) and IID.
    """

    alpha: NotNegative = Field(1.0, description="of u_k ~ N(0, α), the mean of client k's model")
    beta: NotNegative = Field(1.0, description="of B_k ~ N(0, β), the mean of its features' mean")
    iid: bool = Field(False, description="one model and one law of features; α and β are unused")
    clients: Positive = 30
    variant: Variant = Field(
        "text", description="α and β are variances (text), or standard deviations (code)"
    )

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Generate the clients; a tenth of each client's samples are its tests."""
        sizes = sample_sizes(self.clients, stream(seed, "data.sizes"))
        models, means = self._laws(seed)
        x, y = draw(models, means, sizes, stream(seed, "data.features"))
        shares = np.arange(len(y)), starts(sizes)
        samples = Samples(name="synthetic", x=x, y=y, x_test=x, y_test=y, classes=CLASSES)
        return gather(samples, *split(shares, TRAIN), self.importance)

    def _laws(self, seed: int) -> tuple[Array, Array]:
        rng = stream(seed, "data.model")
        if self.iid:
            model = rng.standard_normal((1, CLASSES, DIMENSION + 1))
            return model.repeat(self.clients, axis=0), np.zeros((self.clients, DIMENSION))
        deviations = np.array([self.alpha, self.beta])
        if self.variant == "text":
            deviations = np.sqrt(deviations)
        u, B = deviations[:, None] * rng.standard_normal((2, self.clients))
        models = u[:, None, None] + rng.standard_normal((self.clients, CLASSES, DIMENSION + 1))
        means = B[:, None] + rng.standard_normal((self.clients, DIMENSION))
        return models, means


def sample_sizes(clients: int, rng: np.random.Generator) -> Ints:
    """Draw each client's number of samples: 50 plus a log-normal number, close to a power law."""
    return SMALLEST + rng.lognormal(LOG_MEAN, LOG_DEVIATION, clients).astype(np.int64)


def draw(
    models: Array, means: Array, sizes: Ints, rng: np.random.Generator
) -> tuple[NDArray[np.float32], Ints]:
    """Draw x ~ N(v_k, Σ) with Σ_jj = j^-1.2, and label it by its client's model.

    `models`, shape (n, CLASSES, DIMENSION + 1): W_k, and b_k in the last column. `means`, shape (n,
    DIMENSION): v_k.
    """
    deviation = np.arange(1, DIMENSION + 1) ** -0.6
    xs, ys = [], []
    for model, mean, size in zip(models, means, sizes, strict=True):
        x = mean + deviation * rng.standard_normal((size, DIMENSION))
        xs.append(x.astype(np.float32))
        ys.append((x @ model[:, :-1].T + model[:, -1]).argmax(1))
    return np.concatenate(xs), np.concatenate(ys)


class Quadratic(NetworkData, name="quadratic", title="Quadratic"):
    """Linear regression with heterogeneous features, Harshvardhan et al. 2025, section 3."""

    clients: Positive = Field(100, description="m")
    samples: Positive = Field(100, description="n, of each client")
    tests: Positive = Field(20, description="of each client")
    dimension: Positive = Field(500, description="d")
    eigenvalues: Range = Field((1.0, 10.0), description="range of those of the covariances")
    noise: Variance = Field(0.001, description="standard deviation")
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
