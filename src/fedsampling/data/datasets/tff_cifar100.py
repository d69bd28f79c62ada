"""CIFAR-100 over TFF's clients, with one common test set as in Chen et al. 2022.

References
----------
S. Reddi et al.: Adaptive federated optimization. ICLR 2021.
"""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import PooledData
from fedsampling.data.datasets.tff import read_cifar100, unpacked_parts
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.unbalanced import ByWriter
from fedsampling.data.samples import Samples
from fedsampling.data.stand_ins import COLOURED, balanced, images, tastes

# Of the stand-in; the published data have 500 clients with 100 samples.
CLIENTS, PER_CLIENT, TESTS = 50, 100, 200


class TffCifar100(PooledData, name="tff_cifar100", title="CIFAR-100 (TensorFlow Federated)"):
    """CIFAR-100 over TFF's clients, Chen et al. 2022, appendix G."""

    official: ClassVar[tuple[str, ...]] = ("tff_cifar100",)
    published: ClassVar[int | None] = 500

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Load TFF's clients, pixels from 0 to 255; `seed` has no effect."""
        samples = self.samples(source, cache, mirror)
        return ByWriter().share_out(samples, seed, self.importance)

    @classmethod
    def read(cls, edition: str, folder: Path) -> Samples:
        """Read the archive."""
        with unpacked_parts("tff_cifar100", folder) as parts:
            return read_cifar100(*parts)

    @classmethod
    def stand_in(cls) -> Samples:
        """Generate images whose labels differ from client to client."""
        rng = stream(0, "data.cifar100_like")
        y, y_test = tastes(rng, CLIENTS, PER_CLIENT, 100), balanced(rng, TESTS, 100)
        drawn = images(rng, "cifar100-like", COLOURED, y, y_test, classes=100)
        return replace(drawn, writer=np.repeat(np.arange(CLIENTS), PER_CLIENT))
