"""A dataset in a user's file: ``dataset: {name: files, path: clients.csv, …}``.

The file is ``.npz`` with arrays ``x``, ``y`` and optionally ``client``, ``x_test``, ``y_test`` and
``client_test``, or a table, ``.csv`` or ``.parquet``, with one row per sample.  Another table may
have properties of the clients.  The SHA-256 of each file is a setting, so that the hash of a run
depends on the content.
"""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fedsampling.base.errors import InputError, naming, nearest
from fedsampling.base.files import sha256, verified_digest
from fedsampling.base.records import Share
from fedsampling.data.datasets.dataset import PublishedData
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.partition import Partition
from fedsampling.data.user_data import federated, from_frame

if TYPE_CHECKING:
    import pandas as pd

KINDS = (".npz", ".csv", ".parquet")
TEST_SHARE = 0.2
ARRAYS = {"x", "y", "client", "x_test", "y_test", "client_test"}
INTEGER = re.compile("0|-?[1-9][0-9]{0,17}")
NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*", re.ASCII)


class Files(PublishedData, name="files"):
    """Samples of your own, in a .npz, .csv or .parquet file."""

    path: str = Field(description="the file, from the working folder: .npz, .csv or .parquet")
    content: str = Field("", description="SHA-256 of the file; computed if empty")
    target: str = Field("y", description="column of labels or targets, in a table")
    client: str = Field("client", description="column of the samples' owners, in a table")
    partition: Partition | None = Field(
        None, description="assigns the samples; null: each owner is a client"
    )
    test_share: Share = Field(
        TEST_SHARE, description="of each client's samples, where the file has no test samples"
    )
    test: str | None = Field(
        None,
        description="column that marks test samples, in a table; null: none",
        exclude_if=lambda test: test is None,  # keeps the hashes of runs without it
    )
    client_info: str | None = Field(
        None,
        description="table with a row for each client, .csv or .parquet; null: none",
        exclude_if=lambda path: path is None,  # keeps the hashes of runs without it
    )
    info_content: str = Field(
        "",
        description="SHA-256 of client_info; computed if empty",
        exclude_if=lambda digest: not digest,  # keeps the hashes of runs without it
    )

    @model_validator(mode="before")
    @classmethod
    def _read(cls, record: Any) -> Any:
        """Set the digests of the files, or compare them with the settings."""
        if not isinstance(record, dict):
            return record
        digests = {}
        for key, digest, kinds in (
            ("path", "content", KINDS),
            ("client_info", "info_content", KINDS[1:]),
        ):
            if not isinstance(record.get(key), str):
                continue
            path = Path(record[key])
            if path.suffix not in kinds:
                raise ValueError(f"{key}: {path.name!r} is invalid; must end in {', '.join(kinds)}")
            if not path.is_file():
                raise ValueError(f"{key}: '{path}' does not exist; check the path")
            status = path.stat()
            content = _sha256(path, status.st_mtime_ns, status.st_size)
            digests[digest] = verified_digest(path, record.get(digest), content, digest)
        return {**record, **digests}

    @property
    def max_clients(self) -> int | None:
        """Upper bound on the number of clients; None if the settings do not determine it."""
        return self.partition.max_clients if self.partition else None

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

    def _common(self, seed: int) -> dict[str, Any]:
        info = None
        if self.client_info is not None:
            with naming(self.client_info):
                info = _read_table(Path(self.client_info), None, self.client)
            info = info.rename(columns={self.client: "client"})
        return {
            "partition": self.partition,
            "importance": self.importance,
            "client_info": info,
            "name": Path(self.path).name,
            "seed": seed,
        }

    def _from_table(self, path: Path, seed: int) -> FederatedDataset:
        frame = _read_table(path, self.target, self.client)
        client = self.client if self._by_owner else None
        if client is None and self.client in frame:
            frame = frame.drop(columns=self.client)
        share = self.test_share if self.test is None else None
        options = {"test": self.test, "test_share": share, **self._common(seed)}
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


@lru_cache(maxsize=64)
def _sha256(path: Path, changed: int, size: int) -> str:
    """Return a file's digest, once for all runs of a plan."""
    return sha256(path)


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    with _blaming_file("write it with numpy.savez"), np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _read_table(path: Path, target: str | None, client: str) -> "pd.DataFrame":
    """Read a table; in a .csv, only empty cells are missing, and no text is taken for a number."""
    import pandas as pd

    with _blaming_file("write it again"), warnings.catch_warnings():
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        header = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False)
        names = header.iloc[0].tolist()
        if len({*names}) < len(names):
            duplicate = next(name for name in names if names.count(name) > 1)
            raise InputError(f"duplicate column {duplicate!r}; rename or remove one")
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a row is longer than the header
        frame = pd.read_csv(
            path,
            dtype={name: str for name in (target, client) if name is not None},
            keep_default_na=False,
            na_values=[""],
            index_col=False,
            low_memory=False,
        )
    for name in {target, client} & {*frame}:
        frame[name] = _numbers_or_text(frame[name], is_target=name == target)
    return frame


def _numbers_or_text(texts: "pd.Series[str]", is_target: bool) -> "pd.Series[Any] | NDArray[Any]":
    """Convert texts to numbers if all are; ids and labels only if no two texts become one number.

    So 01 and 1 are two clients, and so are 1e5 and 100000.  Fractions are targets of a regression.
    """
    import pandas as pd

    codes, unique = pd.factorize(texts)
    if (codes < 0).any():
        return texts  # some are missing
    if all(INTEGER.fullmatch(text) for text in unique):
        return np.array([int(text) for text in unique])[codes]
    values = {text: float(text) for text in unique if NUMBER.fullmatch(text)}
    has_fractions = any(value % 1 for value in values.values())
    if is_target and has_fractions and (rest := [*{*unique} - {*values}]):
        row = int(np.flatnonzero((texts == rest[0]).to_numpy())[0])
        raise InputError(
            f"column {texts.name!r}: numbers, but {rest[0]!r} in row {row}; correct or remove it"
        )
    is_exact = len({*values.values()}) == len(unique)
    is_exact &= all(repr(value) == text for text, value in values.items())
    if len(values) == len(unique) and (is_exact or (is_target and has_fractions)):
        return np.array([*values.values()])[codes]
    return texts


@contextmanager
def _blaming_file(fix: str) -> Iterator[None]:
    """Report whatever a reader raises, such as errors of zip files, as one line."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0][:80]
        raise InputError(f"unreadable ({reason}); {fix}") from None
