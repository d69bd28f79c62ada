"""Hostile samples, labels and owners give the numbers of their clean twin, or one line.

Each source of data gets the same columns: arrays, clients, tables, and files of each type.
"""

import csv
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fedsampling as fs

N = 8
ROWS = np.arange(N, dtype=float)[:, None]  # a feature that identifies the sample
LABELS = [*"abababab"]
OWNERS = [*"ppppqqqq"]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
BYTES = RNG.integers(1, 255, (N, 6))
BYTES[:, 0], BYTES[:, 1] = 0, 255


def refused_or_data(call):
    """Return the data, or None if the call is refused in one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of whole numbers as targets
        try:
            return call()
        except fs.InputError as error:
            lines = str(error).splitlines()
    assert len(lines) == 1
    assert len(lines[0]) < 250
    return None


def assert_same(data, twin):
    for name in ("x", "y", "start", "p", "x_test", "y_test"):
        np.testing.assert_array_equal(getattr(data, name), getattr(twin, name))
        assert getattr(data, name).dtype == getattr(twin, name).dtype
    assert data.classes == twin.classes


class Columns:
    """A stand-in of ``datasets.Dataset``: named columns, each a list of values."""

    def __init__(self, columns):
        self.columns = columns
        self.column_names = [*columns]

    def __getitem__(self, name):
        return self.columns[name]


def from_clients(x, y, owner, folder):
    parts = {}
    for row, name in enumerate(owner):
        parts.setdefault(name, []).append(row)
    return fs.from_clients(
        [([x[i] for i in rows], [y[i] for i in rows]) for rows in parts.values()]
    )


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


def changed(array, row, value):
    array = np.array(array)
    array[row] = value
    return array


MASKED = np.ma.masked_array(X, X > 1)
SAMPLES = {  # x, and the same numbers as a plain array; None if it must be refused
    "with gradient": (torch.tensor(X, requires_grad=True), X),
    "list of tensors": ([*torch.tensor(X)], X),
    "objects": (X.astype(object), X),
    "big endian": (X.astype(">f8"), X),
    "negative strides": (X[::-1][::-1], X),
    "one feature": (X[:, 0], X[:, :1]),
    "booleans": (X > 0, (X > 0).astype(float)),
    "float32's largest": (changed(X, 2, 3.4e38), changed(X, 2, 3.4e38)),
    "negative images": (BYTES.reshape(N, 2, 3) - 1, (BYTES.reshape(N, 2, 3) - 1).astype(float)),
    "too large": (changed(X, 2, 1e300), None),
    "masked": (MASKED, None),
    "missing object": (changed(X.astype(object), (2, 1), None), None),
    "text in a list": ([[1, "2", 3]] * N, None),
    "mixed objects": (changed(X.astype(object), (2, 1), True), None),
    "dates": (BYTES.astype("M8[s]"), None),
    "complex": (X + 1j, None),
    "zero features": (X[:, :0], None),
    "zero rows": (X[:0], None),
    "ragged": ([[1.0]] * (N - 1) + [[1.0, 2.0]], None),
    "text": ("data", None),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_keep_their_numbers_or_are_refused(name, tmp_path):
    x, plain = SAMPLES[name]
    data = refused_or_data(lambda: fs.federated(x, LABELS, clients=OWNERS))
    assert (data is None) == (plain is None)
    if plain is not None:
        assert_same(data, fs.federated(plain, LABELS, clients=OWNERS))
        halves = [(x[:4], LABELS[:4]), (x[4:], LABELS[4:])]
        assert_same(fs.from_clients(halves), data)
        if not isinstance(x, np.ndarray) or x.dtype == object:
            return
        np.savez(tmp_path / "data.npz", x=x, y=LABELS, client=OWNERS, x_test=x, y_test=LABELS)
        file = fs.load("files", path=str(tmp_path / "data.npz"))
        assert_same(file, fs.federated(plain, LABELS, clients=OWNERS, x_test=plain, y_test=LABELS))


TARGETS = {  # y of floats or sequences; None if it must be refused
    "column": (X[:, :1], X[:, 0]),
    "float32": (torch.tensor(X[:, 0]).float(), X[:, 0].astype(np.float32).astype(float)),
    "two columns": (X[:, :2], None),
    "NaN": (changed(X[:, 0], 3, np.nan), None),
    "too large": (changed(X[:, 0], 3, 1e300), None),
    "dates": (BYTES[:, 0].astype("M8[s]"), None),
    "category": (pd.Categorical(LABELS), LABELS),
    "nullable": (pd.array(BYTES[:, 0], "Int64"), BYTES[:, 0]),
    "missing nullable": (pd.array([*range(7), None], "Int64"), None),
}


@pytest.mark.parametrize("name", TARGETS)
def test_targets_keep_their_numbers_or_are_refused(name):
    y, plain = TARGETS[name]
    data = refused_or_data(lambda: fs.federated(X, y, clients=OWNERS))
    assert (data is None) == (plain is None)
    if plain is not None:
        assert_same(data, fs.federated(X, plain, clients=OWNERS))
        assert_same(
            fs.from_frame(pd.DataFrame(X).assign(y=y, c=OWNERS), target="y", client="c"), data
        )


TOKENS = np.abs(BYTES)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (TOKENS - 300, TOKENS),
        (TOKENS / 2, TOKENS),
        (TOKENS.astype(np.uint64) + 2**63, TOKENS),
        (TOKENS, TOKENS.astype(str)),
        (TOKENS, TOKENS - 300),
        (TOKENS, TOKENS[:, :4]),
        (TOKENS.reshape(N, 2, 3), TOKENS[:, 0]),
    ],
)
def test_wrong_tokens_are_refused(x, y):
    assert refused_or_data(lambda: fs.federated(x, y, clients=OWNERS, tokens=True)) is None


UNIT = BYTES / 255
SCALED = [UNIT, UNIT.astype(np.float32), (UNIT - 0.5) / 0.5]
STORED = [BYTES, BYTES.astype(np.uint8), BYTES.astype(float)]


@pytest.mark.parametrize("scaled", SCALED, ids=["unit", "single", "centred"])
@pytest.mark.parametrize("stored", STORED, ids=["integers", "bytes", "floats"])
@pytest.mark.parametrize("shape", [(6,), (2, 3)], ids=["table", "images"])
def test_bytes_beside_fractions_are_refused(scaled, stored, shape):
    parts = [(part.reshape(N, *shape), LABELS) for part in (stored, scaled)]
    for (x, y), (x_test, y_test) in (parts, parts[::-1]):
        call = {"clients": OWNERS, "x_test": x_test, "y_test": y_test}
        assert refused_or_data(lambda: fs.federated(x, y, **call)) is None  # noqa: B023
        assert refused_or_data(lambda: fs.from_clients([(x, y), (x_test, y_test)])) is None  # noqa: B023
    with pytest.raises(
        fs.InputError, match=r"client 0 has whole numbers 0…255, client 1 fractions (0|-1)…1;"
    ):
        fs.from_clients(parts)


@pytest.mark.parametrize(
    "count", [50, pytest.param(2000, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_measurements_of_different_size_are_no_false_alarm(count):
    sizes = st.lists(st.floats(-6, 6), min_size=3, max_size=3)

    @settings(max_examples=count)
    @given(st.integers(0, 2**32 - 1), sizes, st.sampled_from([0, 1, 2, 5]))
    def check(seed, sizes, decimals):
        rng = np.random.default_rng(seed)
        parts = [np.round(rng.lognormal(size, 2, (20, 2)), decimals) for size in sizes]
        first, second, test = ((part, np.arange(20) % 2) for part in parts)
        tests = dict(zip(("x_test", "y_test"), test, strict=True))
        assert fs.from_clients([first, second], **tests).n_clients == 2

    check()


FRAME = pd.DataFrame(X, columns=[*"pqr"]).assign(y=LABELS, c=OWNERS)
BY_LEVEL = pd.concat({"x": FRAME[[*"pqr"]], "is": FRAME[["y", "c"]]}, axis=1)
INTEGERS = pd.DataFrame(FRAME.to_numpy()).astype({0: float, 1: float, 2: float})
TABLES = {  # a table and its options; whether it must give the clients of FRAME
    "integer names": (INTEGERS, {"target": 3, "client": 4}, True),
    "levels": (BY_LEVEL, {"target": ("is", "y"), "client": ("is", "c")}, True),
    "dict of columns": (FRAME.to_dict("list"), {}, True),
    "dict of splits": ({"train": FRAME, "test": FRAME}, {}, None),
    "nullable": (FRAME.convert_dtypes(), {}, True),
    "other index": (FRAME.set_axis([7] * N), {}, True),
    "duplicate": (pd.concat([FRAME, FRAME[["p"]]], axis=1), {}, False),
    "outer level": (BY_LEVEL, {"target": "is", "client": ("is", "c")}, False),
    "arrays beside features": (FRAME.assign(p=[*X]), {"encode": "pooled"}, False),
    "no rows": (FRAME[:0], {}, False),
    "test without target": ({"train": FRAME, "test": FRAME[[*"pqr"]]}, {}, False),
    "test without feature": ({"train": FRAME, "test": FRAME.drop(columns="p")}, {}, False),
    "only a test": ({"test": FRAME}, {}, False),
    "two tests": ({"train": FRAME, "test": FRAME}, {"x_test": X, "y_test": LABELS}, False),
    "unequal columns": ({**FRAME.to_dict("list"), "p": [1.0]}, {}, False),
    "target as feature": (FRAME, {"features": ["p", "y"]}, False),
    "unknown feature": (FRAME, {"features": ["p", "z"]}, False),
    "array": (X, {}, False),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_give_the_same_clients_or_are_refused(name):
    table, options, fits = TABLES[name]
    options = {"target": "y", "client": "c", **options}
    data = refused_or_data(lambda: fs.from_frame(table, **options))
    assert (data is not None) == (fits is not False)
    if fits:
        assert_same(data, fs.federated(X, LABELS, clients=OWNERS))


def as_npz(path, **changes):
    arrays = {"x": X, "y": np.array(LABELS), "client": np.array(OWNERS), **changes}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path.read_bytes()


CSV = "p,q,y,client\n1,2,a,u\n3,4,b,v\n5,6,a,v\n"


def twice(text):
    """Repeat the rows of a CSV, so that half of each client's samples can be tests."""
    header, *lines = text.splitlines()
    return "\n".join([header, *lines, *lines, ""]).encode()


WRONG_ARRAYS = [{"x": None}, {"labels": np.ones(N)}, {"x_test": X}, {"y": np.array(LABELS, object)}]
WRONG_TEXTS = [
    "p,p,y,client\n1,2,a,u\n3,4,b,v\n",
    "p,y,client\n1,2,a,u\n3,4,b,v\n",
    "p,q,y,client\n1,NA,a,u\n3,4,b,v\n",
    "p,q,y,client\n1,,a,u\n3,4,b,v\n",
    "p,q,y,client\n1,2,1.5,u\n3,4,NA,v\n",
    "y,client\na,u\nb,v\n",
]


def cut(content):
    return [content[: len(content) * part // 7] for part in range(7)]


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".csv"])
def test_damaged_files_are_refused(suffix, tmp_path):
    whole = as_npz(tmp_path / "whole.npz")
    FRAME.rename(columns={"c": "client"}).to_parquet(tmp_path / "whole.parquet")
    parquet = (tmp_path / "whole.parquet").read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 255
    np.save(tmp_path / "array.npy", X)
    array = (tmp_path / "array.npy").read_bytes()
    arrays = [as_npz(tmp_path / "n.npz", **changes) for changes in WRONG_ARRAYS]
    texts = map(twice, WRONG_TEXTS)
    contents = {  # the first is valid
        ".npz": [whole, *cut(whole), bytes(flipped), CSV.encode(), parquet, array, *arrays],
        ".parquet": [parquet, *cut(parquet), whole, b"PAR1"],
        ".csv": [twice(CSV), b"", b"\n", whole, parquet, CSV[:13].encode(), *texts],
    }
    for position, content in enumerate(contents[suffix]):
        path = tmp_path / f"{position}{suffix}"
        path.write_bytes(content)
        data = refused_or_data(lambda: fs.load("files", path=str(path), test_share=0.5))  # noqa: B023
        assert (data is None) == (position > 0), position


def test_texts_of_a_csv_are_numbers_only_if_none_is_lost(tmp_path):
    def targets(*texts):
        lines = [f"{row},{text},u,0\n" for row, text in enumerate(texts)]
        (tmp_path / "data.csv").write_text(f"p,y,client,test\n{''.join(lines)}0,{texts[0]},u,1\n")
        return fs.load("files", path=str(tmp_path / "data.csv"), test="test")

    data = targets("3", "2.50", "1e+05", "-.5")  # as R writes a regression's targets
    assert (data.classes, data.y.tolist()) == (None, [3, 2.5, 1e5, -0.5])
    assert targets("10", "9", "10").y.tolist() == [1, 0, 1]  # 9 comes before 10
    assert targets("10", "09", "10").y.tolist() == [1, 0, 1]
    assert targets("1e5", "100000", "01", "1").classes == 4
    assert targets("NA", "None", "null", "nan").classes == 4


class Reused:
    """Arrays, one for each row or client, that share their memory."""

    def __init__(self, arrays, labels=None):
        self.arrays, self.labels = arrays, labels
        self.memory = np.zeros_like(arrays[0])

    def __len__(self):
        return len(self.arrays)

    def __getitem__(self, row):
        self.memory[:] = self.arrays[row]
        return self.memory if self.labels is None else (self.memory, self.labels[row])

    def __iter__(self):
        return map(self.__getitem__, range(len(self)))


def test_sources_may_reuse_their_memory():
    twin = fs.federated(X, LABELS, clients=OWNERS)
    assert_same(fs.federated(Reused(X, LABELS), clients=OWNERS), twin)
    columns = Columns({"x": iter(Reused(X)), "y": LABELS, "c": OWNERS})
    assert_same(fs.from_huggingface(columns, target="y", client="c", features="x"), twin)
    parts = iter(Reused([X[:4], X[4:]], [LABELS[:4], LABELS[4:]]))
    assert_same(fs.from_clients(parts), twin)


def test_data_do_not_share_memory_with_their_source():
    x, y, owner = X.astype(np.float32), X[:, 0].copy(), np.array([0, 1] * 4)
    data = fs.federated(x, y, clients=owner, x_test=x, y_test=y)
    twin = fs.federated(x.copy(), y.copy(), clients=owner, x_test=x.copy(), y_test=y.copy())
    x[:], y[:] = 0, 0
    assert_same(data, twin)
