import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.data.formats import tff
from fedsampling.data.formats.tff_files import Part
from fedsampling.data.samples import Samples

from .tff_files import hdf5

h5py = pytest.importorskip("h5py", reason="reading TFF's files needs h5py")

DIGITS = {  # not in the order of the names; f0002_14 has nothing to test with
    "f0003_01": (np.float32(0.3), [3, 3]),
    "f0001_41": (np.float32(0.1), [1]),
    "f0002_14": (np.float32(0.2), [2, 0, 2]),
}


def write(path: Path, clients: dict[str, dict[str, object]]) -> Part:
    return Part(hdf5(path, clients))


def digits(clients: dict[str, tuple[np.float32, list[int]]]) -> dict[str, dict[str, object]]:
    return {
        client: {
            "pixels": np.full((len(labels), 28, 28), shade, np.float32),
            "label": np.array(labels, np.int32),
        }
        for client, (shade, labels) in clients.items()
    }


@pytest.fixture
def samples(tmp_path: Path) -> Samples:
    test = {client: DIGITS[client] for client in ("f0003_01", "f0001_41")}
    return tff.read_digits(
        "tff_emnist",
        write(tmp_path / "train.h5", digits(DIGITS)),
        write(tmp_path / "test.h5", digits(test)),
    )


class TestDigits:
    def test_clients_come_by_name_with_their_own_pixels_and_labels(self, samples, tmp_path):
        assert samples.y.tolist() == [1, 2, 0, 2, 3, 3]
        assert samples.writer.tolist() == [0, 1, 1, 1, 2, 2]
        assert samples.writer_test.tolist() == [0, 2, 2]  # the same numbers as in training
        assert samples.x.dtype == np.float32
        assert (samples.x == samples.x[:, :1, :1]).all()
        assert samples.x[:, 0, 0] == pytest.approx([0.1, 0.2, 0.2, 0.2, 0.3, 0.3])
        digest = hashlib.sha256((tmp_path / "train.h5").read_bytes()).hexdigest()
        assert samples.inputs["train.h5"] == digest

    def test_a_client_without_samples_is_skipped(self, tmp_path):
        path = write(tmp_path / "a.h5", digits(DIGITS | {"f0000_00": (np.float32(0), [])}))
        samples = tff.read_digits("tff_emnist", path, path)
        assert samples.writer.tolist() == [1, 2, 2, 2, 3, 3]

    @pytest.mark.parametrize(
        ("features", "fault"),
        [
            ({"pixels": np.zeros((1, 28, 28), np.float32)}, "has no 'label', but"),
            ({"pixels": np.zeros((1, 28, 28)), "label": [1]}, "client a has pixels float64"),
            ({"pixels": np.zeros((1, 784), np.float32), "label": [1]}, r"\(1, 784\)"),
            ({"pixels": np.zeros((2, 28, 28), np.float32), "label": [1]}, r"label \(1,\)"),
        ],
    )
    def test_other_layouts_are_rejected(self, tmp_path, features, fault):
        path = write(tmp_path / "a.h5", {"a": features})
        with pytest.raises(ValueError, match=fault):
            tff.read_digits("tff_emnist", path, path)

    def test_file_without_examples_is_rejected(self, tmp_path):
        h5py.File(tmp_path / "a.h5", "w").close()
        with pytest.raises(ValueError, match="has no group 'examples'"):
            tff.read_digits("tff_emnist", Part(tmp_path / "a.h5"), Part(tmp_path / "a.h5"))


class TestVerify:
    def published(self) -> Samples:
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

    def test_published_numbers_pass_and_are_named(self):
        assert tff.verify(self.published()) == (
            "40,832 test samples",
            "3,383 clients",
            "341,873 training samples",
            "all 10 labels",
        )

    def test_a_missing_client_is_detected(self):
        samples = self.published()
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


def test_cifar100_takes_fine_labels_and_no_owners_of_the_test_part(tmp_path):
    image = np.arange(2 * 3072, dtype=np.uint8).reshape(2, 32, 32, 3)
    client = {"image": image, "label": np.array([99, 7]), "coarse_label": np.array([3, 4])}
    train = write(tmp_path / "train.h5", {"10": client, "9": client})
    test = write(tmp_path / "test.h5", {"0": client})
    samples = tff.read_cifar100(train, test)
    assert np.array_equal(samples.x, np.concatenate([image, image]))
    assert samples.y.tolist() == [99, 7, 99, 7]
    assert samples.writer.tolist() == [0, 0, 1, 1]
    assert samples.writer_test is None


class TestSnippets:
    def test_lines_are_bytes_by_role(self, tmp_path):
        lines = {
            "PLAY_B": {"snippets": np.array([b"To be,", "or n\u00f6t".encode()], dtype=object)},
            "PLAY_A": {"snippets": np.array([b"Exit"], dtype=object)},
        }
        kind = h5py.string_dtype()
        with h5py.File(tmp_path / "a.h5", "w") as file:
            for role, features in lines.items():
                file.create_dataset(
                    f"examples/{role}/snippets", data=features["snippets"], dtype=kind
                )
        snippets = tff.read_snippets(Part(tmp_path / "a.h5"))
        assert list(snippets) == ["PLAY_A", "PLAY_B"]
        assert snippets["PLAY_B"] == (b"To be,", "or n\u00f6t".encode())

    def test_published_numbers_are_checked(self):
        train = {f"role {k}": (b"line",) * (22 + (k < 338)) for k in range(715)}
        test = {"role 0": (b"line",) * 2356}
        assert len(tff.verify_snippets(train, test)) == 3
        with pytest.raises(InputError, match="16,068 training samples"):
            tff.verify_snippets(train | {"role 0": (b"line",)}, test)
