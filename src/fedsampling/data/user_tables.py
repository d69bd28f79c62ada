"""Users' tables, with numeric, categorical and missing columns, and PyTorch's datasets.

A table has named columns: a pandas frame, a dict of lists or a ``datasets.Dataset``.  It, or a dict
of the splits ``train`` and ``test``, becomes features, targets and owners.  PyTorch's datasets and
loaders become samples and targets.

Columns are encoded before the samples are split and assigned to clients: one-hot, standardised,
gaps filled with means.  The statistics come from the training samples afterwards; standardising
with all rows before only keeps the digits in single precision, as an affine map of a column changes
no final feature.
"""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Bools
from fedsampling.base.errors import InputError, described, nearest
from fedsampling.base.lazy import pd
from fedsampling.data.federated import ClientInfo, FederatedDataset
from fedsampling.data.user_arrays import (
    as_array,
    as_single,
    copied,
    kind_of,
    numbers,
    one_type,
    places,
    refuse_missing,
)

MAX_CATEGORIES = 100  # of a column; more are probably names or row numbers
Encode = Literal["pooled", "by_client"]


@dataclass(frozen=True)
class Encoding:
    """How columns become features: by mean and deviation of numbers, or by categories.

    Numeric columns with missing values, in `gaps`, get a second feature, 1 where the value is
    missing. A missing or unknown category is in none.
    """

    numbers: Mapping[Any, tuple[float, float]]
    gaps: frozenset[Any]
    categories: Mapping[Any, Sequence[Any]]

    def numeric(self) -> Iterator[tuple[int, int | None]]:
        """Yield the position of each numeric feature, and of its gaps if it has any."""
        position = 0
        for name in self.numbers:
            yield position, position + 1 if name in self.gaps else None
            position += 1 + (name in self.gaps)

    def matrix(self, columns: Mapping[Any, Any]) -> Array:
        """Return the features of a table, shape (N, features)."""
        parts = []
        for name, (mean, deviation) in self.numbers.items():
            values, is_missing = _known(columns[name], name)
            number = np.zeros(len(is_missing))
            if kind_of(values) not in ("integers", "floating-point numbers"):
                raise InputError(f"frame: column {name!r}: text among the tests; must be numbers")
            number[~is_missing] = (values.astype(np.float64) - mean) / deviation
            parts += [number, is_missing.astype(np.float64)][: 1 + (name in self.gaps)]
        for name, categories in self.categories.items():
            values, is_missing = _known(columns[name], name)
            for category in categories:
                is_member = np.zeros(len(is_missing))
                is_member[~is_missing] = values == category
                parts.append(is_member)
        return np.stack(parts, axis=1)


def encoding_of(columns: Mapping[Any, Any], names: Sequence[Any]) -> Encoding:
    """Return the encoding of a table's columns."""
    numbers, gaps, categories = {}, set(), {}
    for name in names:
        values, is_missing = _known(columns[name], name)
        if kind_of(values) in ("integers", "floating-point numbers"):
            as_single(values, f"frame: column {name!r}")  # refuses numbers that are too large
            number = values.astype(np.float64)
            numbers[name] = float(number.mean()), float(number.std()) or 1.0
            gaps |= {name} if is_missing.any() else set()
        elif len(unique := np.unique(values).tolist()) > MAX_CATEGORIES:
            raise InputError(
                f"frame: column {name!r} has {len(unique)} categories; remove it, or merge some "
                f"(at most {MAX_CATEGORIES})"
            )
        else:
            categories[name] = unique
    return Encoding(numbers, frozenset(gaps), categories)


def standardised(data: FederatedDataset, encoding: Encoding, encode: Encode) -> FederatedDataset:
    """Standardise numbers by the training samples of all clients or of each, and fill gaps.

    Features that are the same in all training samples, such as a category that only tests have,
    are dropped.
    """
    if encode == "by_client" and len(data.x_test) and data.start_test is None:
        raise InputError("encode: by_client requires tests of each client; use pooled")
    x, x_test = data.x.astype(np.float64), data.x_test.astype(np.float64)
    parts = [(slice(None), slice(None))]
    if encode == "by_client":
        tests = data.start if data.start_test is None else data.start_test
        starts = zip(data.start, data.start[1:], tests, tests[1:], strict=False)
        parts = [(slice(a, b), slice(c, d)) for a, b, c, d in starts]
    for position, gap in encoding.numeric():
        column = x[:, position].copy()
        is_known = np.ones(len(x), np.bool_) if gap is None else x[:, gap] == 0
        overall = float(column[is_known].std()) if is_known.any() else 0.0
        for train, test in parts:
            known = column[train][is_known[train]]
            mean = known.mean() if len(known) else 0.0
            deviation = (known.std() if len(known) else 0.0) or overall or 1.0
            for samples, rows in ((x, train), (x_test, test)):
                samples[rows, position] = (samples[rows, position] - mean) / deviation
                if gap is not None:
                    samples[rows, position] *= samples[rows, gap] == 0
    varies = np.ptp(x, axis=0) > 0
    if not varies.any():
        raise InputError("features: all are constant in the training samples; add others")
    single = [samples[:, varies].astype(np.float32) for samples in (x, x_test)]
    return replace(data, x=single[0], x_test=single[1])


def _known(column: Any, name: Any) -> tuple[NDArray[Any], Bools]:
    """Return the values that are not missing, all of one type, and which ones are missing."""
    series = pd.Series(column)
    is_missing: Bools = series.isna().to_numpy(np.bool_)
    if is_missing.all():
        raise InputError(f"frame: column {name!r}: all values are missing; remove it")
    if isinstance(column, list) and np.ndim(column[0]):
        raise InputError(f"features: {name!r} has arrays; name it as the only feature")
    return one_type(series[~is_missing].tolist(), f"frame: column {name!r}"), is_missing


ROW_NUMBERS = re.compile(r"Unnamed: \d+|__index_level_\d+__")  # as pandas names them

READ_TWICE = 8  # samples of a dataset, to find random transforms

Columns = Mapping[Any, Any]  # the values of each column, by name


class Table(NamedTuple):
    """Features (N, ...), targets (N,) and, if a column has them, the samples' owners (N,)."""

    x: NDArray[Any]
    y: NDArray[Any]
    owner: NDArray[Any] | None

    def rows(self, mask: Bools) -> "Table":
        """Return the rows where `mask` is true."""
        return Table(self.x[mask], self.y[mask], None if self.owner is None else self.owner[mask])


def train_and_test(
    source: Any, target: Any, features: Any, client: Any, test: Any, encodes: bool = False
) -> tuple[Table, Table | None, Encoding | None]:
    """Read the training and the test table, which a dict of splits or a column `test` separates."""
    has_splits = isinstance(source, Mapping) and any(map(is_table, source.values()))
    splits = source if has_splits else {"train": source}
    if "train" not in splits:
        raise InputError(f"frame: no split 'train'; it has {', '.join(map(str, splits))}")
    train = columns_of(splits["train"])
    target = _name(target, train, "target")
    client = None if client is None else _name(client, train, "client")
    if test is not None and "test" in splits:
        raise InputError("test: cannot be combined with a split 'test'; remove one of the two")
    marks = None if test is None else _name(test, train, "test")
    used = _features(features, train, (target, client, marks))
    encoding = encoding_of(train, used) if encodes else None
    table = _table(train, used, target, client, encoding)
    if marks is not None:
        is_test = _marked(train[marks], f"frame: column {marks!r}")
        return table.rows(~is_test), table.rows(is_test), encoding
    if "test" not in splits:
        return table, None, encoding
    tests = columns_of(splits["test"])
    for name in (*used, target):
        if name not in tests:
            raise InputError(f"frame: no column {name!r} in the split 'test'; add it")
    owner = client if client in tests else None
    return table, _table(tests, used, target, owner, encoding), encoding


def read_client_info(table: Any, names: NDArray[Any]) -> ClientInfo:
    """Read the clients' properties: a row for each client, in the order of their sorted names."""
    if not is_table(table):
        raise InputError(f"client_info: {type(table).__name__} is invalid; must be a table")
    columns = dict(columns_of(table))
    if "client" not in columns:
        raise InputError("client_info: no column 'client', which names the clients; add it")
    clients = one_type(columns.pop("client"), "client_info: column 'client'")
    place = places(clients, names, "client_info")
    if (counts := np.bincount(place, minlength=len(names))).max() > 1 or counts.min() < 1:
        wrong = int(np.flatnonzero(counts != 1)[0])
        client = names.tolist()[wrong]
        raise InputError(
            f"client_info: {counts[wrong]} rows for client {client!r}; must be one for each"
        )
    order = np.argsort(place)
    info = ClientInfo()
    for name, values in columns.items():
        info[str(name)] = one_type(values, f"client_info: column {name!r}")[order]
        info[str(name)].flags.writeable = False
    return info


def is_dataset(value: Any) -> bool:
    """Whether a value is a map-style dataset of PyTorch, or a loader."""
    has_samples = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    is_array = hasattr(value, "__array__") or isinstance(value, list | tuple | str | Mapping)
    return hasattr(value, "collate_fn") or (has_samples and not is_array and not is_table(value))


def samples_of(dataset: Any, argument: str) -> tuple[Any, Any]:
    """Return the samples and targets of a dataset or loader of PyTorch, in its order."""
    tensors: Any = getattr(dataset, "tensors", None)
    if tensors is not None and len(tensors) == 2:
        return tensors[0], tensors[1]
    is_loader = hasattr(dataset, "collate_fn")
    if is_loader and not hasattr(dataset.sampler, "__len__"):
        raise InputError(f"{argument}: an iterable dataset has no order; use a map-style one")
    rows = sorted(dataset.sampler) if is_loader else [*range(len(dataset))]
    if is_loader and rows != sorted(dataset.sampler):
        raise InputError(f"{argument}: the loader's samples differ each time; remove its sampler")
    read = partial(_read, dataset, argument)
    items = [read(row) for row in rows]
    if not items or not all(isinstance(item, tuple | list) and len(item) == 2 for item in items):
        kind = type(dataset).__name__
        raise InputError(f"{argument}: {kind} has no pairs of sample and label; must have these")
    for row, item in zip(rows, items[:READ_TWICE], strict=False):
        first, again = (as_array([sample], argument) for sample in (item[0], read(row)[0]))
        is_float = first.dtype.kind == "f"
        if not np.array_equal(first, again, equal_nan=is_float):
            # A random transform, whose seed is not ours.
            raise InputError(
                f"{argument}: sample {row} differs each time; remove random transforms"
            )
    x, y = zip(*items, strict=True)
    return x, y


def _read(source: Any, argument: str, row: int) -> Any:
    """Return a copy of a sample and its label; a loader gives them in a batch of one."""
    try:
        if hasattr(source, "collate_fn"):
            return [batch[0] for batch in source.collate_fn([source.dataset[row]])]
        item = source[row]
    except Exception as error:  # a user's dataset may raise anything
        raise InputError(f"{argument}: sample {row}: {described(error)}; correct it") from error
    return [*map(copied, item)] if isinstance(item, tuple | list) else item


def is_table(value: Any) -> bool:
    """Whether a value has named columns."""
    return isinstance(value, Mapping) or hasattr(value, "columns") or hasattr(value, "column_names")


def columns_of(table: Any) -> Columns:
    """Return the columns of a table by name; frames of pandas have the names as they are."""
    if not is_table(table):
        raise InputError(f"frame: {type(table).__name__} is invalid; must be a table")
    if isinstance(table, Mapping):
        columns = dict(table)
    elif hasattr(table, "iloc"):
        if not table.columns.is_unique:
            duplicate = table.columns[table.columns.duplicated()][0]
            raise InputError(f"frame: duplicate column {duplicate!r}; rename or remove one")
        columns = {name: table.iloc[:, position] for position, name in enumerate(table.columns)}
    else:
        names = table.column_names if hasattr(table, "column_names") else table.columns
        columns = {name: table[name] for name in names}
    for name, values in columns.items():
        if not isinstance(values, Iterable):
            kind = type(values).__name__
            raise InputError(f"frame: column {name!r}: {kind} is invalid; must be an array")
    columns = {name: _values(values) for name, values in columns.items()}
    if len({len(values) for values in columns.values() if hasattr(values, "__len__")}) > 1:
        raise InputError("frame: columns differ in length; must have one value per sample")
    return columns


def _values(values: Any) -> Any:
    """Return a column's arrays, images or lists, where it has these, as a list of arrays."""
    if not hasattr(values, "__array__") and isinstance(values, Iterable):
        values = values if isinstance(values, list) else [*map(copied, values)]
    has_objects = isinstance(values, list) or getattr(values, "dtype", None) == np.dtype(object)
    first: Any = next(iter(values), None)
    if has_objects and np.ndim(first) > 0:
        return [np.asarray(value) for value in values]
    return values


def _name(name: Any, columns: Columns, key: str) -> Any:
    """Return the name if it is that of a column."""
    if not isinstance(name, Hashable) or name not in columns:
        raise InputError(f"{key}: no column {name!r}; {nearest(str(name), map(str, columns))}")
    return name


def _marked(values: Any, column: str) -> Bools:
    """Return which rows are test samples: true, 1 or "test" beside false, 0 or "train"."""
    marks = one_type(values, column)
    words: list[set[Any]] = [{True, False}, {"train", "test"}]  # 1 equals True
    if not any({*marks.tolist()} <= known for known in words):
        raise InputError(f"{column}: must be true or false, 1 or 0, or 'test' or 'train'")
    is_test: Bools = np.isin(marks, ["test"] if marks.dtype.kind == "U" else [1])
    if is_test.all() or not is_test.any():
        raise InputError(
            f"{column}: all rows are {'test' if is_test.all() else 'training'} samples"
        )
    return is_test


def _features(features: Any, columns: Columns, others: tuple[Any, ...]) -> list[Any]:
    """Return the names of the features' columns."""
    if features is None:
        names = [name for name in columns if name not in others]
    elif isinstance(features, str | int) or (isinstance(features, tuple) and features in columns):
        names = [_name(features, columns, "features")]
    else:
        names = [_name(name, columns, "features") for name in features]
    if not names:
        raise InputError(f"features: no columns except {others[0]!r}; add the features")
    if others[0] in names:
        raise InputError(f"features: {others[0]!r} is the target; remove it")
    if numbered := [name for name in names if ROW_NUMBERS.fullmatch(str(name))]:
        raise InputError(
            f"frame: column {numbered[0]!r} has row numbers; remove it (to_csv with index=False)"
        )
    return names


def _table(
    columns: Columns, features: Sequence[Any], target: Any, client: Any, encoding: Encoding | None
) -> Table:
    """Convert the columns."""
    x = _matrix(columns, features) if encoding is None else encoding.matrix(columns)
    y = one_type(columns[target], f"frame: column {target!r}")
    owner = None if client is None else one_type(columns[client], f"frame: column {client!r}")
    return Table(x, y, owner)


def _matrix(columns: Columns, features: Sequence[Any]) -> NDArray[Any]:
    """Return columns of numbers as they are; the error names all that are not numeric."""
    x = {name: as_array(columns[name], f"frame: column {name!r}") for name in features}
    if texts := [name for name, values in x.items() if not _is_numeric(values)]:
        names = ", ".join(map(repr, texts))
        raise InputError(
            f"frame: not numeric: {names}; remove them, or encode them (encode='pooled')"
        )
    x = {name: numbers(values, f"frame: column {name!r}") for name, values in x.items()}
    for name, values in x.items():
        if values.dtype.kind == "f":
            refuse_missing(np.isnan(values), f"frame: column {name!r}")
        if len(x) > 1 and values.ndim > 1:
            raise InputError(f"features: {name!r} has arrays; name it as the only feature")
    arrays = [*x.values()]
    return arrays[0] if len(arrays) == 1 else np.stack(arrays, axis=1)


def _is_numeric(values: NDArray[Any]) -> bool:
    """Whether an array has numbers, perhaps as Python's objects with missing values."""
    if values.dtype.kind == "O":
        return not any(isinstance(value, str | bytes) for value in values.flat)
    return values.dtype.kind in "iufb"
