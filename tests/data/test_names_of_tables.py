"""Tables are aligned by name and index, or refused in one line."""

import warnings
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shared import line_of

import fedsampling as fs

from .hostile import assert_same

N = 20
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(N, 3)) * [1, 10, 100], columns=[*"abc"])
LABELS = pd.Series(np.arange(N) % 2)
OWNERS = pd.Series(np.arange(N) % 4)
ALIGNED = pytest.mark.filterwarnings("ignore:.*(reordered|no column names)")


class TestNames:
    """Tables are aligned by name and index, whatever their order."""

    @ALIGNED
    @given(st.permutations([*"abc"]), st.permutations(range(N)), st.permutations(range(N)))
    def test_any_order_of_columns_and_rows_gives_the_same_data(self, columns, rows, others):
        expected = fs.federated(FRAME, LABELS, clients=OWNERS, x_test=FRAME, y_test=LABELS)
        tests = {"x_test": FRAME[columns].iloc[others], "y_test": LABELS}
        data = fs.federated(FRAME, LABELS.iloc[rows], clients=OWNERS.iloc[others], **tests)
        np.testing.assert_array_equal(data.x_test, expected.x_test[[*others]])
        np.testing.assert_array_equal(data.y_test, expected.y_test[[*others]])
        for name in ("x", "y", "start"):
            np.testing.assert_array_equal(getattr(data, name), getattr(expected, name))
        parts = [(FRAME[k == OWNERS], LABELS[k == OWNERS]) for k in range(4)]
        shuffled = [(x if k == 0 else x[columns], y.iloc[::-1]) for k, (x, y) in enumerate(parts)]
        assert_same(fs.from_clients(shuffled), fs.from_clients(parts))

    def test_a_warning_says_what_was_aligned(self):
        with pytest.warns(UserWarning, match="^y: rows reordered by index, as in x; and 1 more$"):
            fs.federated(FRAME, LABELS[::-1], clients=OWNERS[::-1])
        parts = {"p": (FRAME, LABELS), "q": (FRAME[["b", "a", "c"]], LABELS)}
        with pytest.warns(UserWarning, match="^client q: x: columns reordered by name, as in cl"):
            fs.from_clients(parts)
        with pytest.warns(UserWarning, match="^x_test: has no column names; taken in the order of"):
            fs.federated(FRAME, LABELS, clients=OWNERS, x_test=FRAME.to_numpy(), y_test=LABELS)

    def test_equal_names_and_arrays_without_names_are_silent(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fs.federated(FRAME, LABELS, clients=OWNERS, x_test=FRAME[:4], y_test=LABELS[:4])
            fs.federated(FRAME.to_numpy(), LABELS[::-1].to_numpy(), clients=OWNERS.to_numpy())
            fs.federated(pd.DataFrame(FRAME.to_numpy()), LABELS, clients=OWNERS)

    REFUSED: ClassVar = {
        "other name": (
            lambda: fs.from_clients([(FRAME, LABELS), (FRAME.rename(columns={"a": "z"}), LABELS)]),
            "client 1: x: columns 'z' are not in client 0: x; rename or remove",
        ),
        "missing name": (
            lambda: fs.federated(FRAME, LABELS, clients=OWNERS, x_test=FRAME[["a"]], y_test=LABELS),
            "x_test: no columns 'b', 'c', which x has; add them",
        ),
        "other index": (
            lambda: fs.federated(FRAME, LABELS.set_axis(range(5, N + 5)), clients=OWNERS),
            "y: its index differs from that of x, such as 20; use the same index, or pass",
        ),
        "duplicate index": (
            lambda: fs.federated(FRAME, LABELS.set_axis([0, *range(N - 1)]), clients=OWNERS),
            "y: its index differs from that of x, such as 0 twice; use",
        ),
        "rows with other names": (
            lambda: fs.federated([FRAME.iloc[0], FRAME.iloc[1, ::-1]], [0, 1], clients=[0, 1]),
            "x: samples with other names, or in another order; pass a table",
        ),
        "set of clients": (
            lambda: fs.from_clients({((1.0, 2.0), (0, 1)), ((3.0, 4.0), (0, 1))}),
            "samples: a set has no order; pass a list, or a dict of clients",
        ),
        "text for a number": (
            lambda: fs.from_frame(
                pd.DataFrame(FRAME.to_numpy()).assign(y=LABELS), target="y", client="2"
            ),
            "client: no column '2' of type str; pass 2, of type int",
        ),
    }

    @pytest.mark.parametrize("name", REFUSED)
    def test_what_does_not_match_is_refused(self, name):
        call, line = self.REFUSED[name]
        assert line_of(call).startswith(line)

    def test_a_set_of_features_has_the_order_of_the_table(self):
        table = FRAME.assign(y=LABELS, c=OWNERS)
        data = fs.from_frame(table, target="y", client="c", features={"c", "a", "b"} - {"c"})
        assert_same(data, fs.from_frame(table[[*"abyc"]], target="y", client="c"))


TABLE = FRAME.assign(y=LABELS, c=OWNERS)
COLUMNS = {"target": "y", "client": "c"}
WRONG_COLUMNS = {
    "names": (TABLE.assign(d=[f"p{k}" for k in range(N)]), "has 20 categories in 20 rows; remove"),
    "mark": (TABLE.assign(d=["1"] * 19 + ["NA"]), "'NA' in row 19 is not a number"),
    "dates": (TABLE.assign(d=pd.Timestamp("2020-01-01")), "'d' has dates; convert to numbers"),
    "durations": (TABLE.assign(d=pd.Timedelta("1D")), "'d' has durations; convert to numbers"),
}


@pytest.mark.parametrize("encode", [None, "pooled"])
@pytest.mark.parametrize("name", WRONG_COLUMNS)
def test_columns_that_no_encoding_fits_are_refused_with_the_cause(name, encode):
    table, line = WRONG_COLUMNS[name]
    text = line_of(lambda: fs.from_frame(table, encode=encode, **COLUMNS))
    assert line in text or (name == "names" and encode is None and "not numeric: 'd'" in text)


class Transformed:
    """A stand-in of ``datasets.Dataset`` with a transform."""

    column_names = ("x", "y", "c")

    def __init__(self, noise):
        self.noise = noise

    def __getitem__(self, name):
        if name == "x":
            return [row + self.noise * RNG.normal() for row in FRAME.to_numpy()]
        return (LABELS if name == "y" else OWNERS).tolist()


def test_a_table_with_a_random_transform_is_refused():
    assert fs.from_huggingface(Transformed(0), target="y", client="c", features="x").n_clients == 4
    line = line_of(lambda: fs.from_huggingface(Transformed(1), target="y", client="c"))
    assert line == "frame: column 'x': sample 0 differs each time; remove random transforms"
