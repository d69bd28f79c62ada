"""Loading datasets: :func:`load` and :func:`datasets`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from fedsampling.api.arguments import Choice, Numbers, plain_numbers, record_input
from fedsampling.api.keywords import DatasetSettings
from fedsampling.base.errors import InputError, nearest
from fedsampling.base.families import catalogue
from fedsampling.base.records import Strict, check
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.data.federated import FederatedDataset
from fedsampling.experiments.config import MIRROR_VARIABLE

if TYPE_CHECKING:
    import pandas as pd

DATA_SOURCES = ("official", "embedded")
CACHE = Path("results/data")  # as the pipeline's


def load(
    name: Choice,
    partition: Choice | None = None,
    data: Literal["official", "embedded"] = "official",
    mirror: str | Path | None = None,
    *,
    seed: int = 0,
    cache: str | Path = CACHE,
    **settings: Unpack[DatasetSettings],
) -> FederatedDataset:
    """Load a dataset's clients.

    Parameters
    ----------
    name : str, dict or Dataset
        Such as ``"mnist"``; ``fedsampling list datasets`` lists all.
    partition : str, dict or Partition, optional
        Required by some datasets; such as ``{"name": "by_writer", "clients": 100}``.
    data : {"official", "embedded"}
        The published files, which are downloaded and verified, or a small generated stand-in.
    mirror : str or Path, optional
        Folder with the official files; by default the variable ``FEDSAMPLING_MIRROR``.
    seed : int
        Seed of a random partition, or of generated data.
    cache : str or Path
        Folder of downloaded files.
    **settings
        Other settings of the dataset, such as ``fraction=0.1``.

    Returns
    -------
    FederatedDataset

    Raises
    ------
    InputError
        If a name or a setting is invalid, or a file is not available.

    Examples
    --------
    >>> import fedsampling as fs
    >>> fs.load("mnist", "by_digit", data="embedded").n_clients
    100
    """
    if data not in DATA_SOURCES:
        raise InputError(f"data: {data!r} is unknown; {nearest(str(data), DATA_SOURCES)}")
    record = record_input(name, "name")
    record = record.model_dump() if isinstance(record, Strict) else record
    record = {**record, **settings}
    if partition is not None:
        record["partition"] = record_input(partition, "partition")
    chosen = Dataset.members().get(str(record.get("name")))
    field = chosen.model_fields.get("partition") if chosen else None
    if field and field.is_required() and "partition" not in record:
        raise InputError("partition: missing; choose one of `fedsampling list partitions`")
    dataset = check(Dataset, record, "dataset.")
    checked = check(Numbers, {"seed": plain_numbers(seed)}, "").seed
    mirror = str(mirror) if mirror else os.environ.get(MIRROR_VARIABLE) or None
    return dataset.load(data, checked, Path(cache), mirror)


def datasets() -> "pd.DataFrame":
    """List all datasets: ``name``, ``settings`` and a ``description``.

    Examples
    --------
    >>> import fedsampling as fs
    >>> "mnist" in fs.datasets()["name"].tolist()
    True
    """
    return catalogue(Dataset)
