"""The simulated regression of Rizk et al. 2022; the setting `data` has no effect.

References
----------
E. Rizk, S. Vlaski, A. H. Sayed: Federated learning under importance sampling. IEEE Transactions on
Signal Processing, 2022, section V-A.
"""

from pathlib import Path

import numpy as np
from pydantic import Field, model_validator

from fedsampling.base.records import Positive, PositiveFloat, Range, Strict
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import ConvexData
from fedsampling.data.federated import FederatedDataset


class Few(Strict):
    """Noise variances with a few noisy agents; all other agents have the same variance.

    The first agents are noisy.  This is no restriction, because all other properties of agents,
    including E_k and B_k, have the same distribution for all agents.
    """

    few: Positive = Field(description="noisy agents")
    factor: PositiveFloat = Field(description="their variance over the others'")
    others: PositiveFloat = Field(description="σ²_v,k of all others")


class Regression(ConvexData, name="regression", title="Linear regression"):
    """Simulated linear regression of Rizk et al. 2022, section V-A."""

    agents: Positive = Field(description="K")
    samples: Positive = Field(description="N_k")
    dimension: Positive = Field(description="M")
    eigenvalues: Range = Field(description="range of the eigenvalues of R_u,k")
    noise: Range | Few = Field(description="range of σ²_v,k, log-uniform; or a few noisy agents")

    @model_validator(mode="after")
    def _others_remain(self) -> "Regression":
        few = self.noise.few if isinstance(self.noise, Few) else 0
        if few >= self.agents:
            raise ValueError(
                f"noise.few: {few} is invalid; must be less than the {self.agents} agents"
            )
        return self

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Draw d_k(n) = u_{k,n} w* + v_k(n) for all agents (equation 54).

        In the paper u_{k,n} has zero mean and covariance R_{u,k}, and v_k(n) is white noise of
        variance sigma_{v,k}^2; it gives neither distributions nor covariances nor variances.  Our
        choice: both normal; R_{u,k} = Q_k diag(lambda_k) Q_k^T with Q_k from the Haar measure and
        lambda_k uniform on `eigenvalues`; sigma_{v,k}^2 log-uniform on `noise`, or as in
        :class:`Few`; w* ~ N(0, I).
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
