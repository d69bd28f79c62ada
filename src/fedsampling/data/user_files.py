"""Tables in users' files: their digests, which are settings, and how they are read."""

import codecs
import gzip
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr, model_validator

from fedsampling.base.errors import InputError, naming, nearest
from fedsampling.base.files import sha256, verified_digest
from fedsampling.base.inputs import note
from fedsampling.base.lazy import pd
from fedsampling.base.records import Strict
from fedsampling.data.nearly_numbers import COMMA, NUMBER, check_texts
from fedsampling.data.user_arrays import numbers, one_type, places, sha256_of
from fedsampling.data.user_tables import columns_of, is_table

TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
SEPARATORS = (",", ";", "\t", "|")
# The first bytes of files of text, and their encodings, the longest first.
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
INTEGER = re.compile("0|-?[1-9][0-9]{0,17}")
SWAPPED = str.maketrans(",.", ".,")


class Format(NamedTuple):
    """How the cells of a file of text are written."""

    separator: str | None = None  # between cells; by default a comma, or a tab in .tsv
    decimal: str = "."
    missing: tuple[str, ...] = ()  # texts of missing values, besides empty cells


def with_digest(record: Any, key: str, digest: str, kinds: tuple[str, ...] = TABLES) -> Any:
    """Set the digest of the file that a setting names, or compare it with the settings."""
    if not isinstance(record, dict) or not isinstance(record.get(key), str):
        return record
    path = Path(record[key])
    if problem := _problem(path, kinds):
        raise ValueError(f"{key}: {problem}")
    note(path)
    status = path.stat()
    content = _sha256(path, status.st_mtime_ns, status.st_size)
    return {**record, digest: verified_digest(path, record.get(digest), content, digest)}


def _problem(path: Path, kinds: tuple[str, ...]) -> str | None:
    if not path.name.endswith(kinds):
        return f"{path.name!r} is invalid; must end in {', '.join(kinds)}"
    return None if path.is_file() else f"'{path}' does not exist; check the path"


class ClientsTable(Strict):
    """A user's measurements of the clients: a table in a file, or a table or array in Python."""

    path: str = Field(description="table from the working folder, .csv or .parquet")
    content: str = Field("", description="SHA-256 of the file; computed if empty")

    _values: Any = PrivateAttr(None)  # an array, or columns by name, instead of a file

    @model_validator(mode="before")
    @classmethod
    def _read(cls, record: Any) -> Any:
        return with_digest(record, "path", "content")

    @classmethod
    def holding(cls, values: Any) -> "ClientsTable":
        """Return the record of an array, shape (n,) or (rounds, n), or of a table."""
        if is_table(values):
            values = columns_of(values).items()
            values = {str(name): one_type(part, name).copy() for name, part in values}
            content = sha256_of(*(values[name] for name in sorted(values)))
        else:
            values = numbers(values, "array").copy()
            content = sha256_of(values)
        record = cls.model_construct(path="", content=content)
        record._values = values
        return record

    def read(
        self, names: NDArray[Any], columns: tuple[str, ...], optional: tuple[str, ...] = ()
    ) -> NDArray[Any] | dict[str, NDArray[Any]]:
        """Return the array, whose last axis is clients, or the columns, with `client` as numbers.

        `names`, shape (n,): the clients' names. `columns`, `optional`: besides `client`.
        """
        with naming(self.path) if self.path else nullcontext():
            if isinstance(self._values, np.ndarray):
                if self._values.shape[-1] != len(names):
                    raise InputError(
                        f"shape {self._values.shape}; the last axis must be {len(names)} clients"
                    )
                return self._values
            read = self._values or columns_of(read_table(Path(self.path), ("client",)))
            table = {str(name): one_type(part, str(name)) for name, part in read.items()}
            if missing := {"client", *columns} - {*table}:
                raise InputError(f"no column {min(missing)!r}; it has {', '.join(table)}")
            if unknown := {*table} - {"client", *columns, *optional}:
                fix = nearest(min(unknown), ("client", *columns, *optional))
                raise InputError(f"column {min(unknown)!r} is unknown; {fix}")
            table["client"] = places(table["client"], names, "client")
            if (counts := np.bincount(table["client"], minlength=len(names))).min() < 1:
                raise InputError(f"no row for client {names.tolist()[counts.argmin()]!r}; add it")
            return table


@lru_cache(maxsize=64)
def _sha256(path: Path, changed: int, size: int) -> str:
    """Return a file's digest, once for all runs of a plan."""
    return sha256(path)


def read_table(
    path: Path, clients: tuple[str, ...], written: Format | None = None, target: str | None = None
) -> "pd.DataFrame":
    """Read a table; in text, only empty cells are missing, and no text is taken for a number.

    `clients`: possible names of the column of clients. `written`: how the cells are written.
    `target`: of a table of samples, in which text in a column of numbers is refused.
    """
    labels = {*clients} if target is None else {*clients, target}
    with blaming_file("write it again"), warnings.catch_warnings():
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        separator, decimal, missing = written or Format()
        separator = separator or ("\t" if ".tsv" in path.suffixes else ",")
        text: dict[str, Any] = {"sep": separator, "encoding": _encoding(path)}
        header = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **text)
        names = header.iloc[0].tolist()
        if len(names) == 1:
            _check_separator(path, names[0], text, is_set=target is not None)
        if len({*names}) < len(names):
            duplicate = next(name for name in names if names.count(name) > 1)
            raise InputError(f"duplicate column {duplicate!r}; rename or remove one")
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a row is longer than the header
        frame: pd.DataFrame = pd.read_csv(
            path,
            dtype=dict.fromkeys(labels, str),
            keep_default_na=False,
            na_values=["", *missing],
            decimal=decimal,
            index_col=False,
            low_memory=False,
            **text,
        )
    if target is not None:
        for name in {*frame.select_dtypes(["object", "string"])} - labels:
            check_texts(frame[name], name, in_file=True)
    for name in labels & {*frame}:
        frame[name] = _numbers_or_text(frame[name], decimal, is_target=name == target)
    return frame


def _encoding(path: Path) -> str:
    """Return the encoding that a file's first bytes mark; UTF-8 without a mark."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        start = file.read(4)
    return next((name for mark, name in MARKS.items() if start.startswith(mark)), "utf-8")


def _check_separator(path: Path, name: str, text: Mapping[str, Any], is_set: bool) -> None:
    """Refuse a header of one cell with another separator in it; suggest what fits the next row.

    `is_set`: whether a setting of the file can name its separator.
    """
    for other in SEPARATORS:
        if other != text["sep"] and other in name:
            options = {**text, "sep": other}
            rows = pd.read_csv(path, header=None, nrows=2, dtype=str, **options)
            has_commas = any(COMMA.fullmatch(str(cell)) for cell in rows.iloc[-1])
            if is_set:
                fix = f"use separator={other!r}" + ", decimal=','" * has_commas
            else:
                fix = f"save it with {text['sep']!r}" + " and decimal points" * has_commas
            raise InputError(f"one column {name!r}; its cells are separated by {other!r}: {fix}")


def _numbers_or_text(
    texts: "pd.Series[str]", decimal: str, is_target: bool
) -> "pd.Series[Any] | NDArray[Any]":
    """Convert texts to numbers if all are; ids and labels only if no two texts become one number.

    So 01 and 1 are two clients, and so are 1e5 and 100000.  Fractions are targets of a regression.
    """
    codes, unique = pd.factorize(texts)
    if (codes < 0).any():
        return texts  # some are missing
    if all(INTEGER.fullmatch(text) for text in unique):
        return np.array([int(text) for text in unique])[codes]
    # With a decimal comma, a point is no decimal point, but may separate thousands.
    plain = {text: text if decimal == "." else text.translate(SWAPPED) for text in unique}
    values = {text: float(plain[text]) for text in unique if NUMBER.fullmatch(plain[text])}
    has_fractions = any(value % 1 for value in values.values())
    if is_target and has_fractions and (rest := [*{*unique} - {*values}]):
        row = int(np.flatnonzero((texts == rest[0]).to_numpy())[0])
        raise InputError(
            f"column {texts.name!r}: numbers, but {rest[0]!r} in row {row}; correct or remove it"
        )
    is_exact = len({*values.values()}) == len(unique)
    is_exact &= all(repr(value) == plain[text] for text, value in values.items())
    if len(values) == len(unique) and (is_exact or (is_target and has_fractions)):
        return np.array([*values.values()])[codes]
    return texts


@contextmanager
def blaming_file(fix: str) -> Iterator[None]:
    """Report whatever a reader raises, such as errors of zip files, as one line."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0][:80]
        if isinstance(error, UnicodeDecodeError):
            fix = "save it as UTF-8"
        raise InputError(f"unreadable ({reason}); {fix}") from None
