"""Rows of runs by columns: they are those of the table, cut and joined like a data frame."""

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from fedsampling.runs.rows import joined_rows, rows_of

TABLES = st.lists(
    st.tuples(st.integers(-1, 99), st.sampled_from(["loss", "accuracy", "m"]), st.floats()),
    max_size=9,
).map(
    lambda rows: pd.DataFrame(rows, columns=["at", "metric", "value"]).astype(
        {"at": "int64", "metric": "str", "value": "float64"}
    )
)


@given(TABLES)
def test_rows_are_those_of_the_table(table):
    pd.testing.assert_frame_equal(rows_of(table).table(), table)
    half = len(table) // 2
    cut = rows_of(table).cut(half, len(table)).table()
    pd.testing.assert_frame_equal(cut, table[half:].reset_index(drop=True))


@given(st.lists(TABLES, max_size=4))
def test_joined_rows_are_those_of_the_joined_tables(tables):
    rows = joined_rows([rows_of(table) for table in tables])
    if tables:
        pd.testing.assert_frame_equal(rows.table(), pd.concat(tables, ignore_index=True))
    assert list(rows.names) == sorted({name for table in tables for name in table["metric"]})
    assert len(rows) == sum(map(len, tables))
