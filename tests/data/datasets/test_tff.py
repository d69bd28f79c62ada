"""TFF's files in both layouts, HDF5 and databases: samples are read, other files are rejected."""

import lzma
import sqlite3
import zipfile
from dataclasses import replace
from functools import partial

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.datasets.loading import load
from tests.data.datasets.tff_files import archive, database, hdf5, hdf5_of, packed, unchecked

from fedsampling.base.errors import InputError
from fedsampling.data.datasets import dataset, tff
from fedsampling.data.datasets.shakespeare import VOCABULARIES, encode
from fedsampling.data.datasets.tff import sequences
from fedsampling.data.datasets.tff_files import FeatureType, Part, sqlite_examples, unpacked_parts
from fedsampling.data.federated import Samples, share_of_largest
from fedsampling.data.sources.sources import editions


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
        ({"pixels": np.zeros((1, 784), np.float32), "label": [1]}, r"\(1, 784\)"),
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
        ({"image": np.full(3072, 256), "label": np.array([1])}, "not uint8"),
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
    (source,) = editions("tff_emnist")["sqlite"]
    (tmp_path / source.file).write_bytes(lzma.compress(bytes(9))[:-9])
    with (
        pytest.raises(InputError, match=r"it cannot be decompressed .*fetch it again"),
        unpacked_parts("tff_emnist", "sqlite", tmp_path),
    ):
        pass


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


# TFF's Shakespeare: chunks of six characters, one label per step.


loaded = partial(load, "tff_shakespeare")


def read(codes):
    return "".join(VOCABULARIES["tff"][code] for code in codes.ravel())


def test_the_table_has_86_symbols_and_takes_the_unknown_for_its_first():
    assert len(VOCABULARIES["tff"]) == len(set(VOCABULARIES["tff"])) == 86
    codes = encode(np.frombuffer(b"dhl\r}\xc3\xb6", np.uint8), "tff")
    assert codes.tolist() == [0, 1, 2, 85, 0, 0, 0]


@given(st.lists(st.lists(st.binary(max_size=30), max_size=4), min_size=1, max_size=5))
def test_no_sequence_mixes_two_roles(lines):
    codes, role = sequences({str(k): tuple(parts) for k, parts in enumerate(lines)})
    for k, parts in enumerate(lines):
        text = b"".join(parts)
        expected = encode(np.frombuffer(text, np.uint8), "tff")
        np.testing.assert_array_equal(codes[role == k].ravel(), expected[: len(text) // 6 * 6])


def test_the_stand_in_has_five_steps_and_as_many_labels():
    data = loaded()
    assert (data.x.dtype, data.y.dtype) == (np.int8, np.int64)
    assert data.x.shape == data.y.shape == (len(data.x), 5)
    assert (data.n_clients, data.classes, data.start_test) == (100, 86, None)
    np.testing.assert_array_equal(data.x[:, 1:], data.y[:, :-1])  # what follows is the label
    assert data.n_samples.max() > 3 * data.n_samples.min()
    assert 0.1 < len(data.x_test) / len(data.x) < 0.15
    np.testing.assert_array_equal(data.x, loaded().x)


def test_the_published_database(tmp_path, monkeypatch):
    splits = {
        "train": {
            "PLAY_B": [{"snippets": [b"To be, or"]}, {"snippets": [b" not"]}],
            "PLAY_A": [{"snippets": [b"Enter"]}],
        },
        "test": {"PLAY_A": [{"snippets": [b"Exeunt"]}], "PLAY_B": [{"snippets": [b"Begone"]}]},
    }
    packed(tmp_path / "mirror/tff_shakespeare/shakespeare.sqlite.lzma", splits)
    unchecked(monkeypatch, "tff_shakespeare/shakespeare.sqlite.lzma")
    counts = (2, 2, 3)
    monkeypatch.setitem(tff.PUBLISHED, "tff_shakespeare", counts)
    data = loaded("official", 0, tmp_path / "cache", str(tmp_path / "mirror"))
    assert read(data.x) == "To be or n"
    assert read(data.y) == "o be,or no"
    assert read(data.x_test) == "ExeunBegon"
    assert data.n_samples.tolist() == [2]  # a role without six characters is nobody
    assert (data.name, data.unverified) == ("tff_shakespeare", True)
    assert list(data.inputs) == ["shakespeare.sqlite.lzma"]


# Federated EMNIST digits and CIFAR-100 from settings to clients.


SPLITS = ("digits_only_train", "digits_only_test")


@pytest.fixture(autouse=True)
def forget():
    dataset._samples.cache_clear()
    return dataset._samples.cache_clear


digits = partial(load, "emnist_digits")
cifar100 = partial(load, "tff_cifar100")


def test_digits_can_be_unbalanced_as_published():
    even, uneven = digits(), digits(unbalance=1)
    assert share_of_largest(uneven.n_samples, 0.1) == pytest.approx(0.82, abs=0.02)
    np.testing.assert_array_equal(uneven.x_test, even.x_test)


def test_cifar100s_stand_in_has_clients_of_equal_size_and_unequal_taste():
    data = cifar100()
    assert (data.x.dtype, data.x.shape[1:], data.classes) == (np.uint8, (32, 32, 3), 100)
    assert set(data.n_samples) == {100}
    assert np.bincount(data.y_test).tolist() == [2] * 100
    # Of equal tastes a client's most frequent label would have about four of its samples.
    assert data.label_counts().max(1).mean() > 15


WRITERS = {"f2": [digit(0.2, 2), digit(0.3, 3)], "f1": [digit(0.1, 1)]}
TESTS = {"f1": [digit(0.5, 5)], "f2": [digit(0.6, 6)]}


@pytest.fixture
def mirror(tmp_path, monkeypatch, request):
    """A mirror with one edition, whose counts count as published."""
    folder = tmp_path / "mirror" / "tff_emnist"
    if request.param == "sqlite":
        splits = dict(zip(SPLITS, (WRITERS, TESTS), strict=True))
        packed(folder / "emnist_all.sqlite.lzma", splits)
    else:
        files = [
            hdf5_of(tmp_path / f"fed_emnist_digitsonly_{part}.h5", clients)
            for part, clients in (("train", WRITERS), ("test", TESTS))
        ]
        archive(folder / "fed_emnist_digitsonly.tar.bz2", *files)
    unchecked(
        monkeypatch, "tff_emnist/emnist_all.sqlite.lzma", "tff_emnist/fed_emnist_digitsonly.tar.bz2"
    )
    monkeypatch.setitem(tff.PUBLISHED, "tff_emnist", (2, 2, 3))
    monkeypatch.setattr(tff, "SHARES", {})
    return str(tmp_path / "mirror")


@pytest.mark.parametrize("mirror", ["sqlite", "hdf5"], indirect=True)
def test_either_edition_is_read_once_and_kept(mirror, tmp_path, monkeypatch, forget):
    monkeypatch.setattr(tff, "verify", lambda samples: ())  # not all ten labels are here
    cache = tmp_path / "cache"
    data = digits("official", 0, cache, mirror)
    assert data.n_samples.tolist() == [1, 2]
    assert data.y.tolist() == [1, 2, 3]
    assert data.x[:, 0, 0] == pytest.approx([0.1, 0.2, 0.3])
    assert data.y_test.tolist() == [5, 6]
    assert data.unverified  # as here no checksum is known
    ((_, digest),) = data.inputs.items()
    (file,) = (cache / "tff_emnist").glob("*.npz")
    assert file.name == f"digits-{digest[:16]}.npz"
    forget()
    monkeypatch.setattr(tff, "unpacked_parts", None)  # nothing is unpacked again
    reread = digits("official", 0, cache, mirror)
    np.testing.assert_array_equal(reread.x, data.x)
    assert [path.name for path in cache.iterdir()] == ["tff_emnist"]  # no scratch is left


@pytest.mark.parametrize("mirror", ["sqlite"], indirect=True)
def test_contents_that_are_not_as_published_are_not_kept(mirror, tmp_path):
    with pytest.raises(InputError, match="all 10 labels"):
        digits("official", 0, tmp_path / "cache", mirror)
    assert list(tmp_path.glob("cache/**/*.npz")) == []


# The unbalanced sets: their stand-in, and files of the published layout.


@pytest.mark.parametrize(
    ("number", "top", "share"), [(1, 0.1, 0.82), (2, 0.2, 0.90), (3, 0.5, 0.98)]
)
def test_the_unbalanced_stand_in_has_the_published_imbalance(number, top, share):
    data = load("cookup", set=number)
    assert data.n_clients == tff.WRITERS
    assert share_of_largest(data.n_samples, top) == pytest.approx(share, abs=0.02)
    np.testing.assert_allclose(data.p, data.n_samples / len(data.x))


@pytest.mark.parametrize("as_archive", [False, True], ids=["files", "archive"])
def test_unbalanced_files_are_read_one_by_one_or_from_dataverses_archive(
    tmp_path, monkeypatch, as_archive
):
    monkeypatch.setattr(tff, "PUBLISHED", {"cookup_2": (24, 2, 24)})
    monkeypatch.setattr(tff, "SHARES", {})
    folder = tmp_path / "mirror" / "cookup"
    folder.mkdir(parents=True)
    clients = {name: [digit(0.5, k % 10) for k in range(n)] for name, n in (("b", 20), ("a", 4))}
    names = ("cookup_train_1.h5", "cookup_train_2.h5", "cookup_train_3.h5", "test.h5")
    files = [hdf5_of(folder / name, clients) for name in names]
    if as_archive:
        with zipfile.ZipFile(folder / "dataverse_files.zip", "w") as whole:
            for file in files:
                whole.write(file, f"data/{file.name}")
                file.unlink()
    cache = tmp_path / "cache"
    data = load("cookup", "official", 0, cache, str(folder.parent), set=2)
    assert data.n_samples.tolist() == [4, 20]
    assert (data.name, data.unverified) == ("cookup_2", True)
    assert sorted(data.inputs) == ["cookup_train_2.h5", "test.h5"]
    assert [path.name for path in cache.iterdir()] == ["cookup"]  # nothing unpacked is left
