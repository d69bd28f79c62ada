"""TFF's files in both layouts, HDF5 and databases: samples are read, other files are rejected."""

import hashlib
import lzma
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.data.formats import tff
from fedsampling.data.formats.tff_files import FeatureType, Part, sqlite_examples, unpack_parts
from fedsampling.data.samples import Samples

from .tff_files import database, hdf5, hdf5_of

h5py = pytest.importorskip("h5py", reason="reading TFF's files needs h5py")


@pytest.fixture(params=["hdf5", "sqlite"])
def write(request, tmp_path):
    """Write a split's samples by client, in one of the two layouts."""

    def write_part(split, clients):
        if request.param == "hdf5":
            return Part(hdf5_of(tmp_path / f"{split}.h5", clients))
        splits = {"other": {"f0001_41": [digit(0.9, 9)]}, split: clients}
        return Part(database(tmp_path / f"{split}.sqlite", splits), split)

    return write_part


def digit(shade, label):
    return {"pixels": np.full((28, 28), shade, np.float32), "label": np.array([label])}


DIGITS = {  # not in the order of the names; f0002_14 has nothing to test with
    "f0003_01": [digit(0.3, 3), digit(0.3, 3)],
    "f0001_41": [digit(0.1, 1)],
    "f0002_14": [digit(0.2, 2), digit(0.2, 0), digit(0.2, 2)],
}


def test_clients_come_by_name_with_their_pixels_and_labels(write):
    train = write("train", DIGITS)
    test = write("test", {client: DIGITS[client] for client in ("f0003_01", "f0001_41")})
    samples = tff.read_digits("tff_emnist", train, test)
    assert samples.y.tolist() == [1, 2, 0, 2, 3, 3]
    assert samples.writer.tolist() == [0, 1, 1, 1, 2, 2]
    assert samples.writer_test.tolist() == [0, 2, 2]  # the same numbers as in training
    assert (samples.x.dtype, samples.y.dtype) == (np.float32, np.int64)
    assert (samples.x == samples.x[:, :1, :1]).all()
    assert samples.x[:, 0, 0] == pytest.approx([0.1, 0.2, 0.2, 0.2, 0.3, 0.3])
    digest = hashlib.sha256(train.path.read_bytes()).hexdigest()
    assert samples.inputs[train.path.name] == digest


def test_cifar100_takes_fine_labels_and_no_owners_of_the_test_part(write):
    images = np.arange(2 * 3072, dtype=np.uint8).reshape(2, 32, 32, 3)
    client = [
        {"image": image, "label": np.array([fine]), "coarse_label": np.array([coarse])}
        for image, fine, coarse in zip(images, (99, 7), (3, 4), strict=True)
    ]
    samples = tff.read_cifar100(
        write("train", {"10": client, "9": client}), write("test", {"0": client})
    )
    assert samples.x.dtype == np.uint8
    assert np.array_equal(samples.x, np.concatenate([images, images]))
    assert samples.y.tolist() == [99, 7, 99, 7]
    assert samples.writer.tolist() == [0, 0, 1, 1]
    assert samples.writer_test is None


def test_snippets_are_bytes_by_role(write):
    lines = {"B": [b"To be,", "or n\u00f6t".encode()], "A": [b""]}
    samples = {
        role: [{"snippets": [line]} for line in lines_of_role]
        for role, lines_of_role in lines.items()
    }
    snippets = tff.read_snippets(write("train", samples))
    assert snippets == {"A": (b"",), "B": tuple(lines["B"])}
    assert list(snippets) == ["A", "B"]


def test_a_client_without_samples_is_skipped(tmp_path):
    empty = {"pixels": np.zeros((0, 28, 28), np.float32), "label": np.zeros(0, np.int32)}
    two_samples = {"pixels": np.zeros((2, 28, 28), np.float32), "label": np.array([1, 2], np.int32)}
    part = Part(hdf5(tmp_path / "a.h5", {"a": empty, "b": two_samples}))
    assert tff.read_digits("tff_emnist", part, part).writer.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("features", "fault"),
    [
        ({"pixels": np.zeros((1, 28, 28), np.float32)}, "has no 'label', but"),
        ({"pixels": np.zeros((1, 28, 28)), "label": [1]}, "client a has pixels float64"),
        ({"pixels": np.zeros((1, 784), np.float32), "label": [1]}, r"\(1, 784\)"),
        ({"pixels": np.zeros((2, 28, 28), np.float32), "label": [1]}, r"label \(1,\)"),
    ],
)
def test_hdf5_of_other_features_is_rejected(tmp_path, features, fault):
    part = Part(hdf5(tmp_path / "a.h5", {"a": features}))
    with pytest.raises(ValueError, match=fault):
        tff.read_digits("tff_emnist", part, part)


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
def test_a_database_of_other_features_is_rejected(tmp_path, sample, fault):
    part = Part(database(tmp_path / "a.sqlite", {"train": {"9": [sample]}}), "train")
    with pytest.raises(ValueError, match=fault):
        tff.read_cifar100(part, part)


def read_label(path, client="a", split="train"):
    with sqlite_examples(path, split, {"label": FeatureType((), np.int64)}) as examples:
        examples.read(client)


def with_view_for_a_table(path):
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE VIEW examples AS SELECT 'train' AS split_name, 'a' AS client_id,"
        " randomblob(9) AS serialized_example_proto"
    )
    connection.commit()
    connection.close()


def with_value_that_would_fill_the_memory(path):
    sample = {"label": np.array([1]), "other": [bytes(2 << 20)]}
    database(path, {"train": {"a": [sample]}})


@pytest.mark.parametrize(
    ("write_file", "reason"),
    [
        (lambda path: path.write_bytes(b"<html>" * 1000), "not a database of examples"),
        (lambda path: None, "not a database of examples"),
        (lambda path: database(path, {"val": {"a": [digit(0, 1)]}}), "train has no examples"),
        (with_view_for_a_table, "has no table 'examples'"),
        (with_value_that_would_fill_the_memory, "not a database of examples"),
    ],
    ids=["text", "missing", "another split", "view", "large value"],
)
def test_other_files_are_rejected_as_databases(tmp_path, write_file, reason):
    write_file(tmp_path / "a.sqlite")
    with pytest.raises(ValueError, match=reason):
        read_label(tmp_path / "a.sqlite")


def test_hdf5_without_examples_and_a_damaged_archive_are_rejected(tmp_path):
    h5py.File(tmp_path / "a.h5", "w").close()
    with pytest.raises(ValueError, match="has no group 'examples'"):
        tff.read_digits("tff_emnist", Part(tmp_path / "a.h5"), Part(tmp_path / "a.h5"))
    (tmp_path / "all.sqlite.lzma").write_bytes(lzma.compress(bytes(9))[:-9])
    with pytest.raises(InputError, match=r"it cannot be decompressed .*fetch it again"):
        unpack_parts(tmp_path / "all.sqlite.lzma", "tff_emnist", "sqlite", tmp_path)


def test_reading_a_database_leaves_nothing_behind(tmp_path):
    path = database(tmp_path / "a.sqlite", {"train": DIGITS})
    before = path.read_bytes()
    read_label(path, "f0001_41")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


class TestVerify:
    def published(self):
        """Empty images of as many samples as Federated EMNIST has."""
        y, y_test = (np.arange(size) % 10 for size in (341_873, 40_832))
        return Samples(
            name="tff_emnist",
            x=np.zeros((len(y), 0), np.float32),
            y=y,
            x_test=np.zeros((len(y_test), 0), np.float32),
            y_test=y_test,
            classes=10,
            writer=np.arange(len(y)) % 3383,
        )

    def test_a_missing_client_is_detected(self):
        samples = self.published()
        assert tff.verify(samples) == (
            "40,832 test samples",
            "3,383 clients",
            "341,873 training samples",
            "all 10 labels",
        )
        with pytest.raises(InputError, match="3,383 clients"):
            tff.verify(replace(samples, writer=np.arange(len(samples.y)) % 3382))

    @pytest.mark.parametrize(("share", "fits"), [(0.82, True), (0.90, False), (0.74, False)])
    def test_unbalanced_set_must_hold_its_published_share(self, share, fits):
        # 10 of 100 clients share 820 (or 900, or 740) of 1,000 samples, the others the rest.
        large = round(1000 * share)
        writer = np.concatenate([np.arange(large) % 10, 10 + np.arange(1000 - large) % 90])
        samples = self.published()
        samples = replace(
            samples, name="cookup_1", x=samples.x[:1000], y=samples.y[:1000], writer=writer
        )
        if fits:
            assert "about 82% of the samples with 10% of the clients" in tff.verify(samples)
        else:
            with pytest.raises(InputError, match="about 82% of the samples"):
                tff.verify(samples)


def test_published_numbers_of_snippets_are_checked():
    train = {f"role {k}": (b"line",) * (22 + (k < 338)) for k in range(715)}
    test = {"role 0": (b"line",) * 2356}
    assert len(tff.verify_snippets(train, test)) == 3
    with pytest.raises(InputError, match="16,068 training samples"):
        tff.verify_snippets(train | {"role 0": (b"line",)}, test)
