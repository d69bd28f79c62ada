"""Data that the papers themselves generate; the setting `data` has no effect.

Synthetic(α, β) is classification in which models and features differ between clients; Quadratic and
the regression are linear, with features or models of each client's own.

References
----------
T. Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith: Federated Optimization in Heterogeneous Networks
(FedProx). MLSys 2020 (arXiv 1812.06127), section 5.1 and appendix C.1.  Sizes, tests and the
meaning of β = 0 follow the authors' ``generate_synthetic.py``.
Harshvardhan, Yu, Šimunić Rosing, Mazumdar: Client Selection in Federated Learning with Data
Heterogeneity and Network Latencies. 2025 (arXiv 2504.01921), sections 3 and 7 (Quadratic).
E. Rizk, S. Vlaski, A. H. Sayed: Federated learning under importance sampling. IEEE Transactions on
Signal Processing, 2022, section V-A (the regression).
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.records import NotNegative, Positive, Range, Strict, Variance
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import ConvexData, NetworkData, PublishedData
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


# The Quadratic of harshvardhan2025latency: linear regression, each client with its own features and
# its own test set.


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


# The simulated regression of Rizk et al. 2022.


class Few(Strict):
    """Noise variances with a few noisy agents; all other agents have the same variance.

    The first agents are noisy.  This is no restriction, because all other properties of agents,
    including E_k and B_k, have the same distribution for all agents.
    """

    few: Positive = Field(description="noisy agents")
    factor: Variance = Field(description="their variance over the others'")
    others: Variance = Field(description="σ²_v,k of all others")


class Regression(ConvexData, name="regression", title="Linear regression"):
    """Simulated linear regression of Rizk et al. 2022, section V-A."""

    agents: Positive = Field(description="K")
    samples: Positive = Field(description="N_k")
    dimension: Positive = Field(description="M")
    eigenvalues: Range = Field(description="range of those of R_u,k")
    noise: Range | Few = Field(description="range of σ²_v,k, log-uniform; or a few noisy agents")

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Draw d_k(n) = u_{k,n} w* + v_k(n) for all agents (equation 54).

        In the paper u_{k,n} is zero-mean Gaussian with covariance R_{u,k}, and v_k(n) Gaussian with
        variance sigma_{v,k}^2; it gives neither covariances nor variances.  Our choice: R_{u,k} =
        Q_k diag(lambda_k) Q_k^T with Q_k from the Haar measure and lambda_k uniform on
        `eigenvalues`; sigma_{v,k}^2 log-uniform on `noise`, or as in :class:`Few`; w* ~ N(0, I).
        Each has its own generator, so a change of the noise leaves features and w* unchanged.

        Returns x of shape (K N_k, M), p_k = 1/K, no test samples.
        """
        K, N_k, M = self.agents, self.samples, self.dimension
        w_star = stream(seed, "data.model").standard_normal(M)
        features, disturbance = stream(seed, "data.features"), stream(seed, "data.noise")
        # Haar up to the signs of columns, which cancel in R_{u,k}.
        Q = np.linalg.qr(features.standard_normal((K, M, M)))[0]
        spread = np.sqrt(features.uniform(*self.eigenvalues, (K, 1, M)))
        u = (features.standard_normal((K, N_k, M)) * spread) @ Q.transpose(0, 2, 1)
        noise = self.noise
        low, high = (noise.others, noise.others) if isinstance(noise, Few) else noise
        log_variance = disturbance.uniform(np.log(low), np.log(high), (K, 1))
        if isinstance(noise, Few):
            log_variance[: noise.few] += np.log(noise.factor)
        d = u @ w_star + np.exp(log_variance / 2) * disturbance.standard_normal((K, N_k))
        x, y, start = u.reshape(K * N_k, M), d.ravel(), np.arange(K + 1) * N_k
        tests = np.empty((0, M)), np.empty(0)
        return FederatedDataset("regression", x, y, start, np.full(K, 1 / K), *tests)
