"""Datasets: from settings to clients with samples.

Each module has a record of settings, a :class:`dataset.Dataset`, that loads official files or
generates a stand-in, and applies a partition.
"""
