"""Synthetic(α, β): classification in which models and features differ between clients.

The setting `data` has no effect: the paper itself generates the data.

References
----------
T. Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith: Federated Optimization in Heterogeneous Networks
(FedProx). MLSys 2020 (arXiv 1812.06127), section 5.1 and appendix C.1.  Sizes, tests and the
meaning of β = 0 follow the authors' ``generate_synthetic.py``.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.records import NotNegative, Positive
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import PublishedData
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
