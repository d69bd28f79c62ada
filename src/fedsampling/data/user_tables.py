"""Users' tables: named columns, such as pandas frames, dicts of lists or ``datasets.Dataset``.

A table, or a dict of the splits ``train`` and ``test``, becomes features, targets and owners.
"""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.errors import InputError, nearest
from fedsampling.data.user_arrays import as_array, numbers, one_type, refuse_missing

ROW_NUMBERS = re.compile(r"Unnamed: \d+|__index_level_\d+__")  # as pandas names them

Columns = Mapping[Any, Any]  # the values of each column, by name


class Table(NamedTuple):
    """Features (N, ...), targets (N,) and, if a column has them, the samples' owners (N,)."""

    x: NDArray[Any]
    y: NDArray[Any]
    owner: NDArray[Any] | None


def train_and_test(
    source: Any, target: Any, features: Any, client: Any
) -> tuple[Table, Table | None]:
    """Read the training table and, if `source` is a dict of splits, the test table."""
    splits = source if isinstance(source, Mapping) and _has_tables(source) else {"train": source}
    if "train" not in splits:
        raise InputError(f"frame: no split 'train'; it has {', '.join(map(str, splits))}")
    train = _columns(splits["train"])
    target = _name(target, train, "target")
    client = None if client is None else _name(client, train, "client")
    used = _features(features, train, target, client)
    first = _table(train, used, target, client)
    if "test" not in splits:
        return first, None
    test = _columns(splits["test"])
    for name in (*used, target):
        if name not in test:
            raise InputError(f"frame: no column {name!r} in the split 'test'; add it")
    return first, _table(test, used, target, client if client in test else None)


def _has_tables(source: Mapping[Any, Any]) -> bool:
    """Whether the values of a mapping are tables; otherwise, they are columns."""
    return any(_is_table(value) for value in source.values())


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or hasattr(value, "columns") or hasattr(value, "column_names")


def _columns(table: Any) -> Columns:
    """Return the columns of a table by name; frames of pandas have the names as they are."""
    if not _is_table(table):
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
    columns = {name: _values(values) for name, values in columns.items()}
    if len({len(values) for values in columns.values() if hasattr(values, "__len__")}) > 1:
        raise InputError("frame: columns differ in length; must have one value per sample")
    return columns


def _values(values: Any) -> Any:
    """Return a column's arrays, images or lists, where it has these, as a list of arrays."""
    if not hasattr(values, "__array__") and isinstance(values, Iterable):
        values = [*values]
    has_objects = isinstance(values, list) or getattr(values, "dtype", None) == np.dtype(object)
    first: Any = next(iter(values), None)
    if has_objects and np.ndim(first) > 0:
        return [np.asarray(value) for value in values]
    return values


def _name(name: Any, columns: Columns, key: str) -> Any:
    """Return the column of this name, or the only one written like it: 2 for "2"."""
    if isinstance(name, Hashable) and name in columns:
        return name
    alike = [column for column in columns if str(column) == str(name)]
    if len(alike) != 1:
        raise InputError(f"{key}: no column {name!r}; {nearest(str(name), map(str, columns))}")
    return alike[0]


def _features(features: Any, columns: Columns, target: Any, client: Any) -> list[Any]:
    """Return the names of the features' columns."""
    if features is None:
        names = [name for name in columns if name not in (target, client)]
    elif isinstance(features, str | int) or (isinstance(features, tuple) and features in columns):
        names = [_name(features, columns, "features")]
    else:
        names = [_name(name, columns, "features") for name in features]
    if not names:
        raise InputError(f"features: no columns except {target!r}; add the features")
    if target in names:
        raise InputError(f"features: {target!r} is the target; remove it")
    if numbered := [name for name in names if ROW_NUMBERS.fullmatch(str(name))]:
        raise InputError(
            f"frame: column {numbered[0]!r} has row numbers; remove it (to_csv with index=False)"
        )
    return names


def _table(columns: Columns, features: Sequence[Any], target: Any, client: Any) -> Table:
    """Convert the columns; the error names all that are not numeric."""
    x = {name: as_array(columns[name], f"frame: column {name!r}") for name in features}
    if texts := [name for name, values in x.items() if not _is_numeric(values)]:
        names = ", ".join(map(repr, texts))
        raise InputError(
            f"frame: not numeric: {names}; remove them, or use pandas.get_dummies(frame, "
            f"columns=[{names}])"
        )
    x = {name: numbers(values, f"frame: column {name!r}") for name, values in x.items()}
    for name, values in x.items():
        if values.dtype.kind == "f":
            refuse_missing(np.isnan(values), f"frame: column {name!r}")
        if len(x) > 1 and values.ndim > 1:
            raise InputError(f"features: {name!r} has arrays; name it as the only feature")
    y = one_type(columns[target], f"frame: column {target!r}")
    owner = None if client is None else one_type(columns[client], f"frame: column {client!r}")
    arrays = [*x.values()]
    return Table(arrays[0] if len(arrays) == 1 else np.stack(arrays, axis=1), y, owner)


def _is_numeric(values: NDArray[Any]) -> bool:
    """Whether an array has numbers, perhaps as Python's objects with missing values."""
    if values.dtype.kind == "O":
        return not any(isinstance(value, str | bytes) for value in values.flat)
    return values.dtype.kind in "iufb"
