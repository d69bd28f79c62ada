"""Partitions: who gets how many samples, and which.

Pure functions of labels and numbers; :mod:`fedsampling.datasets` calls them between reading
arrays and building its clients.
"""

from fedsampling.partitions.label_skew import label_skew
from fedsampling.partitions.sizes import sizes

__all__ = ["label_skew", "sizes"]
