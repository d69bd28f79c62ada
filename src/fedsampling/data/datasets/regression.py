"""The simulated regression of rizk2022importance.

The paper itself generates these data, so the setting `data` has no effect.

References
----------
E. Rizk, S. Vlaski, A. H. Sayed: Federated learning under importance sampling. IEEE Transactions
on Signal Processing, 2022. Section V-A.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Discriminator, Field, Tag, ValidationInfo, field_validator

from fedsampling.base.records import Positive, Range, Strict, Variance
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import ConvexData
from fedsampling.data.federated import FederatedDataset


class Few(Strict):
    """Noise variances with a few noisy agents; all other agents have the same variance.

    The first agents are noisy.  This is no restriction, because all other properties of agents,
    including E_k and B_k, have the same distribution for all agents.
    """

    few: Positive = Field(description="noisy agents")
    factor: Variance = Field(description="their variance over the others'")
    others: Variance = Field(description="σ²_v,k of all others")


# Discriminated by form, so that errors refer to the form that the user wrote.
Noise = Annotated[
    Annotated[Range, Tag("range")] | Annotated[Few, Tag("few")],
    Discriminator(lambda noise: "few" if isinstance(noise, Mapping | Few) else "range"),
]


class Regression(ConvexData, name="regression"):
    """Simulated linear regression of rizk2022importance, section V-A."""

    agents: Positive = Field(description="K")
    samples: Positive = Field(description="N_k")
    dimension: Positive = Field(description="M")
    eigenvalues: Range = Field(description="range of those of R_u,k")
    noise: Noise = Field(description="range of σ²_v,k, log-uniform; or a few noisy agents")

    @field_validator("noise")
    @classmethod
    def _check_noisy_agents(cls, noise: Noise, info: ValidationInfo) -> Noise:
        if isinstance(noise, Few) and noise.few > (n := info.data.get("agents", noise.few)):
            raise ValueError(f"{noise.few} noisy agents, but only {n} agents; give fewer")
        return noise

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Generate the data of one repetition."""
        return generate(
            self,
            features=stream(seed, "data.features"),
            disturbance=stream(seed, "data.noise"),
            truth=stream(seed, "data.model"),
        )


def generate(
    settings: Regression,
    *,
    features: np.random.Generator,
    disturbance: np.random.Generator,
    truth: np.random.Generator,
) -> FederatedDataset:
    """Draw d_k(n) = u_{k,n} w* + v_k(n) for all agents (equation 54).

    In the paper u_{k,n} is zero-mean Gaussian with covariance R_{u,k}, and v_k(n) Gaussian with
    variance sigma_{v,k}^2; it gives neither covariances nor variances.  Our choice:
    R_{u,k} = Q_k diag(lambda_k) Q_k^T with Q_k from the Haar measure and lambda_k uniform on
    `eigenvalues`; sigma_{v,k}^2 log-uniform on `noise`, or as in :class:`Few`; w* ~ N(0, I).
    Each has its own generator, so a change of the noise leaves features and w* unchanged.

    `settings`: K, N_k (the same for all agents), M, eigenvalues and noise. `features`,
    `disturbance`, `truth`: for u, for v and its variances, and for w*. Returns x of shape (K N_k,
    M), p_k = 1/K, no test samples.
    """
    K, N_k, M = settings.agents, settings.samples, settings.dimension
    w_star = truth.standard_normal(M)
    # Haar up to the signs of columns, which cancel in R_{u,k}.
    Q = np.linalg.qr(features.standard_normal((K, M, M)))[0]
    spread = np.sqrt(features.uniform(*settings.eigenvalues, (K, 1, M)))
    u = (features.standard_normal((K, N_k, M)) * spread) @ Q.transpose(0, 2, 1)
    noise = settings.noise
    low, high = (noise.others, noise.others) if isinstance(noise, Few) else noise
    log_variance = disturbance.uniform(np.log(low), np.log(high), (K, 1))
    if isinstance(noise, Few):
        log_variance[: noise.few] += np.log(noise.factor)
    d = u @ w_star + np.exp(log_variance / 2) * disturbance.standard_normal((K, N_k))
    return FederatedDataset(
        name="regression",
        x=u.reshape(K * N_k, M),
        y=d.reshape(K * N_k),
        start=np.arange(K + 1) * N_k,
        p=np.full(K, 1 / K),
        x_test=np.empty((0, M)),
        y_test=np.empty(0),
    )
