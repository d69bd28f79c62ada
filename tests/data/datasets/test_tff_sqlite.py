"""TFF's databases: what is written is read, what is no such database is refused."""

import lzma
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.data.formats import tff
from fedsampling.data.formats.tff_files import FeatureType, Part, sqlite_examples, unpack_parts

from .tff_files import Features, database, hdf5_of

RNG = np.random.default_rng(0)


def digit(label: int) -> Features:
    return {"pixels": RNG.random((28, 28), np.float32), "label": np.array([label])}


DIGITS = {
    "digits_only_train": {"f2": [digit(2), digit(0)], "f1": [digit(1)]},
    "all_train": {"f1": [digit(40)]},
    "digits_only_test": {"f2": [digit(2)]},
}


@pytest.fixture
def parts(tmp_path: Path) -> tuple[Part, Part]:
    path = database(tmp_path / "a.sqlite", DIGITS)
    return Part(path, "digits_only_train"), Part(path, "digits_only_test")


def test_both_layouts_of_the_same_samples_give_the_same_arrays(tmp_path, parts):
    pytest.importorskip("h5py", reason="writing TFF's files needs h5py")
    old = [Part(hdf5_of(tmp_path / f"{part.split}.h5", DIGITS[part.split])) for part in parts]
    one, other = (tff.read_digits("tff_emnist", *each) for each in (parts, old))
    assert one.y.tolist() == [1, 2, 0]  # clients by name, samples by row
    for name in ("x", "y", "x_test", "y_test", "writer", "writer_test"):
        ours, theirs = getattr(one, name), getattr(other, name)
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
    assert list(one.inputs) == ["a.sqlite"]


def test_images_stored_as_numbers_become_bytes(tmp_path):
    image = RNG.integers(256, size=(32, 32, 3))
    sample = {"image": image, "label": np.array([99]), "coarse_label": np.array([3])}
    path = database(tmp_path / "a.sqlite", {"train": {"9": [sample]}, "test": {"0": [sample]}})
    samples = tff.read_cifar100(Part(path, "train"), Part(path, "test"))
    assert samples.x.dtype == np.uint8
    np.testing.assert_array_equal(samples.x[0], image)
    assert samples.y.tolist() == [99]


def test_snippets_are_bytes_by_role(tmp_path):
    lines = {"B": [{"snippets": [b"To be,"]}, {"snippets": ["or n\u00f6t".encode()]}]}
    path = database(tmp_path / "a.sqlite", {"train": {**lines, "A": [{"snippets": [b""]}]}})
    result = tff.read_snippets(Part(path, "train"))
    assert result == {"A": (b"",), "B": (b"To be,", "or n\u00f6t".encode())}


@pytest.mark.parametrize(
    ("sample", "fault"),
    [
        ({"image": np.zeros(3072, np.int64)}, "9 has no 'label', but"),
        ({"image": np.zeros(3071, np.int64), "label": np.array([1])}, r"image int64 \(3071,\)"),
        ({"image": np.zeros(3072, np.float32), "label": np.array([1])}, "image float32"),
        ({"image": np.full(3072, 256), "label": np.array([1])}, "not uint8"),
        ({"image": [b"png"], "label": np.array([1])}, "image object"),
        ({"image": np.zeros(3072, np.int64), "label": np.array([1, 2])}, r"label int64 \(2,\)"),
    ],
)
def test_samples_of_another_kind_are_rejected(tmp_path, sample, fault):
    path = database(tmp_path / "a.sqlite", {"train": {"9": [sample]}})
    with pytest.raises(ValueError, match=fault):
        tff.read_cifar100(Part(path, "train"), Part(path, "train"))


def opened(path: Path, split: str = "train") -> dict[str, int]:
    with sqlite_examples(path, split, {"label": FeatureType((), np.int64)}) as result:
        return result.sizes


def test_other_files_are_rejected_as_databases(tmp_path):
    path = tmp_path / "a.sqlite"
    path.write_bytes(b"<html>" * 1000)
    with pytest.raises(ValueError, match="not a database of examples"):
        opened(path)
    with pytest.raises(ValueError, match="not a database of examples"):
        opened(tmp_path / "absent")
    database(tmp_path / "b.sqlite", {"train": {"a": [digit(1)]}})
    with pytest.raises(ValueError, match="val has no examples"):
        opened(tmp_path / "b.sqlite", "val")


def test_a_view_is_not_mistaken_for_the_table(tmp_path):
    connection = sqlite3.connect(tmp_path / "a.sqlite")
    connection.execute(
        "CREATE VIEW examples AS SELECT 'train' AS split_name, 'a' AS client_id,"
        " randomblob(9) AS serialized_example_proto"
    )
    connection.commit()
    connection.close()
    with pytest.raises(ValueError, match="has no table 'examples'"):
        opened(tmp_path / "a.sqlite")


def test_a_value_that_would_fill_the_memory_is_rejected(tmp_path):
    sample = {"label": np.array([1]), "other": [bytes(2 << 20)]}
    path = database(tmp_path / "a.sqlite", {"train": {"a": [sample]}})
    with (
        pytest.raises(ValueError, match="not a database of examples"),
        sqlite_examples(path, "train", {"label": FeatureType((), np.int64)}) as result,
    ):
        result.read("a")


def test_reading_leaves_nothing_behind(tmp_path, parts):
    before = parts[0].path.read_bytes()
    opened(parts[0].path, "all_train")
    assert [each.name for each in tmp_path.iterdir()] == ["a.sqlite"]
    assert parts[0].path.read_bytes() == before


def test_damaged_archive_is_rejected(tmp_path):
    (tmp_path / "all.sqlite.lzma").write_bytes(lzma.compress(bytes(9))[:-9])
    with pytest.raises(InputError, match=r"it cannot be decompressed .*fetch it again"):
        unpack_parts(tmp_path / "all.sqlite.lzma", "tff_emnist", "sqlite", tmp_path)
