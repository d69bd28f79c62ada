"""ijcnn1: engine misfires, the classification data of Rizk et al. 2022.

LIBSVM's text is parsed into arrays and partitioned over clients with unequal sizes and labels.  The
paper distributes "35,000 training samples ... randomly in a non-IID fashion to K=100 agents", with
N_k "from 79 to 688", but does not say how.  Our choice:
:mod:`fedsampling.data.partitions.label_skew` draws sizes and labels.
"""

from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Bools, Ints
from fedsampling.base.files import sha256_by_name
from fedsampling.base.records import Positive, PositiveFloat, Proportion, hashed_if_set
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import ConvexData
from fedsampling.data.datasets.libsvm import Rows, parse_libsvm
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.label_skew import label_skew, sizes
from fedsampling.data.samples import Samples, gather
from fedsampling.data.shares import starts
from fedsampling.data.sources.fetch import fetch
from fedsampling.data.sources.sources import SOURCES
from fedsampling.data.stand_ins import vectors

M = 22
ROWS = 35_000
# A tenth of the training samples, with the published share of positives.
STANDIN_ROWS, STANDIN_TESTS, POSITIVE = 3_500, 2_000, 0.096


class Ijcnn1(ConvexData, name="ijcnn1"):
    """The ijcnn1 data set over agents of unequal size, Rizk et al. 2022, section V-B."""

    official: ClassVar[tuple[str, ...]] = ("ijcnn1",)

    agents: Positive
    smallest: Positive = Field(description="smallest N_k")
    largest: Positive = Field(description="largest N_k")
    alpha: PositiveFloat | None = Field(description="Dirichlet label skew; null: IID")
    positives: Proportion | None = hashed_if_set(
        None, "share of positives in training: repeats them and omits negatives"
    )

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Partition the samples, which are the same for every seed.

        The bounds of N_k, both attained, are for the 35,000 official samples. For the stand-in they
        are reduced in proportion and rounded outwards (at least 1), so that they remain feasible.
        """
        smallest, largest = self.smallest, self.largest
        inputs: dict[str, str] = {}
        if source == "official":
            name = "ijcnn1"
            (x, y), (x_test, y_test), inputs = _official(cache, mirror)
        else:
            name = "ijcnn1-like"
            rng = stream(0, "data.ijcnn1_like")
            x, y = vectors(rng, STANDIN_ROWS + STANDIN_TESTS, M, POSITIVE)
            x, x_test = np.split(x, [STANDIN_ROWS])
            y, y_test = np.split(y, [STANDIN_ROWS])
            smallest = max(1, smallest * len(y) // ROWS)
            largest = -(-largest * len(y) // ROWS)
        if self.positives is not None:
            chosen = _resampled(y > 0, self.positives, stream(seed, "data.positives"))
            x, y = x[chosen], y[chosen]
        n_samples = sizes(len(y), self.agents, smallest, largest, stream(seed, "data.sizes"))
        shuffle = stream(seed, "data.labels")
        if self.alpha is None:
            index = shuffle.permutation(len(y))
        else:
            index = label_skew(y, n_samples, self.alpha, shuffle)
        samples = Samples(name, x, y, x_test, y_test, classes=None, inputs=inputs)
        return gather(samples, (index, starts(n_samples)), None, "equal")


def _resampled(positive: Bools, share: float, rng: np.random.Generator) -> Ints:
    """Resample to the same size with a share of positives, repeating each sample equally often."""
    positives = round(share * len(positive))
    parts = []
    for rows, n in (
        (np.flatnonzero(positive), positives),
        (np.flatnonzero(~positive), len(positive) - positives),
    ):
        copies, extra = divmod(n, len(rows))
        parts += [*([rows] * copies), rng.permutation(rows)[:extra]]
    return np.concatenate(parts)


def _official(cache: Path, mirror: str | None) -> tuple[Rows, Rows, dict[str, str]]:
    paths = [fetch(SOURCES[f"ijcnn1/{file}"], cache, mirror) for file in ("ijcnn1.tr", "ijcnn1.t")]
    train, test = (parse_libsvm(path.read_bytes(), M) for path in paths)
    return train, test, sha256_by_name(paths)
