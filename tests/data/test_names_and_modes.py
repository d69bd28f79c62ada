"""Samples keep what their names, order, modes and files mean, or are refused in one line."""

import gzip
import warnings
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from tests.shared import line_of
from torch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    SubsetRandomSampler,
    TensorDataset,
)

import fedsampling as fs

N = 20
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(N, 3)) * [1, 10, 100], columns=[*"abc"])
LABELS = pd.Series(np.arange(N) % 2)
OWNERS = pd.Series(np.arange(N) % 4)
ALIGNED = pytest.mark.filterwarnings("ignore:.*(reordered|no column names)")


def assert_same(data, twin):
    for name in ("x", "y", "start", "x_test", "y_test"):
        np.testing.assert_array_equal(getattr(data, name), getattr(twin, name))


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


GRAY = Image.fromarray(RNG.integers(0, 256, (6, 6), np.uint8))
COLOURED = Image.fromarray(RNG.integers(0, 256, (6, 6, 3), np.uint8))
DEEP = Image.fromarray(RNG.integers(0, 2**16, (6, 6), np.uint16))
MODES = {  # an image, and the pixels that it shows
    "L": (GRAY, GRAY),
    "P": (COLOURED.quantize(8), COLOURED.quantize(8).convert("RGB")),
    "1": (GRAY.convert("1"), GRAY.convert("1").convert("L")),
    "RGB": (COLOURED, COLOURED),
    "CMYK": (COLOURED.convert("CMYK"), COLOURED.convert("CMYK")),
    "RGBA": (COLOURED.convert("RGBA"), COLOURED.convert("RGBA")),
    "I;16": (DEEP, DEEP),
}


def images(first, second, as_clients):
    if as_clients:
        return fs.from_clients([([first] * 4, [0, 1] * 2), ([second] * 4, [0, 1] * 2)])
    table = {"image": [first, second] * 2, "y": [0, 0, 1, 1], "c": [0, 1, 0, 1]}
    return fs.from_frame(table, target="y", client="c")


@pytest.mark.parametrize("as_clients", [False, True])
@pytest.mark.parametrize("other", MODES)
@pytest.mark.parametrize("mode", MODES)
def test_images_have_the_colours_that_they_show_and_one_mode(mode, other, as_clients):
    (first, shown), (second, other_shown) = MODES[mode], MODES[other]
    if shown.mode == other_shown.mode:
        data = images(first, second, as_clients)
        np.testing.assert_array_equal(data.x[0], np.asarray(shown))
        np.testing.assert_array_equal(data.x[-1], np.asarray(other_shown))
    else:
        line = line_of(lambda: images(first, second, as_clients))
        assert "convert all to one, such as image.convert(" in line


@pytest.mark.parametrize("shape", [(6, 6), (36,), (6, 6, 3)], ids=["gray", "flat", "coloured"])
def test_bytes_beside_bits_or_more_bits_are_refused(shape):
    byte = RNG.integers(0, 256, (8, *shape))
    parts = {"bits": byte // 128, "deep": 257 * byte, "bytes": byte[::-1], "centred": byte - 128}
    for name, part in parts.items():
        call = lambda: fs.from_clients([(byte, [0, 1] * 4), (part, [0, 1] * 4)])  # noqa: B023, E731
        if name == "bytes" or (name == "deep" and len(shape) == 1):
            call()
        else:
            assert line_of(call).startswith("x: different scales; client ")


class Samples(Dataset):
    """Numbered samples; some are augmented, or have random labels."""

    def __init__(self, n, augment=False, random_labels=False):
        self.n, self.augment, self.random_labels = n, augment, random_labels

    def __len__(self):
        return self.n

    def __getitem__(self, row):
        x = torch.arange(4.0) + row
        y = int(torch.randint(1000, ())) if self.random_labels else row % 2
        return x + torch.randn(4) * self.augment, y


def centred(items):
    x, y = torch.utils.data.default_collate(items)
    return x - x.mean(0), y


def doubled(items):
    x, y = torch.utils.data.default_collate(items)
    return 2 * x, y


class Stream(IterableDataset):
    def __iter__(self):
        return iter([(torch.ones(2), 0)])


class Dicts(Samples):
    def __getitem__(self, row):
        return {"pixels": torch.ones(2), "digit": row}


class Augmented(TensorDataset):
    def __getitem__(self, row):
        x, y = super().__getitem__(row)
        return x + torch.randn(4), y


TENSORS = torch.ones(N, 4), torch.arange(N)
SHUFFLED = DataLoader(Samples(N), batch_size=7, shuffle=True, drop_last=True)
HALF = BatchSampler(SubsetRandomSampler(range(10)), 5, drop_last=False)
DATASETS = {  # a dataset, and the start of the line that refuses it
    "plain": (Samples(N), ""),
    "shuffled": (SHUFFLED, ""),
    "own collate": (DataLoader(Samples(N), batch_size=7, collate_fn=doubled), ""),
    "no batches": (DataLoader(Samples(N), batch_size=None), ""),
    "augmented part": (
        ConcatDataset([Samples(10), Samples(10, True)]),
        "x: sample 10 differs each",
    ),
    "random labels": (Samples(N, random_labels=True), "x: label of sample 0 differs each"),
    "centred batches": (
        DataLoader(Samples(N), batch_size=7, collate_fn=centred),
        "x: sample 0 depends on its batch or differs each time; remove collate_fn",
    ),
    "augmented tensors": (Augmented(*TENSORS), "x: sample 0 differs each time; remove random tr"),
    "stream": (Stream(), "x: an iterable dataset has no order; use a map-style one, or two"),
    "chain": (ChainDataset([Stream()]), "x: an iterable dataset has no order"),
    "loader of a stream": (DataLoader(Stream()), "x: an iterable dataset has no order"),
    "dicts": (Dicts(N), "x: Dicts gives dicts with the fields 'pixels', 'digit'; choose two: x=["),
    "tensors alone": (TensorDataset(torch.ones(4, 2)), "x: TensorDataset has no pairs of sample"),
}


@pytest.mark.parametrize("name", DATASETS)
def test_datasets_give_the_same_samples_each_time_or_are_refused(name):
    dataset, line = DATASETS[name]
    call = lambda: fs.federated(dataset, clients=OWNERS)  # noqa: E731
    if line:
        assert line_of(call).startswith(line)
    else:
        scale = 2 if name == "own collate" else 1
        rows = call().x[:, 0] / scale
        assert sorted(rows.tolist()) == [*range(N)]


def test_a_loader_with_batches_of_its_own_gives_their_samples():
    data = fs.federated(DataLoader(Samples(N), batch_sampler=HALF), clients=OWNERS[:10])
    assert sorted(data.x[:, 0].tolist()) == [*range(10)]


ONES = torch.ones(4, 2)
TENSOR_KINDS = {
    "bfloat16": (ONES.bfloat16() / 3, ""),
    "float8": (ONES.to(torch.float8_e4m3fn), ""),
    "half": (ONES.half() / 3, ""),
    "conjugate": ((ONES + 2j).conj().imag, ""),
    "sparse": (ONES.to_sparse(), "x: a sparse tensor; pass tensor.to_dense()"),
    "quantised": (
        torch.quantize_per_tensor(ONES, 0.1, 0, torch.quint8),
        "x: a quantised tensor; pass tensor.dequantize()",
    ),
    "meta": (ONES.to("meta"), "x: a meta tensor has no values; pass one with values"),
    "complex": (ONES + 1j, "x: contains values of type complex64; convert to numbers"),
    "none": ([*ONES[:3], None], "x: missing in 1 of 4 samples, first in row 3; remove these"),
    "number": ([*ONES[:3], 3], "x: rows differ in shape, such as (2,) in row 0 and () in row 3;"),
    "dicts": ([{"a": 1.0}] * 4, "x: dicts with the fields 'a'; pass a list of one field"),
}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", TENSOR_KINDS)
def test_tensors_keep_their_numbers_or_are_refused(name):
    x, line = TENSOR_KINDS[name]
    call = lambda: fs.federated(x, [0, 1, 0, 1], clients=[0, 0, 1, 1])  # noqa: E731
    if line:
        assert line_of(call).startswith(line)
    else:
        np.testing.assert_array_equal(call().x, x.float().resolve_neg().numpy())


CELLS = [("site", "age", "y"), *((k % 6, f"{20 + k}.5", k % 2) for k in range(60))]


def text(separator=",", decimal=".", changes=()):
    rows = [[str(cell).replace(".", decimal) for cell in row] for row in CELLS]
    for row, value in changes:
        rows[row + 1][1] = value
    return "\n".join(separator.join(row) for row in rows)


TEXT = text().encode()
TWIN = text(";", ",").encode()
FILES = {  # a name, its content and settings; the start of the error's line
    "plain.csv": (TEXT, {}, ""),
    "tabs.tsv": (text("\t").encode(), {}, ""),
    "packed.csv.gz": (gzip.compress(TEXT), {}, ""),
    "packed.tsv.gz": (gzip.compress(text("\t").encode()), {}, ""),
    "utf16.csv": (text().encode("utf-16"), {}, ""),
    "big.csv": (b"\xfe\xff" + text().encode("utf-16-be"), {}, ""),
    "bom.csv": (text().encode("utf-8-sig"), {}, ""),
    "semicolons.csv": (TWIN, {"separator": ";", "decimal": ","}, ""),
    "bars.csv": (text("|").encode(), {"separator": "|"}, ""),
    "marked.csv": (
        text(changes=[(0, "NA"), (9, "?")]).encode(),
        {"missing": ["NA", "?"], "encode": "pooled"},
        "",
    ),
    "hint.csv": (
        TWIN,
        {},
        "one column 'site;age;y'; its cells are separated by ';': use separator=';', decimal=','",
    ),
    "comma.csv": (
        TWIN,
        {"separator": ";"},
        "column 'age': '20,5' in row 0 has a comma; if it is a",
    ),
    "na.csv": (
        text(changes=[(7, "NA")]).encode(),
        {"encode": "pooled"},
        "column 'age': 'NA' in row 7 is not a number, but 98 % of the values are; correct it or, "
        "if it marks a missing value, use missing='NA'",
    ),
    "typing.csv": (text(changes=[(7, "2o")]).encode(), {}, "column 'age': '2o' in row 7 is not a"),
    "latin.csv": (TEXT + "\n1,é,1".encode("latin-1"), {}, "unreadable ('utf-8' codec can't"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_text_are_read_as_they_are_written(name, tmp_path):
    content, settings, line = FILES[name]
    (tmp_path / name).write_bytes(content)
    call = lambda: fs.load(  # noqa: E731
        "files", path=str(tmp_path / name), client="site", test_share=0.2, **settings
    )
    if line:
        assert f"{name}: {line}" in line_of(call)
    elif "encode" not in settings:
        (tmp_path / "twin.csv").write_bytes(TEXT)
        twin = fs.load("files", path=str(tmp_path / "twin.csv"), client="site", test_share=0.2)
        assert_same(call(), twin)
    else:
        assert call().x.shape[1] == 2  # the number, and whether it is missing


def test_settings_of_text_have_no_effect_on_other_files(tmp_path):
    pd.DataFrame(CELLS[1:], columns=CELLS[0]).to_parquet(tmp_path / "a.parquet")
    line = line_of(lambda: fs.load("files", path=str(tmp_path / "a.parquet"), missing="NA"))
    assert "missing: no effect on a.parquet; remove it" in line


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


def test_a_label_that_a_split_leaves_to_the_tests_is_refused():
    y = ["a"] * 10 + ["b"] * 9 + ["c"]
    lines = []
    for seed in range(20):
        try:
            data = fs.federated(FRAME, y, clients=[0] * N, test_share=0.3, seed=seed)
            assert {*data.y_test.tolist()} <= {*data.y.tolist()}
        except fs.InputError as error:
            lines.append(str(error))
    assert {*lines} == {
        "test_share: all samples of label 'c' became test samples; add samples of it, remove it, "
        "or use another seed"
    }


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
