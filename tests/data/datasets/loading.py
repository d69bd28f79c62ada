"""Loading a dataset by name and settings, as a checked run does."""

from pathlib import Path
from typing import Any

from fedsampling.base.records import check
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.data.federated import FederatedDataset

# Files of MNIST and of all datasets in its format.
IDX_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


def load(
    name: str,
    source: str = "embedded",
    seed: int = 0,
    cache: Path = Path("unused"),
    mirror: str | None = None,
    **settings: Any,
) -> FederatedDataset:
    record = check(Dataset.member(name), {"name": name, **settings}, "")
    return record.load(source, seed, cache, mirror)
