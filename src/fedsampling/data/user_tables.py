"""Users' tables, with named columns: a pandas frame, a dict of lists or a ``datasets.Dataset``.

A table, or a dict of the splits ``train`` and ``test``, becomes features, targets and owners.
"""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Bools
from fedsampling.base.errors import InputError, nearest
from fedsampling.data.federated import ClientInfo
from fedsampling.data.nearly_numbers import check_texts
from fedsampling.data.user_arrays import as_array, copied, numbers, one_type, places, refuse_missing
from fedsampling.data.user_datasets import check_same
from fedsampling.data.user_encoding import Encoding, check_no_dates, encoding_of
from fedsampling.data.user_layout import aligned, aligned_rows, is_image, warn_of

ROW_NUMBERS = re.compile(r"Unnamed: \d+|__index_level_\d+__")  # as pandas names them

Columns = Mapping[Any, Any]  # the values of each column, by name


class UserTable(NamedTuple):
    """Features (N, ...), targets (N,) and, if a column has them, the samples' owners (N,)."""

    x: NDArray[Any]
    y: NDArray[Any]
    owner: NDArray[Any] | None

    def rows(self, mask: Bools) -> "UserTable":
        """Return the rows where `mask` is true."""
        return UserTable(
            self.x[mask], self.y[mask], None if self.owner is None else self.owner[mask]
        )


def train_and_test(
    source: Any, target: Any, features: Any, client: Any, test: Any, encodes: bool = False
) -> tuple[UserTable, UserTable | None, Encoding | None]:
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
    tests = _tests(splits["test"], train, used, target) if "test" in splits else None
    encoding = encoding_of(train, used, tests) if encodes else None
    table = _table(train, used, target, client, encoding)
    if marks is not None:
        is_test = _marked(train[marks], f"frame: column {marks!r}")
        return table.rows(~is_test), table.rows(is_test), encoding
    if tests is None:
        return table, None, encoding
    owner = client if client in tests else None
    return table, _table(tests, used, target, owner, encoding), encoding


def read_client_info(table: Any, names: NDArray[Any]) -> ClientInfo:
    """Read the clients' properties: a row for each client, in the order of their names."""
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


def with_client_column(table: Any, client: Any) -> Columns:
    """Return the columns of the clients' properties; the one with the name `client` is 'client'."""
    columns = columns_of(table)
    if client != "client" and {client, "client"} <= {*columns}:
        raise InputError(f"client_info: columns {client!r} and 'client'; rename or remove one")
    return {"client" if name == client else name: values for name, values in columns.items()}


def is_table(value: Any) -> bool:
    """Whether a value has named columns."""
    return isinstance(value, Mapping) or hasattr(value, "columns") or hasattr(value, "column_names")


def columns_of(table: Any) -> Columns:
    """Return the columns of a table by name; frames of pandas have the names as they are."""
    if not is_table(table):
        raise InputError(f"frame: {type(table).__name__} is invalid; must be a table")
    if isinstance(table, Mapping):
        notes: list[str] = []
        names = {f"frame: column {name!r}": values for name, values in table.items()}
        columns = dict(zip(table, aligned_rows(names, notes), strict=True))
        warn_of(notes)
    elif hasattr(table, "iloc"):
        if not table.columns.is_unique:
            duplicate = table.columns[table.columns.duplicated()][0]
            raise InputError(f"frame: duplicate column {duplicate!r}; rename or remove one")
        columns = {name: table.iloc[:, position] for position, name in enumerate(table.columns)}
    else:
        names = table.column_names if hasattr(table, "column_names") else table.columns
        # An iterator can be read only once.
        columns = {name: _values(table[name]) for name in names}
        for name in names:
            check_same(columns[name], _values(table[name]), f"frame: column {name!r}")
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
    if has_objects and is_image(first):
        return [*values]
    if has_objects and np.ndim(first) > 0:
        return [np.asarray(value) for value in values]
    return values


def _tests(table: Any, train: Columns, features: Sequence[Any], target: Any) -> Columns:
    """Return the columns of the split `test`, after checking that it has those of `train`."""
    tests = columns_of(table)
    for name in (*features, target):
        if name not in tests:
            raise InputError(f"frame: no column {name!r} in the split 'test'; add it")
    for name in features:
        _, layout = aligned(train[name], f"frame: column {name!r}", None, [])
        aligned(tests[name], f"frame: column {name!r} of the split 'test'", layout, [])
    return tests


def _name(name: Any, columns: Columns, key: str) -> Any:
    """Return the name of a column; raise InputError if there is no such column."""
    if not isinstance(name, Hashable) or name not in columns:
        if alike := [column for column in columns if str(column) == str(name)]:
            given, known = (type(value).__name__ for value in (name, alike[0]))
            raise InputError(
                f"{key}: no column {name!r} of type {given}; pass {alike[0]!r}, of type {known}"
            )
        raise InputError(f"{key}: no column {name!r}; {nearest(str(name), map(str, columns))}")
    return name


def _marked(values: Any, column: str) -> Bools:
    """Return which rows are test samples: true, 1 or "test"; others have false, 0 or "train"."""
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
    elif isinstance(features, Set):  # whose order differs in each process
        for name in features:
            _name(name, columns, "features")
        names = [name for name in columns if name in features]
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
) -> UserTable:
    """Convert the columns."""
    x = _matrix(columns, features) if encoding is None else encoding.matrix(columns)
    y = one_type(columns[target], f"frame: column {target!r}")
    owner = None if client is None else one_type(columns[client], f"frame: column {client!r}")
    return UserTable(x, y, owner)


def _matrix(columns: Columns, features: Sequence[Any]) -> NDArray[Any]:
    """Return columns of numbers unchanged; the error names all columns that are not numeric."""
    x = {name: as_array(columns[name], f"frame: column {name!r}") for name in features}
    for name, values in x.items():
        check_no_dates(values.ravel(), name)
    if texts := [name for name, values in x.items() if not _is_numeric(values)]:
        for name in texts:
            check_texts(columns[name], name, in_file=False)
        names = ", ".join(map(repr, texts))
        raise InputError(
            f"frame: not numeric: {names}; remove them, or encode them (encode='pooled')"
        )
    x = {name: numbers(values, f"frame: column {name!r}") for name, values in x.items()}
    for name, values in x.items():
        if values.dtype.kind == "f":
            fix = "remove these samples, or encode them (encode='pooled')"
            refuse_missing(np.isnan(values), f"frame: column {name!r}", fix)
        if len(x) > 1 and values.ndim > 1:
            raise InputError(f"features: {name!r} has arrays; name it as the only feature")
    arrays = [*x.values()]
    return arrays[0] if len(arrays) == 1 else np.stack(arrays, axis=1)


def _is_numeric(values: NDArray[Any]) -> bool:
    """Whether an array has numbers, perhaps as Python's objects with missing values."""
    if values.dtype.kind == "O":
        return not any(isinstance(value, str | bytes) for value in values.flat)
    return values.dtype.kind in "iufb"
