"""Parquet files with notes, protected by digests against corruption.

The notes are JSON in the file's metadata, stored with their SHA-256.  They contain a digest of
the rows, which the writer computes and the reader compares.
"""

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike

from fedsampling.base.files import replacing

MOST_NUMBERS = 2**26  # that a file is read with; the largest published one has 1.4 million
# Levels of definition and repetition of the columns that are written: plain ones, and lists.
LEVELS = {(1, 0), (3, 1)}
SPLIT = "BYTE_STREAM_SPLIT"
COMPRESSION: dict[str, Any] = {
    "compression": "brotli", "compression_level": 11, "write_statistics": False,
    "store_schema": False,
}  # fmt: skip


def write(
    path: Path, kind: str, rows: pa.Table, notes: str, mode: int | None = None, **options: Any
) -> None:
    """Write rows, and notes with a ``digest`` of the rows, atomically; readers check `kind`."""
    text = notes.encode()
    noted = {kind.encode(): text, _seal(kind): hashlib.sha256(text).hexdigest().encode()}
    with replacing(path, mode) as temporary:
        rows = rows.replace_schema_metadata(noted)
        with pq.ParquetWriter(temporary, rows.schema, **{"compression": "zstd", **options}) as file:
            if not options.get("store_schema", True):
                file.add_key_value_metadata(noted)
            file.write_table(rows)


def read(content: bytes) -> pa.Table:
    """Read a file's rows; its writer or a damaged byte may ask for what no reader should do.

    A megabyte can declare billions of equal rows, and a single bit turns text into bytes.
    """
    file = pq.ParquetFile(pa.BufferReader(content))
    # With other levels than its writer's, reading a column's metadata ends the whole process.
    columns = [file.schema.column(place) for place in range(len(file.schema))]
    levels = {(column.max_definition_level, column.max_repetition_level) for column in columns}
    if not levels <= LEVELS:
        raise ValueError("columns are declared otherwise than they were written")
    groups = [file.metadata.row_group(index) for index in range(file.num_row_groups)]
    numbers = sum(group.column(k).num_values for group in groups for k in range(group.num_columns))
    if numbers > MOST_NUMBERS:
        raise ValueError(f"{numbers:,} numbers; a file has at most {MOST_NUMBERS:,}")
    if any(pa.types.is_binary(field.type) for field in file.schema_arrow):
        raise ValueError("bytes where text was written")
    return file.read()


def smallest(*layouts: pa.Table) -> tuple[pa.Table, dict[str, Any]]:
    """Choose the layout, of several with equal content, with the smallest file; add write options.

    Each column is stored as a dictionary, as plain values, or with its bytes split.  The file is
    compressed with brotli, which takes 5 % less space than zstd and a hundred times as long.  Sizes
    are therefore compared with zstd.
    """
    encoded = [{field.name: _encoded(rows, field) for field in rows.schema} for rows in layouts]
    sizes = [sum(size for size, _, _ in columns.values()) for columns in encoded]
    best = int(np.argmin(sizes))
    encodings = {path: encoding for _, path, encoding in encoded[best].values()}
    return layouts[best], {
        **COMPRESSION,
        "use_dictionary": [path for path, kind in encodings.items() if kind == "dictionary"],
        "column_encoding": {path: kind for path, kind in encodings.items() if kind == SPLIT},
    }


def _encoded(rows: pa.Table, field: pa.Field) -> tuple[int, str, str]:
    """Return the size, the path and the smallest encoding of a column."""
    is_list = pa.types.is_list(field.type)
    path = f"{field.name}.list.element" if is_list else field.name
    options: dict[str, dict[str, Any]] = {
        "dictionary": {"use_dictionary": True},
        "plain": {"use_dictionary": False},
    }
    if is_list and pa.types.is_floating(field.type.value_type):
        options[SPLIT] = {"use_dictionary": False, "column_encoding": {path: SPLIT}}
    part = rows.select([field.name])
    size, encoding = min((_size(part, choice), name) for name, choice in options.items())
    return size, path, encoding


def _size(rows: pa.Table, options: dict[str, Any]) -> int:
    stream = io.BytesIO()
    pq.write_table(rows, stream, compression="zstd", compression_level=19, **options)
    return stream.tell()


def verified(schema: pa.Schema, kind: str) -> dict[str, Any]:
    """Return the notes of a file after checking their digest."""
    text = schema.metadata[kind.encode()]
    if hashlib.sha256(text).hexdigest().encode() != schema.metadata[_seal(kind)]:
        raise ValueError("the notes do not match their digest")
    notes: dict[str, Any] = json.loads(text)
    return notes


def as_written(values: ArrayLike) -> bytes:
    """Return numbers as bytes, with the same bytes for all NaNs, whose sign bit can differ."""
    numbers = np.asarray(values, np.float64)
    return np.where(np.isnan(numbers), np.nan, numbers).tobytes()


def _seal(kind: str) -> bytes:
    return f"{kind}.sha256".encode()
