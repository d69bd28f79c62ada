"""The run store: reading and writing of result files.

A finished run is a Parquet file named by the hash of its spec and the fingerprint of its code:
``<store>/<first two digits>/<hash>-<code>.parquet``.  The table has the columns ``at``, ``metric``
and ``value``; the file's metadata record its origin.  Writes are atomic.  Reads verify digests of
table and metadata, so that a truncated or corrupt file is never used as a result.

Published runs have the same tables and metadata, but one file per experiment,
``<folder>/<paper>/<experiment>.parquet``.  It has a row per run, with ``hash``, ``metadata`` as
JSON, and the columns ``at`` and ``metric`` as lists.  The values are lists, too: each metric has a
column ``value/<metric>``, or all metrics share the column ``value``, if that file is smaller.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike

from fedsampling.base.arrays import Array, Bools
from fedsampling.base.errors import CorruptError
from fedsampling.base.files import checked, decoding, read_bytes, rename
from fedsampling.runs.noted_parquet import read, smallest, verified, write
from fedsampling.runs.places import path_of, paths_of_versions, published_runs
from fedsampling.runs.rows import Rows, digest, digest_of, joined_rows, rows_of

RUN, RUNS = "fedsampling.run", "fedsampling.runs"  # kinds of files
ROUNDED_KINDS = ("federated", "network")  # kinds of runs with rounded published values
BITS = 24  # binary digits of rounded values
SHORT_DIGITS, SHORT_GAP = 6, 1e-12  # decimal digits of numbers that are not rounded
COLUMNS = ["at", "metric", "value"]
CACHED_FILES = 8  # of published runs; all of the cross matrix take 0.6 GB
CORRUPT = ".corrupt"  # suffix of files that failed their digest, which are not read again
VALUES = "value/"  # prefix of the columns with the values of one metric


@dataclass(frozen=True)
class Result:
    """A finished run."""

    rows: Rows
    # ``spec`` (settings, data, seed), ``hash``, ``digest`` of the table, ``code`` fingerprint,
    # ``inputs`` (hashes of the data files), ``package``, ``commit``, ``versions``, ``kernels``
    # (environment variables that select them), ``device``, ``started``, ``seconds`` and ``peak_mb``
    metadata: Mapping[str, Any]

    @cached_property
    def table(self) -> pd.DataFrame:
        """The run's rows: columns ``at``, ``metric``, ``value``."""
        return self.rows.table()


def lease_of(store: Path, run_hash: str, code: str) -> Path:
    """Return the path of a run's lease in a store; its folder is created if necessary."""
    path = path_of(store, run_hash, code).with_suffix(".lock")
    _make_folder(store, path.parent)
    return path


def save(store: Path, table: pd.DataFrame, metadata: Mapping[str, Any]) -> Path:
    """Write a run atomically, with its digest; return the file, named by hash and code."""
    path = path_of(store, metadata["hash"], metadata["code"])
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    _make_folder(store, path.parent)
    notes = json.dumps({**metadata, "digest": digest(table)}, sort_keys=True)
    # In a store of several users, all of them can read the file, whatever this one's umask.
    write(path, RUN, arrow, notes, mode=store.stat().st_mode & 0o666)
    return path


def find(stores: Iterable[Path], run_hash: str, code: str | None) -> Result | None:
    """Return a finished run, or None, from the first of the stores that has it.

    `code` accepts only runs of this version of the code; None accepts any, the newest first, for
    shared stores; the report shows their provenance. A corrupt file is renamed to ``*.corrupt``.
    """
    return next(
        (run for run in versions(stores, run_hash, code) if code in (None, run.metadata["code"])),
        None,
    )


def versions(stores: Iterable[Path], run_hash: str, code: str | None = None) -> Iterator[Result]:
    """Yield a run as several versions of the code computed it; as for :func:`find`."""
    for store in stores:
        paths = [path_of(store, run_hash, code)] if code else paths_of_versions(store, run_hash)
        yield from intact(paths, published_runs(store).get(run_hash), run_hash)


def why_absent(stores: Iterable[Path], run_hash: str) -> str:
    """Say why :func:`versions` yields no run: its file is corrupt, or there is none."""
    for store in stores:
        renamed = (store / run_hash[:2]).glob(f"{run_hash}-*{CORRUPT}")
        if run_hash in published_runs(store) or any(renamed):
            return "corrupt"
    return "missing"


def intact(paths: Iterable[Path], published: Path | None, run_hash: str) -> Iterator[Result]:
    """Yield a run from its files in a store, then from the file of published runs that has it.

    Later files are read only if no earlier one fits.
    """
    shipped = [published] if published else []
    for run in chain(map(_stored, paths), (_shipped(path, run_hash) for path in shipped)):
        if run and run.metadata["hash"] == run_hash:
            yield run


def _stored(path: Path) -> Result | None:
    try:
        return load(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except CorruptError:
        with suppress(OSError):  # in a read-only store the file stays, and the run is recomputed
            rename(path, path.with_suffix(CORRUPT))
        return None


def _shipped(path: Path, run_hash: str) -> Result | None:
    with suppress(CorruptError):
        return load_together(path).get(run_hash)
    return None


def load(path: Path) -> Result:
    """Open and verify a run."""
    fix = "run the same command again to recompute it"
    content = read_bytes(path)
    with decoding(path, "truncated or not a result file", fix):
        arrow = read(content)
        metadata = _with_identity(verified(arrow.schema, RUN))
        table = _plain(arrow.select(COLUMNS).to_pandas())
        intact = digest(table) == metadata["digest"]
    if not intact:
        raise CorruptError(f"{path}: corrupt: the table does not match its digest; {fix}")
    return Result(rows_of(table), metadata)


def seconds(path: Path) -> float | None:
    """Return a run's time in seconds without reading its table; None if the file is unreadable."""
    try:
        return float(verified(pq.read_schema(path), RUN)["seconds"])
    except Exception:  # decoders raise many kinds of errors on corrupt bytes
        return None


def save_together(path: Path, runs: Iterable[Result]) -> None:
    """Write the runs of an experiment to one file, atomically and in the order of their hashes."""
    ordered = sorted(runs, key=lambda run: run.metadata["hash"])
    metadata = [json.dumps(run.metadata, sort_keys=True) for run in ordered]
    every = joined_rows([run.rows for run in ordered])
    lengths = [len(run.rows) for run in ordered]
    columns: dict[str, Any] = {
        "hash": [run.metadata["hash"] for run in ordered],
        "metadata": metadata,
        "at": _lists(every.at, lengths),
        "metric": _lists(every.names[every.metric], lengths),
    }
    values, row = every.value, np.repeat(np.arange(len(ordered)), lengths)
    by_metric = {}
    for code, metric in enumerate(every.names):
        is_metric = every.metric == code
        counts = np.bincount(row[is_metric], minlength=len(ordered))
        by_metric[f"{VALUES}{metric}"] = _lists(values[is_metric], counts)
    rows, options = smallest(
        pa.table({**columns, **by_metric}), pa.table({**columns, "value": _lists(values, lengths)})
    )
    notes = json.dumps({"digest": _digest_of_all(metadata)})
    write(path, RUNS, rows, notes, **options)


def as_published(run: Result) -> Result:
    """Return a run as it is published: values of training are rounded."""
    if run.metadata["spec"]["settings"]["kind"] not in ROUNDED_KINDS:
        return run
    table = rounded(run.table)
    return Result(rows_of(table), {**run.metadata, "digest": digest(table)})


def rounded(table: pd.DataFrame) -> pd.DataFrame:
    """Round values to 24 binary digits, about seven decimal digits.

    The last digits of a double depend on the processor and cannot be compressed: without them
    published runs take little more than half the space.  Whole numbers and short decimals stay as
    they are, so that an accuracy of 0.83 still meets a target of 0.83.
    """
    value = table["value"].to_numpy(np.float64, copy=True)
    long = np.isfinite(value) & (value != np.rint(value)) & ~_is_short(value)
    mantissa, exponent = np.frexp(value[long])
    value[long] = np.ldexp(np.rint(mantissa * 2.0**BITS) / 2.0**BITS, exponent)
    return table.assign(value=value)


def _is_short(value: Array) -> Bools:
    """Mark the numbers that equal, up to the last bits, a decimal of at most six digits."""
    with np.errstate(all="ignore"):
        places = SHORT_DIGITS - 1 - np.floor(np.log10(np.abs(value)))
        scale = 10.0 ** np.clip(places, 0, 22)  # powers of ten up to 10^22 are exact
        gap = np.abs(np.rint(value * scale) / scale - value)
        short: Bools = (gap <= SHORT_GAP * np.abs(value)) & (places <= 22)
    return short


def _lists(flat: ArrayLike, lengths: ArrayLike) -> pa.Array:
    """Split a flat array into lists of these lengths."""
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(flat))


def load_together(path: Path) -> Mapping[str, Result]:
    """Read and verify the runs of an experiment, by hash; the last files are cached in memory."""
    with decoding(path, "missing or corrupt", "restore it from the repository"):
        return _load_file(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=CACHED_FILES)
def _load_file(path: Path, changed: int) -> Mapping[str, Result]:
    rows = read(read_bytes(path)).combine_chunks()
    texts = rows["metadata"].to_pylist()
    if _digest_of_all(texts) != verified(rows.schema, RUNS)["digest"]:
        raise ValueError("the metadata do not match their digest")
    every = _flat(rows)
    lines: dict[bytes, bytes] = {}  # runs of an experiment mostly have the same metrics
    ends = np.cumsum(rows["at"].combine_chunks().value_lengths().to_numpy())
    runs = {}
    for text, begin, end in zip(texts, [0, *ends], ends, strict=False):
        metadata = _with_identity(json.loads(text))
        part = every.cut(begin, end)
        key = part.metric.tobytes()
        if key not in lines:
            lines[key] = "\n".join(part.names[part.metric]).encode()
        if digest_of(part.at, lines[key], part.value) != metadata["digest"]:
            raise ValueError("a table does not match its digest")
        runs[metadata["hash"]] = Result(part, metadata)
    if rows["hash"].to_pylist() != list(runs):
        raise ValueError("the hashes do not match the runs")
    return runs


def _with_identity(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return a run's metadata; an error if they lack what identifies it."""
    if missing := {"hash", "code"} - metadata.keys():
        raise ValueError(f"the metadata lack {min(missing)}")
    return metadata


def _flat(rows: pa.Table) -> Rows:
    """Join the rows of all runs of a file."""
    lists = rows.drop_columns(["hash", "metadata"])
    flat = {name: lists[name].combine_chunks().flatten() for name in lists.column_names}
    encoded = flat["metric"].dictionary_encode()
    metric = encoded.indices.to_numpy().astype(np.int64)
    names = np.array(encoded.dictionary.to_pylist(), dtype=object)
    if "value" in flat:
        value = flat["value"].to_numpy()
    else:
        value = np.empty(len(metric))
        for code, name in enumerate(names):
            value[metric == code] = flat[f"{VALUES}{name}"].to_numpy()
    at = flat["at"].to_numpy()
    return Rows(at.astype(np.int64), metric, value.astype(np.float64), names)


def _digest_of_all(metadata: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(metadata).encode()).hexdigest()


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """Convert the columns to the types over which the digest is computed."""
    return table.astype({"at": np.int64, "value": np.float64})


def _make_folder(store: Path, folder: Path) -> None:
    """Create a folder in a store, with the permissions of the store."""
    checked(folder)
    with suppress(OSError):  # the following write reports the error
        store.mkdir(parents=True, exist_ok=True)
        if not folder.is_dir():
            folder.mkdir()
            folder.chmod(store.stat().st_mode & 0o7777)
