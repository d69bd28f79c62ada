"""Partitions: who gets how many samples, and which.

Pure functions of labels, owners and numbers; :mod:`fedsampling.datasets` calls them between
reading arrays and building its clients.  Most return :data:`Shares`: row numbers client after
client, and where each client begins.
"""

from fedsampling.partitions.by_digit import by_digit
from fedsampling.partitions.dirichlet import all_by_dirichlet, dirichlet, grouped_sizes
from fedsampling.partitions.label_skew import label_skew
from fedsampling.partitions.natural import at_least, by_owner, sample_clients, split
from fedsampling.partitions.rotation import angles, equal_shares, rotate
from fedsampling.partitions.shares import Shares
from fedsampling.partitions.sizes import sizes
from fedsampling.partitions.unbalancing import unbalance

__all__ = [
    "Shares",
    "all_by_dirichlet",
    "angles",
    "at_least",
    "by_digit",
    "by_owner",
    "dirichlet",
    "equal_shares",
    "grouped_sizes",
    "label_skew",
    "rotate",
    "sample_clients",
    "sizes",
    "split",
    "unbalance",
]
