"""The run store returns what was written, or nothing."""

import json
import math
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fedsampling.base.errors import InputError
from fedsampling.experiments.config import Config
from fedsampling.runs import noted_parquet, places, store
from fedsampling.runs.rows import digest, rows_of

HASH, OTHER_HASH = "ab" + "0" * 18, "ab" + "1" * 18
METADATA = {"hash": HASH, "code": "c1", "spec": {"seed": 3}, "seconds": 1.5}
KNOWN = "9e6ba6d489ae7b82ac8f935c5346d57593b39bb5a3714270184823cb45c347c6"
TABLE = pd.DataFrame({"at": [0, 1, 1], "metric": ["a", "a", "b"], "value": [1.0, np.nan, 1e-300]})


def rewrite(path, change):
    pq.write_table(change(pq.read_table(path)), path)


def result(table, **metadata):
    return store.Result(rows_of(table), METADATA | {"digest": digest(table)} | metadata)


def test_a_run_is_read_back_with_its_metadata(tmp_path):
    path = store.save(tmp_path, TABLE, METADATA)
    assert path == tmp_path / "ab" / f"{HASH}-c1.parquet" == store.path_of(tmp_path, HASH, "c1")
    loaded = store.load(path)
    pd.testing.assert_frame_equal(loaded.table, TABLE, check_dtype=False)
    assert loaded.metadata == {**METADATA, "digest": digest(TABLE)}


ROWS = st.tuples(
    st.integers(-1, 2**40), st.text(max_size=5).filter(lambda t: "\x00" not in t), st.floats()
)


@settings(max_examples=30)
@given(st.lists(ROWS, max_size=20))
@example([(0, "of inf − inf", -math.nan)])  # its sign, which files do not keep, is the processor's
def test_any_table_is_read_back_exactly(tmp_path_factory, rows):
    table = pd.DataFrame(rows, columns=["at", "metric", "value"])
    table = table.astype({"at": "int64", "metric": "str", "value": "float64"})
    loaded = store.load(store.save(tmp_path_factory.mktemp("store"), table, METADATA)).table
    assert list(loaded["at"]) == list(table["at"])
    assert list(loaded["metric"]) == list(table["metric"])
    written, value = table["value"].to_numpy(), loaded["value"].to_numpy()
    assert np.where(np.isnan(written), np.nan, written).tobytes() == value.tobytes()


def test_the_digest_depends_only_on_the_content():
    equal = TABLE.astype({"at": "int32", "metric": "category"}).set_index(np.array([7, 8, 9]))
    assert digest(equal) == digest(TABLE)
    assert digest(TABLE) == KNOWN
    for column, value in (("at", 5), ("metric", "c"), ("value", 1.0000000000000002)):
        changed = TABLE.copy()
        changed.loc[0, column] = value
        assert digest(changed) != digest(TABLE)


def test_a_truncated_file_is_renamed_and_its_run_can_be_stored_again(tmp_path):
    path = store.save(tmp_path, TABLE, METADATA)
    content = path.read_bytes()
    for length in np.linspace(0, len(content) - 1, 9).astype(int):
        path.write_bytes(content[:length])
        assert store.find([tmp_path], HASH, "c1") is None
        assert not path.exists()
        assert path.with_suffix(".corrupt").read_bytes() == content[:length]
        store.save(tmp_path, TABLE, METADATA)
        assert store.find([tmp_path], HASH, "c1")


@settings(max_examples=200)
@given(st.integers(0, 2**16), st.integers(1, 255))
def test_a_flipped_bit_is_noticed_or_changes_nothing(tmp_path_factory, place, bits):
    path = store.save(tmp_path_factory.mktemp("store"), TABLE, METADATA)
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= bits
    path.write_bytes(content)
    if found := store.find([path.parents[1]], HASH, "c1"):
        pd.testing.assert_frame_equal(found.table, TABLE, check_dtype=False)


def test_text_that_one_bit_turned_into_bytes_is_noticed(tmp_path):
    path = store.save(tmp_path, TABLE, METADATA)
    raw = pa.array([b"a", b"a", b"b"], pa.binary())
    rewrite(path, lambda table: table.set_column(1, "metric", raw))
    assert store.find([tmp_path], HASH, "c1") is None


def test_a_small_file_that_declares_too_many_rows_is_not_read(tmp_path, monkeypatch):
    path = store.save(tmp_path, TABLE, METADATA)
    monkeypatch.setattr(noted_parquet, "MOST_NUMBERS", 9)
    assert store.load(path)
    monkeypatch.setattr(noted_parquet, "MOST_NUMBERS", 8)
    assert store.find([tmp_path], HASH, "c1") is None


def test_a_column_of_another_kind_than_written_is_not_read(tmp_path):
    """With such a damage, pyarrow ends the whole process when it reads the column's metadata."""
    path = store.save(tmp_path, TABLE, METADATA)
    never_missing = pa.field("metric", pa.string(), nullable=False)
    rewrite(path, lambda table: table.set_column(1, never_missing, table["metric"].cast("string")))
    assert store.find([tmp_path], HASH, "c1") is None


def test_a_changed_value_is_detected(tmp_path):
    path = store.save(tmp_path, TABLE, METADATA)
    values = pa.array([1.0, np.nan, 2e-300])
    rewrite(path, lambda table: table.set_column(2, "value", values))
    with pytest.raises(InputError, match="the table does not match its digest; run"):
        store.load(path)
    assert store.find([tmp_path], HASH, None) is None


@pytest.mark.parametrize("key", ["spec", "code", "inputs", "unverified", "seconds", "new"])
def test_changed_metadata_are_detected(tmp_path, key):
    def noting(table, **changes):
        noted = {name.decode(): text for name, text in table.schema.metadata.items()}
        run = json.dumps({**json.loads(noted[store.RUN]), **changes}, sort_keys=True)
        return table.replace_schema_metadata({**noted, store.RUN: run})

    path = store.save(tmp_path, TABLE, METADATA)
    rewrite(path, noting)
    assert store.load(path)
    rewrite(path, lambda table: noting(table, **{key: "other"}))
    assert store.seconds(path) is None
    with pytest.raises(InputError, match="not a result file; run the same command"):
        store.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.replace_schema_metadata(None),
        lambda table: table.replace_schema_metadata({store.RUN: "{"}),
        lambda table: table.replace_schema_metadata({store.RUN: "{}"}),
        lambda table: table.drop_columns(["value"]),
    ],
)
def test_files_of_other_programs_or_without_a_column_are_rejected(tmp_path, change):
    path = store.save(tmp_path, TABLE, METADATA)
    rewrite(path, change)
    with pytest.raises(InputError, match="not a result file"):
        store.load(path)


@pytest.mark.parametrize("key", ["hash", "code"])
def test_a_file_whose_metadata_do_not_name_the_run_is_rejected(tmp_path, key):
    path = store.path_of(tmp_path, HASH, "c1")
    notes = {**METADATA, "digest": digest(TABLE)}
    del notes[key]
    rows = pa.Table.from_pandas(TABLE, preserve_index=False)
    noted_parquet.write(path, store.RUN, rows, json.dumps(notes))
    with pytest.raises(InputError, match="not a result file"):
        store.load(path)
    assert store.find([tmp_path], HASH, None) is None


def test_a_file_with_the_name_of_another_run_is_rejected(tmp_path):
    path = store.save(tmp_path, TABLE, METADATA)
    path.rename(store.path_of(tmp_path, OTHER_HASH, "c1"))
    assert store.find([tmp_path], OTHER_HASH, None) is None


def test_versions_of_the_code_keep_their_runs_side_by_side(tmp_path):
    os.utime(store.save(tmp_path, TABLE, METADATA), (1, 1))
    assert store.find([tmp_path], HASH, "c2") is None
    for age, code in enumerate(("c2", "c3")):
        os.utime(store.save(tmp_path, TABLE, {**METADATA, "code": code}), (9 - age, 9 - age))
    for code in ("c1", "c2", "c3"):
        assert store.find([tmp_path], HASH, code).metadata["code"] == code
    assert store.find([tmp_path], HASH, None).metadata["code"] == "c2"  # the newest


def test_stores_are_searched_in_order(tmp_path):
    stores = [tmp_path / "first", tmp_path / "second"]

    def code():
        run = store.find(stores, HASH, None)
        return run and run.metadata["code"]

    store.save(stores[1], TABLE, {**METADATA, "code": "second"})
    assert code() == "second"
    first = store.save(stores[0], TABLE, {**METADATA, "code": "first"})
    assert code() == "first"
    first.write_bytes(b"PAR1")
    assert code() == "second"


@pytest.mark.parametrize("target", ["nowhere", f"{HASH}-c9.parquet"], ids=["dangling", "loop"])
def test_a_link_that_leads_nowhere_is_no_run_and_hides_no_other(tmp_path, target):
    path = store.save(tmp_path, TABLE, METADATA)
    (path.parent / f"{HASH}-c9.parquet").symlink_to(target)
    (tmp_path / "zz").symlink_to("zz")
    assert places.paths_of_versions(tmp_path, HASH) == [path]
    assert places.file_names(tmp_path) == {path.name}
    config = Config(scale="best", shipped=False, store=str(tmp_path))
    states = dict(places.plan_inputs(tmp_path, config))[str(tmp_path)].decode()
    assert [line.split()[0] for line in states.splitlines()] == [path.name]


def test_runs_of_a_published_file_are_read_back_unchanged(tmp_path):
    runs = [result(TABLE, hash=OTHER_HASH), result(TABLE.iloc[:0])]
    path = tmp_path / "together.parquet"
    store.save_together(path, runs)
    content = path.read_bytes()
    loaded = store.load_together(path)
    assert list(loaded) == [HASH, OTHER_HASH]
    for run in runs:
        loaded_run = loaded[run.metadata["hash"]]
        assert loaded_run.metadata == run.metadata
        pd.testing.assert_frame_equal(loaded_run.table, run.table, check_dtype=False)
    store.save_together(path, reversed(runs))
    assert path.read_bytes() == content


def test_changed_metadata_among_published_runs_are_detected(tmp_path):
    path = tmp_path / "together.parquet"
    for column, old, new in (("metadata", '"c1"', '"c2"'), ("hash", "ab", "ac")):
        store.save_together(path, [result(TABLE)])
        rows = pq.read_table(path)
        changed = pa.array([text.replace(old, new) for text in rows[column].to_pylist()])
        pq.write_table(rows.set_column(rows.column_names.index(column), column, changed), path)
        with pytest.raises(InputError, match="missing or corrupt"):
            store.load_together(path)


@given(st.lists(st.floats(), min_size=1, max_size=20))
def test_rounding_keeps_seven_digits_and_whole_numbers(values):
    table = pd.DataFrame({"at": 0, "metric": "a", "value": values})
    rounded = store.rounded(table)
    relative = 2.0**-store.BITS
    np.testing.assert_allclose(rounded["value"], values, rtol=relative, atol=1e-300)
    is_whole = np.rint(values) == values
    np.testing.assert_array_equal(rounded["value"][is_whole], table["value"][is_whole])
    pd.testing.assert_frame_equal(store.rounded(rounded), rounded, check_exact=True)


@given(st.integers(-999_999, 999_999), st.integers(0, 12))
def test_rounding_keeps_short_decimals_so_that_targets_remain_reached(digits, places):
    table = pd.DataFrame({"at": 0, "metric": "accuracy", "value": [digits / 10.0**places]})
    pd.testing.assert_frame_equal(store.rounded(table), table, check_exact=True)
