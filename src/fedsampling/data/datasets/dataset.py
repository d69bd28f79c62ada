"""The base classes of datasets: records of settings that can load clients.

Adding a file with such a class to this folder registers the dataset.  The workflow imports all of
these files, so slow libraries must be imported inside functions.
"""

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from fedsampling.base.families import Named
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.shares import Importance


class Dataset(Named, package="fedsampling.data.datasets"):
    """The settings of a dataset."""

    # Names of the official datasets in sources.yaml; empty if the data are always generated.
    official: ClassVar[tuple[str, ...]] = ()
    # Number of clients in the published data, if the settings do not determine it.
    published: ClassVar[int | None] = None

    @property
    def max_clients(self) -> int | None:
        """Upper bound on the number of clients; None if unknown before loading."""
        return getattr(self, "clients", None) or self.published

    def files(self) -> tuple[str, ...]:
        """Names of the official datasets that these settings read."""
        return self.official

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Load the clients of one run.

        `source`: ``official`` reads the published files, otherwise a stand-in is generated.
        Ignored by datasets that the paper itself simulates. `seed`: seed of the partition, or of
        the generated data. `cache`, `mirror`: as in :func:`fedsampling.data.sources.fetch.fetch`.
        """
        raise NotImplementedError

    @classmethod
    def verify(cls, dataset: str, edition: str, folder: Path) -> tuple[str, ...]:
        """Compare official files with the published shapes and counts.

        `dataset`: one of `official`. `edition`: edition of the files in sources.yaml. `folder`:
        writable folder with all files of the edition. Returns one phrase for each check that
        passed.
        """
        return ("nothing compares them",)


class ConvexData(Dataset):
    """Datasets for convex models: feature vectors with scalar targets."""


class NetworkData(Dataset):
    """Datasets for networks."""


class PublishedData(NetworkData):
    """Datasets for networks with published samples."""

    importance: Importance = Field("samples", description="p_k: by training samples, or 1/n")
