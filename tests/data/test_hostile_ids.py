"""Hostile labels and owners are never merged or invented: the clients of equal values, or one line.

Each source of data gets the same columns: arrays, tables, and files.
"""

import csv

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedsampling as fs

from .hostile import LABELS, OWNERS, Columns, N, X, refused_or_data

ROWS = np.arange(N, dtype=float)[:, None]  # a feature that identifies the sample


def from_frame(x, y, owner, folder):
    columns = {name: pd.Series(values, dtype=object) for name, values in (("y", y), ("c", owner))}
    frame = pd.concat([pd.DataFrame(x).add_prefix("x"), pd.DataFrame(columns)], axis=1)
    return fs.from_frame(frame, target="y", client="c")


def from_columns(x, y, owner, folder):
    columns = Columns({"x": [*x], "y": y, "c": owner})
    return fs.from_huggingface(columns, target="y", client="c", features="x")


def from_csv(x, y, owner, folder):
    rows = [*zip(x, y, owner, ["train"] * N, strict=True), (x[0], y[0], owner[0], "test")]
    with (folder / "data.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"x{i}" for i in range(len(x[0]))), "y", "client", "split"])
        writer.writerows([*features, *map(written, rest)] for features, *rest in rows)
    return fs.load("files", path=str(folder / "data.csv"), test="split")


def written(value):
    return "" if is_missing(value) else str(value)


def is_missing(value):
    return value is None or value is pd.NA or value is pd.NaT or value != value


SOURCES = {
    "arrays": lambda x, y, owner, folder: fs.federated(x, y, clients=owner),
    "frame": from_frame,
    "columns": from_columns,
    "csv": from_csv,
}


def kind(value):
    if isinstance(value, bool | np.bool_):
        return "boolean"
    return "text" if isinstance(value, str) else "number"


def groups(values, in_text):
    """Group the rows of equal values, independently of the library; None if it must refuse."""
    if any(is_missing(value) or (in_text and value == "") for value in values):
        return None
    if not in_text and len({*map(kind, values)}) > 1:
        return None
    keys = [str(value) if in_text else value for value in values]
    return {frozenset(i for i, other in enumerate(keys) if other == key) for key in keys}


def is_fraction(value):
    try:
        return abs(float(value) % 1) > 0
    except (TypeError, ValueError):
        return False


def groups_of(data, numbers):
    rows = data.x[:, 0].astype(int)
    return {frozenset(rows[numbers == number].tolist()) for number in {*numbers.tolist()}}


def check_ids(source, values, folder):
    """Equal values, and only they, are one client and one label; missing or mixed ones refused."""
    expected = groups(values, in_text=source == "csv")
    data = refused_or_data(lambda: SOURCES[source](ROWS, LABELS, values, folder))
    if data is None:
        assert expected is None, "refused without a reason"
    else:
        assert groups_of(data, np.repeat(np.arange(data.n_clients), data.n_samples)) == expected
    if any(isinstance(value, float) for value in values):
        return  # targets of a regression
    data = refused_or_data(lambda: SOURCES[source](ROWS, values, OWNERS, folder))
    if data is None:  # a regression's targets in a file may be no text
        in_file = source == "csv" and any(map(is_fraction, values))
        assert expected is None or in_file, "refused without a reason"
    elif data.classes is not None:
        assert groups_of(data, data.y) == expected


MISSING = [None, float("nan"), pd.NA, pd.NaT, np.float64("nan")]
IDS = [
    [*"abcabcab"],
    ["01", "1", "1e5", "100000", "1.0", "+1", " 1", "1_0"],
    ["NA", "None", "null", "nan", "NaN", "N/A", "-", "#N/A"],
    ["é", "e\u0301", "a", "a ", "A", "ß", "ss", "ａ"],
    ["0.0", "-0.0", "0", "-0", "1e16", "1e+16", "inf", "Infinity"],
    [1, 2, 1, 2, 3, 3, 10, 9],
    [2**53, 2**53 + 1, 2**63 - 1, 1 - 2**63, 2, 0, 1, -1],
    [True, False, True, False, True, False, True, False],
    [np.int8(1), 1, np.uint64(1), 2, np.int64(2), 2, 3, 3],
    [1.0, 2.5, 1.0, 2.5, -0.5, 1e-300, 1e300, 0.0],
    [1, "1", 2, "2", 1, "1", 2, "2"],
    [True, 1, 0, False, 1, 0, True, False],
    *([*"abcdefg", missing] for missing in MISSING),
    *([1, 2, 3, missing, 1, 2, 3, 4] for missing in MISSING),
]


@pytest.mark.parametrize("source", SOURCES)
def test_ids_and_labels_are_never_merged_or_invented(source, tmp_path):
    for values in IDS:
        check_ids(source, values, tmp_path)


@pytest.mark.parametrize("value", [2**63, np.uint64(2**63), -(2**64), "a\0"])
def test_ids_that_numpy_would_change_are_refused(value):
    for values in ([value] * N, np.array([value] * N, object)):
        assert refused_or_data(lambda: fs.federated(X, LABELS, clients=values)) is None  # noqa: B023


INTEGERS_OF_64_BITS = st.integers(1 - 2**63, 2**63 - 1)
ONE_ID = st.one_of(
    st.sampled_from(["NA", "None", "01", "1", "1e5", "100000", "1.0", "true", "0.50", ".5", "-0"]),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), max_size=3),
    st.integers(-3, 3) | INTEGERS_OF_64_BITS,
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(MISSING),
)
SAME_TYPE = st.one_of(
    *(st.lists(one, min_size=N, max_size=N) for one in (st.text("01e.5+- ", max_size=3), ONE_ID)),
    st.lists(st.integers(-2, 2) | INTEGERS_OF_64_BITS, min_size=N, max_size=N),
)


@pytest.mark.parametrize(
    "count", [25, pytest.param(400, marks=pytest.mark.long)], ids=["few", "many"]
)
@pytest.mark.parametrize("source", SOURCES)
def test_any_ids_and_labels(source, count, tmp_path):
    @settings(max_examples=count)
    @given(SAME_TYPE)
    def check(values):
        check_ids(source, values, tmp_path)

    check()
