"""Loading a dataset by name and settings, as a checked run does."""

from pathlib import Path

from fedsampling.base.records import check
from fedsampling.data.datasets.dataset import Dataset


def load(name, source="embedded", seed=0, cache=Path("unused"), mirror=None, **settings):
    record = check(Dataset.member(name), {"name": name, **settings}, "")
    return record.load(source, seed, cache, mirror)
