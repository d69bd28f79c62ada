"""The run store: the one place that writes and opens result files.

A finished run is a Parquet file named by the hash of its spec, found below any store folder:
``<store>/<first two digits>/<hash>.parquet``.  The table has the columns ``at``, ``metric`` and
``value``; the file's metadata say what made it.  Writes are atomic and reads verify a digest of the
table, so that a half-written or damaged file is never taken for a result.

Runs that the project ships are the same tables and metadata, but those of an experiment are in one
file, ``<folder>/<paper>/<experiment>.parquet``: a row for each run, with its ``hash``, its
``metadata`` as JSON, and its columns ``at``, ``metric`` and ``value`` as lists.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fedsampling.base.errors import InputError
from fedsampling.base.files import replacing
from fedsampling.runs.places import path_of as path_of
from fedsampling.runs.places import shipped

METADATA = b"fedsampling"


@dataclass(frozen=True)
class Result:
    """A finished run.

    Parameters
    ----------
    table : DataFrame
        Columns ``at``, ``metric``, ``value``.
    metadata : mapping
        ``spec`` (settings, data, seed), ``hash``, ``digest`` of the table, ``code`` fingerprint,
        ``inputs`` (hashes of the data files), ``package``, ``commit``, ``versions``, ``kernels``
        (what variables asked of them), ``device``, ``started``, ``seconds`` and ``peak_mb``.
    """

    table: pd.DataFrame
    metadata: Mapping[str, Any]


def lease_of(store: Path, run_hash: str) -> Path:
    """Where a store keeps a run's lease; the folder is made, for all who may write to the store."""
    path = path_of(store, run_hash).with_suffix(".lock")
    _make_folder(store, path.parent)
    return path


def save(store: Path, table: pd.DataFrame, metadata: Mapping[str, Any]) -> Path:
    """Write a run atomically; its digest is added to the metadata.

    Returns
    -------
    Path
        Of the file, named by ``metadata["hash"]``.
    """
    path = path_of(store, metadata["hash"])
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    noted = json.dumps({**metadata, "digest": digest(table)}, sort_keys=True)
    arrow = arrow.replace_schema_metadata({METADATA: noted.encode()})
    _make_folder(store, path.parent)
    with replacing(path) as temporary:
        pq.write_table(arrow, temporary, compression="zstd")
    return path


def find(stores: Iterable[Path], run_hash: str, code: str | None) -> Result | None:
    """Return a finished run, or None.

    Parameters
    ----------
    stores : iterable of Path
        Searched in order; folders of shipped runs may be among them.
    run_hash : str
    code : str or None
        Accept only a run made by this code; None accepts any, for stores that are shared as they
        are and whose provenance the report shows.

    Notes
    -----
    A file that cannot be read is set aside as ``*.damaged``, not deleted, and not found.
    """
    for store in stores:
        found = _kept(store, run_hash) or _shipped(store, run_hash)
        if found and found.metadata["hash"] == run_hash and code in (None, found.metadata["code"]):
            return found
    return None


def _kept(store: Path, run_hash: str) -> Result | None:
    path = path_of(store, run_hash)
    if not path.is_file():
        return None
    try:
        return load(path)
    except InputError:
        with suppress(OSError):  # a read-only store keeps it, and the run is computed anew
            path.rename(path.with_suffix(".damaged"))
        return None


def _shipped(folder: Path, run_hash: str) -> Result | None:
    path = shipped(folder).get(run_hash)
    try:
        return load_together(path).get(run_hash) if path else None
    except InputError:
        return None


def load(path: Path) -> Result:
    """Open and verify a run.

    Raises
    ------
    InputError
        If the file is missing, truncated, no result of this package, or not what was written.
    """
    mend = "start again and it is computed anew"
    try:
        arrow = pq.read_table(path)
        metadata = json.loads(arrow.schema.metadata[METADATA])
        table = arrow.to_pandas()
        intact = digest(table) == metadata["digest"]
    except FileNotFoundError:
        raise InputError(f"{path}: no such run; {mend}") from None
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
        raise InputError(f"{path}: truncated or not a result file; {mend}") from None
    if not intact:
        raise InputError(f"{path}: its table is not the one that was written; {mend}")
    return Result(table, metadata)


def save_together(path: Path, runs: Iterable[Result]) -> None:
    """Write the runs of an experiment to one file, atomically and in the order of their hashes."""
    ordered = sorted(runs, key=lambda run: run.metadata["hash"])
    columns = {
        "hash": [run.metadata["hash"] for run in ordered],
        "metadata": [json.dumps(run.metadata, sort_keys=True) for run in ordered],
        "at": [run.table["at"].to_numpy(np.int64) for run in ordered],
        "metric": [run.table["metric"].astype(str).to_numpy(object) for run in ordered],
        "value": [run.table["value"].to_numpy(np.float64) for run in ordered],
    }
    # Bytes of like significance side by side: a sixth less than a dictionary of the values.
    encoding: dict[str, Any] = {
        "use_dictionary": ["hash", "metadata", "at", "metric"],
        "column_encoding": {"value": "BYTE_STREAM_SPLIT"},
    }
    with replacing(path) as temporary:
        pq.write_table(
            pa.table(columns), temporary, compression="zstd", compression_level=19, **encoding
        )


def load_together(path: Path) -> Mapping[str, Result]:
    """Open and verify the runs of an experiment, by hash; a process reads each file once.

    Raises
    ------
    InputError
        If the file is missing, damaged, or not one that :func:`save_together` wrote.
    """
    try:
        return _together(path, path.stat().st_mtime_ns)
    except (OSError, pa.ArrowException, KeyError, ValueError):
        raise InputError(f"{path}: missing or damaged; get it again") from None


@cache
def _together(path: Path, changed: int) -> Mapping[str, Result]:
    rows = pq.read_table(path).combine_chunks()
    lists = {name: rows[name].combine_chunks() for name in ("at", "metric", "value")}
    found = {}
    for row, noted in enumerate(rows["metadata"].to_pylist()):
        metadata = json.loads(noted)
        table = pd.DataFrame({name: lists[name][row].values.to_pandas() for name in lists})
        if digest(table) != metadata["digest"]:
            raise ValueError("a table is not the one that was written")
        found[metadata["hash"]] = Result(table, metadata)
    return found


def _make_folder(store: Path, folder: Path) -> None:
    """Make a folder of a store that others may write to if they may write to the store."""
    with suppress(OSError):  # whoever writes there says what is wrong
        store.mkdir(parents=True, exist_ok=True)
        if not folder.is_dir():
            folder.mkdir()
            folder.chmod(store.stat().st_mode & 0o7777)


def digest(table: pd.DataFrame) -> str:
    """SHA-256 of a run table's content: equal tables, equal digests, on any machine.

    All NaNs count as the same: processors differ in the sign of inf − inf, and files keep none.
    """
    value = table["value"].to_numpy(np.float64)
    content = hashlib.sha256()
    content.update(table["at"].to_numpy(np.int64).tobytes())
    content.update("\n".join(table["metric"].astype(str)).encode())
    content.update(np.where(np.isnan(value), np.nan, value).tobytes())
    return content.hexdigest()
