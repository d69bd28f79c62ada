"""A dataset in a user's file: ``dataset: {name: files, path: clients.csv, …}``.

The file is ``.npz`` with arrays ``x``, ``y`` and optionally ``client``, ``x_test``, ``y_test`` and
``client_test``, or a table, ``.csv`` or ``.parquet``, with one row per sample.  Another table may
have properties of the clients.  The SHA-256 of each file is a setting, so that the hash of a run
depends on the content.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fedsampling.base.errors import InputError, naming, nearest
from fedsampling.base.records import Share, hashed_if_set
from fedsampling.data.datasets.dataset import PublishedData
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.partition import Partition
from fedsampling.data.user_data import federated
from fedsampling.data.user_encoding import Encode
from fedsampling.data.user_files import TABLES, Format, blaming_file, read_table, with_digest
from fedsampling.data.user_frames import from_frame
from fedsampling.data.user_tables import with_client_column

TEST_SHARE = 0.2
ARRAYS = {"x", "y", "client", "x_test", "y_test", "client_test"}


class Files(PublishedData, name="files"):
    """Samples of your own, in a .npz, .csv, .tsv or .parquet file."""

    path: str = Field(description="the file: .npz, .csv, .tsv, one of these with .gz, or .parquet")
    content: str = Field("", description="SHA-256 of the file; computed if empty")
    target: str = Field("y", description="column of labels or targets, in a table")
    client: str = Field("client", description="column of the samples' owners, in a table")
    partition: Partition | None = Field(
        None, description="assigns the samples; null: each owner is a client"
    )
    test_share: Share = Field(
        TEST_SHARE, description="of each client's samples, where the file has no test samples"
    )
    test: str | None = hashed_if_set(None, "column that marks test samples, in a table; null: none")
    encode: Encode | None = hashed_if_set(
        None,
        "encodes text and missing values in a table and standardises numbers, by statistics of all "
        "training samples or of each client's; null: neither",
    )
    client_info: str | None = hashed_if_set(
        None, "table with a row for each client, .csv or .parquet; null: none"
    )
    separator: Literal[",", ";", "\t", "|"] | None = hashed_if_set(
        None, "of the cells in a table of text; null: a comma, or a tab in .tsv"
    )
    decimal: Literal[".", ","] = hashed_if_set(".", "of the numbers in a table of text")
    missing: str | tuple[str, ...] = hashed_if_set(
        (), "texts of missing values in a table of text, such as NA, besides empty cells"
    )
    info_content: str = hashed_if_set("", "SHA-256 of client_info; computed if empty")

    @model_validator(mode="before")
    @classmethod
    def _read(cls, record: Any) -> Any:
        """Set the digests of the files, or compare them with the settings."""
        record = with_digest(record, "path", "content", (".npz", *TABLES))
        return with_digest(record, "client_info", "info_content")

    @model_validator(mode="after")
    def _check_format(self) -> "Files":
        """Refuse settings that have no effect on the kind of the file."""
        path = Path(self.path)
        binary = (".npz", ".parquet")
        unused = ["missing"] if path.suffix in binary else []
        if all(Path(name).suffix in binary for name in filter(None, (self.path, self.client_info))):
            unused += ["separator", "decimal"]
        if path.suffix == ".npz":
            unused += ["target", "test", "encode"]
            unused += ["client"] if self.client_info is None else []
        for name in unused:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name}: no effect on {path.name}; remove it")
        return self

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Read the file, whatever `source` is, and assign its samples to clients."""
        path = Path(self.path)
        with naming(self.path):
            reader = self._from_arrays if path.suffix == ".npz" else self._from_table
            data = reader(path, seed)
        inputs = {path.name: self.content}
        if self.client_info is not None:
            inputs[Path(self.client_info).name] = self.info_content
        return replace(data, inputs=inputs)

    @property
    def _by_owner(self) -> bool:
        return self.partition is None or self.partition.needs_writers

    @property
    def _written(self) -> Format:
        missing = (self.missing,) if isinstance(self.missing, str) else self.missing
        return Format(self.separator, self.decimal, missing)

    def _common(self, seed: int) -> dict[str, Any]:
        info = None
        if self.client_info is not None:
            with naming(self.client_info):
                written = self._written._replace(missing=())
                table = read_table(Path(self.client_info), (self.client, "client"), written)
            info = with_client_column(table, self.client)
        return {
            "partition": self.partition,
            "importance": self.importance,
            "client_info": info,
            "name": Path(self.path).name,
            "seed": seed,
        }

    def _from_table(self, path: Path, seed: int) -> FederatedDataset:
        frame = read_table(path, (self.client,), self._written, self.target)
        client = self.client if self._by_owner else None
        if client is None and self.client in frame:
            frame = frame.drop(columns=self.client)
        share = self.test_share if self.test is None else None
        options: dict[str, Any] = {"test": self.test, "test_share": share, "encode": self.encode}
        options |= self._common(seed)
        return from_frame(frame, target=self.target, client=client, **options)

    def _from_arrays(self, path: Path, seed: int) -> FederatedDataset:
        arrays: dict[str, Any] = _read_arrays(path)
        if missing := sorted({"x", "y"} - arrays.keys()):
            raise InputError(f"no array {missing[0]!r}; it has {', '.join(arrays)}")
        if unknown := sorted(arrays.keys() - ARRAYS):
            raise InputError(f"array {unknown[0]!r} is unknown; {nearest(unknown[0], ARRAYS)}")
        owners = {
            "clients": arrays.pop("client", None),
            "clients_test": arrays.pop("client_test", None),
        }
        options = {
            "test_share": None if "x_test" in arrays else self.test_share,
            **(owners if self._by_owner else {}),
            **self._common(seed),
        }
        return federated(**arrays, **options)


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    with blaming_file("write it with numpy.savez"), np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}
