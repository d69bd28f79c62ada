"""Columns with text, booleans and missing values as features: one-hot, standardised, gaps filled.

Columns are encoded before the samples are split and assigned to clients.  The statistics come from
the training samples afterwards; standardising with all rows before only keeps the digits in single
precision, as an affine map of a column changes no final feature.
"""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Bools
from fedsampling.base.errors import InputError
from fedsampling.base.lazy import pd
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.nearly_numbers import check_texts
from fedsampling.data.user_arrays import as_single, kind_of, one_type

MAX_CATEGORIES = 100  # of a column; more are probably names or row numbers
ROWS_PER_CATEGORY = 10  # on average; a feature of fewer rows says which rows these are
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


def encoding_of(
    columns: Mapping[Any, Any], names: Sequence[Any], tests: Mapping[Any, Any] | None = None
) -> Encoding:
    """Return the encoding of a table's columns; `tests`: a table of tests, which may have gaps."""
    numbers, gaps, categories = {}, set(), {}
    for name in names:
        values, is_missing = _known(columns[name], name)
        if kind_of(values) in ("integers", "floating-point numbers"):
            as_single(values, f"frame: column {name!r}")  # refuses numbers that are too large
            number = values.astype(np.float64)
            numbers[name] = float(number.mean()), float(number.std()) or 1.0
            in_tests = tests is not None and pd.Series(tests[name]).isna().any()
            gaps |= {name} if is_missing.any() or in_tests else set()
        else:
            check_texts(columns[name], name, in_file=False)
            categories[name] = np.unique(values).tolist()
            most = int(min(max(len(values) / ROWS_PER_CATEGORY, 2), MAX_CATEGORIES))
            if (count := len(categories[name])) > most:
                raise InputError(
                    f"frame: column {name!r} has {count} categories in {len(values)} rows; remove "
                    f"it, or merge some (at most {most}: a tenth of the rows, or {MAX_CATEGORIES})"
                )
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
    check_no_dates(series[~is_missing], name)
    return one_type(series[~is_missing].tolist(), f"frame: column {name!r}"), is_missing


def check_no_dates(values: Any, name: Any) -> None:
    """Refuse dates and durations, and name a conversion to numbers."""
    kinds = pd.api.types
    first = next(iter(values), None)
    if kinds.is_timedelta64_dtype(values) or isinstance(first, datetime.timedelta | np.timedelta64):
        fault = "durations; convert to numbers, such as .dt.total_seconds()"
    elif kinds.is_datetime64_any_dtype(values) or isinstance(first, datetime.date | np.datetime64):
        fault = "dates; convert to numbers, such as (dates - dates.min()).dt.days"
    else:
        return
    raise InputError(f"frame: column {name!r} has {fault}")
