"""Partitions: the assignment of samples to clients.

Each module has a record of settings, a :class:`partition.Partition`, and pure functions of labels,
owners and numbers that return :data:`~fedsampling.data.shares.Shares`: row numbers sorted by
client, and the start of each client.

Partitions are available by class name: ``partitions.ByWriter(clients=100)``.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for completion in editors, and for type checkers
    from fedsampling.data.partitions.by_label import AllByDirichlet as AllByDirichlet
    from fedsampling.data.partitions.by_label import ByDigit as ByDigit
    from fedsampling.data.partitions.by_label import Dirichlet as Dirichlet
    from fedsampling.data.partitions.partition import Partition
    from fedsampling.data.partitions.rotation import Rotated as Rotated
    from fedsampling.data.partitions.unbalanced import ByWriter as ByWriter
else:

    def __getattr__(name: str) -> "type[Partition]":
        if name not in __dir__():
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return _members()[name]


def __dir__() -> list[str]:
    return sorted([*globals(), *_members()])


def _members() -> "dict[str, type[Partition]]":
    from fedsampling.data.partitions.partition import Partition

    return {member.__name__: member for member in Partition.members().values()}
