"""Fashion-MNIST over clients.

References
----------
H. Xiao, K. Rasul, R. Vollgraf: Fashion-MNIST. arXiv:1708.07747.
"""

from pathlib import Path
from typing import ClassVar

from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import Images
from fedsampling.data.datasets.idx import read
from fedsampling.data.partitions.partition import LabelPartition
from fedsampling.data.samples import SMALLER, Samples
from fedsampling.data.stand_ins import GRAY, balanced, images


class FashionMnist(Images, name="fashion_mnist", title="Fashion-MNIST"):
    """FashionMNIST."""

    official: ClassVar[tuple[str, ...]] = ("fashion_mnist",)
    labels: ClassVar[int | None] = 10

    partition: LabelPartition

    @classmethod
    def read(cls, edition: str, folder: Path) -> Samples:
        """Read the publisher's four files."""
        return read("fashion_mnist", folder)

    @classmethod
    def stand_in(cls) -> Samples:
        """Generate a tenth of the images."""
        rng = stream(0, "data.fashion_like")
        y, y_test = (balanced(rng, size // SMALLER, 10) for size in (60_000, 10_000))
        return images(rng, "fashion-like", GRAY, y, y_test, classes=10)
