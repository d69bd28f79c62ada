"""Numeric, categorical and missing columns as features: one-hot, standardised, filled with means.

Columns are encoded before the samples are split and assigned to clients; the statistics come from
the training samples afterwards.  The first step also standardises the numbers, with all rows, only
to keep their digits in single precision: an affine map of a column changes no final feature.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Bools
from fedsampling.base.errors import InputError
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.user_arrays import kind_of, one_type

MAX_CATEGORIES = 100  # of a column; more are probably names or row numbers
Encode = Literal["pooled", "by_client"]


@dataclass(frozen=True)
class Encoding:
    """How columns become features.

    `numbers`: mean and standard deviation of each numeric column. `gaps`: the numeric columns with
    missing values, which get a second feature, 1 where the value is missing. `categories`: of each
    other column; a missing or unknown value is in none.
    """

    numbers: Mapping[Any, tuple[float, float]]
    gaps: frozenset[Any]
    categories: Mapping[Any, Sequence[Any]]

    @property
    def gap_of(self) -> list[int | None]:
        """For each feature from a numeric column the position of its gaps; −1 without gaps.

        None for all other features.
        """
        positions: list[int | None] = []
        for name in self.numbers:
            has_gaps = name in self.gaps
            positions += [len(positions) + 1, None] if has_gaps else [-1]
        return positions + [None] * sum(map(len, self.categories.values()))

    def matrix(self, columns: Mapping[Any, Any]) -> Array:
        """Return the features of a table, shape (N, features)."""
        parts = []
        for name, (mean, deviation) in self.numbers.items():
            values, is_missing = _values(columns[name], name)
            number = np.zeros(len(is_missing))
            if kind_of(values) not in ("integers", "floating-point numbers"):
                raise InputError(f"frame: column {name!r}: text among the tests; must be numbers")
            number[~is_missing] = (values.astype(np.float64) - mean) / deviation
            parts += [number, is_missing.astype(np.float64)][: 1 + (name in self.gaps)]
        for name, categories in self.categories.items():
            values, is_missing = _values(columns[name], name)
            for category in categories:
                is_member = np.zeros(len(is_missing))
                is_member[~is_missing] = values == category
                parts.append(is_member)
        return np.stack(parts, axis=1)


def encoding_of(columns: Mapping[Any, Any], names: Sequence[Any]) -> Encoding:
    """Return the encoding of a table's columns."""
    numbers, gaps, categories = {}, set(), {}
    for name in names:
        values, is_missing = _values(columns[name], name)
        if kind_of(values) in ("integers", "floating-point numbers"):
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
    everything = [(slice(None), slice(None))]
    parts = everything
    if encode == "by_client":
        tests = data.start if data.start_test is None else data.start_test
        starts = zip(data.start, data.start[1:], tests, tests[1:], strict=False)
        parts = [(slice(a, b), slice(c, d)) for a, b, c, d in starts]
    for position, gap in enumerate(encoding.gap_of):
        if gap is None:
            continue
        column, is_known = x[:, position].copy(), np.ones(len(x), np.bool_)
        if gap >= 0:
            is_known = x[:, gap] == 0
        overall = float(column[is_known].std()) if is_known.any() else 0.0
        for train, test in parts:
            known = column[train][is_known[train]]
            mean = known.mean() if len(known) else 0.0
            deviation = (known.std() if len(known) else 0.0) or overall or 1.0
            for samples, rows in ((x, train), (x_test, test)):
                samples[rows, position] = (samples[rows, position] - mean) / deviation
                if gap >= 0:
                    samples[rows, position] *= samples[rows, gap] == 0
    varies = np.ptp(x, axis=0) > 0
    if not varies.any():
        raise InputError("features: all are constant in the training samples; add others")
    single = [samples[:, varies].astype(np.float32) for samples in (x, x_test)]
    return replace(data, x=single[0], x_test=single[1])


def _values(column: Any, name: Any) -> tuple[NDArray[Any], Bools]:
    """Return the values that are not missing, all of one type, and which ones are missing."""
    import pandas as pd

    series = pd.Series(column)
    is_missing: Bools = series.isna().to_numpy(np.bool_)
    if is_missing.all():
        raise InputError(f"frame: column {name!r}: all values are missing; remove it")
    return one_type(series[~is_missing].tolist(), f"frame: column {name!r}"), is_missing
