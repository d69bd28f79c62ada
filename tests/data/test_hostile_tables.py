"""Hostile tables and files give the data of their clean twin, or one line."""

import numpy as np
import pandas as pd
import pytest

import fedsampling as fs

from .hostile import LABELS, OWNERS, N, X, assert_same, refused_or_data

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
