"""The base class of partitions: a record of settings that distributes samples over clients.

Adding a file with such a class to this folder registers the partition.
"""

from typing import ClassVar, Literal

from fedsampling.base.families import Named
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.shares import Importance
from fedsampling.data.samples import Samples

Variant = Literal["text", "code"]  # as in the paper, or as in the authors' code


class Partition(Named, package="fedsampling.data.partitions"):
    """The settings of a partition."""

    needs_writers: ClassVar[bool] = False  # whether it uses the writer of each sample
    needs_tests: ClassVar[bool] = False  # whether it also assigns test samples to clients

    @property
    def max_clients(self) -> int | None:
        """Upper bound on the number of clients; None if the settings do not determine it."""
        return getattr(self, "clients", None)

    def share_out(self, samples: Samples, seed: int, importance: Importance) -> FederatedDataset:
        """Assign the samples to clients.

        `samples`: samples, with writers if the partition `needs_writers`.
        """
        raise NotImplementedError


class LabelPartition(Partition):
    """A partition that uses no information about samples except their labels."""
