"""The readers' own checks, by edition: whether files have the published shapes and counts.

Each takes the folder of an edition's right files and returns one phrase for each thing found as
published, for :mod:`check`.  A new dataset adds its reader to ``READERS``.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from fedsampling.datasets import cifar10, ijcnn1, mnist, qmnist, shakespeare, shakespeare_roles, tff
from fedsampling.datasets.archives import Bounds, unpack
from fedsampling.datasets.raw import confirmed

Reader = Callable[[Path], tuple[str, ...]]  # told the folder of an edition's files

_ARCHIVE = Bounds(members=100, size=4 << 30)
_MNIST = tuple(
    f"{part}-{what}-ubyte.gz"
    for part in ("train", "t10k")
    for what in ("images-idx3", "labels-idx1")
)
_QMNIST = tuple(f"qmnist-{part}-labels-idx2-int.gz" for part in ("train", "test"))


def _mnist(folder: Path) -> tuple[str, ...]:
    return mnist.verify(mnist.read(folder.name, *(folder / file for file in _MNIST)))


def _qmnist(folder: Path) -> tuple[str, ...]:
    digits = mnist.read("mnist", *(folder.parent / "mnist" / file for file in _MNIST))
    return qmnist.verify(qmnist.add_writers(digits, *(folder / file for file in _QMNIST)))


def _cifar10(folder: Path) -> tuple[str, ...]:
    return cifar10.verify(cifar10.read_sheets(folder))


def _cifar10_binary(folder: Path) -> tuple[str, ...]:
    unpack(folder / "cifar-10-binary.tar.gz", folder, _ARCHIVE)
    return cifar10.verify(cifar10.read_binary(folder / "cifar-10-batches-bin"))


def _cifar10_python(folder: Path) -> tuple[str, ...]:
    unpack(folder / "cifar-10-python.tar.gz", folder, _ARCHIVE)
    return cifar10.verify(cifar10.read_python(folder / "cifar-10-batches-py"))


def _ijcnn1(folder: Path) -> tuple[str, ...]:
    found = {}
    for file, rows in {
        "ijcnn1.tr": ijcnn1.TRAIN_ROWS,
        "ijcnn1.val": 14_990,
        "ijcnn1.t": ijcnn1.TEST_ROWS,
    }.items():
        _, y = ijcnn1.parse_libsvm((folder / file).read_bytes(), ijcnn1.M)
        found[f"{rows:,} samples in {file}"] = len(y) == rows
        found[f"labels -1 and +1 in {file}"] = bool(np.isin(y, (-1, 1)).all())
    return confirmed("ijcnn1", found)


def _shakespeare(folder: Path) -> tuple[str, ...]:
    (path,) = folder.iterdir()
    return shakespeare.verify(shakespeare_roles.read(path))


def _tff_digits(folder: Path) -> tuple[str, ...]:
    train, test = _two(folder, "fed_emnist_digitsonly")
    return tff.verify(tff.read_digits("tff_emnist", train, test))


def _tff_cifar100(folder: Path) -> tuple[str, ...]:
    return tff.verify(tff.read_cifar100(*_two(folder, "fed_cifar100")))


def _tff_shakespeare(folder: Path) -> tuple[str, ...]:
    train, test = _two(folder, "shakespeare")
    return tff.verify_snippets(tff.read_snippets(train), tff.read_snippets(test))


def _two(folder: Path, name: str) -> tuple[Path, Path]:
    """Unpack one of TFF's archives; return its training and its test file."""
    unpack(folder / f"{name}.tar.bz2", folder, _ARCHIVE)
    return folder / f"{name}_train.h5", folder / f"{name}_test.h5"


def _cookup(folder: Path) -> tuple[str, ...]:
    phrases: list[str] = []
    for number in (1, 2, 3):
        name = f"cookup_{number}"
        raw = tff.read_digits(name, folder / f"cookup_train_{number}.h5", folder / "test.h5")
        phrases += [f"{phrase} in {name}" for phrase in tff.verify(raw)]
    return tuple(phrases)


def _tables(**rows: int) -> Reader:
    """Make a reader that counts the lines of text tables, by the file's name without its end."""

    def reader(folder: Path) -> tuple[str, ...]:
        lines = {path.stem: path.read_bytes().count(b"\n") for path in folder.iterdir()}
        return confirmed(
            folder.name, {f"{n:,} lines in {stem}": lines[stem] == n for stem, n in rows.items()}
        )

    return reader


READERS: dict[tuple[str, str], Reader] = {
    ("mnist", ""): _mnist,
    ("fashion_mnist", ""): _mnist,
    ("qmnist", ""): _qmnist,
    ("cifar10", "binary"): _cifar10_binary,
    ("cifar10", "python"): _cifar10_python,
    ("cifar10", "sheets"): _cifar10,
    ("tff_emnist", ""): _tff_digits,
    ("tff_shakespeare", ""): _tff_shakespeare,
    ("tff_cifar100", ""): _tff_cifar100,
    ("cookup", "files"): _cookup,
    ("shakespeare", "zip"): _shakespeare,
    ("shakespeare", "text"): _shakespeare,
    ("ijcnn1", ""): _ijcnn1,
    ("nycmesh", "tables"): _tables(nodes=201, links=290),
    ("nycmesh/network-map", ""): _tables(
        nodes_installed=462, links_installed=421, sectors_installed=145
    ),
    ("async_hfl_delays", ""): _tables(delay_client_to_gateway=184, comp=184, comp1=184),
}
