"""Federated datasets of TensorFlow Federated, and chen2022optimal's subsets, as arrays.

A dataset has an HDF5 file for training and one for tests, with a group per client,
``examples/<client>``, and one array per feature.  A file is read client by client into the pooled
arrays, without a second copy in memory.  Clients are numbered in the order of their names.

References
----------
S. Caldas et al.: LEAF: a benchmark for federated settings. arXiv:1812.01097 (Federated EMNIST).
S. Reddi et al.: Adaptive federated optimization. ICLR 2021 (Federated CIFAR-100).
W. Chen, S. Horváth, P. Richtárik: Optimal client sampling for federated learning. TMLR 2022;
files at doi:10.7910/DVN/RZQIKP.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Ints
from fedsampling.base.errors import InputError
from fedsampling.base.files import replacing, sha256_by_name
from fedsampling.base.records import Positive
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import PooledData, PublishedData
from fedsampling.data.datasets.shakespeare import SIZES, encode
from fedsampling.data.federated import FederatedDataset, share_of_largest
from fedsampling.data.partitions.partition import SETS, ByWriter, Number, at_least, by_owner
from fedsampling.data.samples import Samples, check_contents, gather
from fedsampling.data.sources.fetch import fetch_dataset
from fedsampling.data.sources.local_files import converted, unpack
from fedsampling.data.sources.sources import SOURCES, editions
from fedsampling.data.stand_ins import COLOURED, balanced, digits_like, images, play_like, tastes

Snippets = dict[str, tuple[bytes, ...]]


@contextmanager
def unpacked_parts(dataset: str, folder: Path) -> Iterator[list[Path]]:
    """Unpack the archive in `folder` during the ``with`` block; yield its two files."""
    (source,) = editions(dataset)[""]
    stem = source.file.split(".")[0]
    with TemporaryDirectory(dir=folder) as unpacked:
        unpack(folder / source.file, Path(unpacked))
        yield [Path(unpacked, f"{stem}_{part}.h5") for part in ("train", "test")]


def read_digits(name: str, train: Path, test: Path) -> Samples:
    """Read Federated EMNIST digits, or an unbalanced training set with the same test set.

    `train`, `test`: with ``pixels`` (n, 28, 28) and ``label`` (n,) for every client. In the result,
    `x` is float32 as stored, 1 for the background; writers have one numbering in both parts.
    """
    x, y, owners = _read(train, "pixels")
    x_test, y_test, owners_test = _read(test, "pixels")
    number = {client: k for k, client in enumerate(sorted({*owners, *owners_test}))}
    writer, writer_test = (
        np.repeat([number[client] for client in sizes], [*sizes.values()])
        for sizes in (owners, owners_test)
    )
    return Samples(name, x, y, x_test, y_test, 10, writer, writer_test)


def read_cifar100(train: Path, test: Path) -> Samples:
    """Read Federated CIFAR-100 with its fine labels.

    Its 100 test clients are not among the 500 training clients, although they share names. The test
    part therefore has no writers here.
    """
    x, y, owners = _read(train, "image")
    x_test, y_test, _ = _read(test, "image")
    writer = np.repeat(np.arange(len(owners)), [*owners.values()])
    return Samples("tff_cifar100", x, y, x_test, y_test, 100, writer)


def read_snippets(path: Path) -> Snippets:
    """Read the lines of each role of TFF's Shakespeare, sorted by the role's name."""
    import h5py

    with h5py.File(path, "r") as file:
        roles = file["examples"]
        return {role: tuple(map(bytes, roles[role]["snippets"][()])) for role in sorted(roles)}


def _read(path: Path, feature: str) -> tuple[NDArray[Any], Ints, dict[str, int]]:
    """Return samples and labels, client by client, and the number of samples of each client."""
    import h5py

    with h5py.File(path, "r") as file:
        clients = file["examples"]
        sizes = {client: len(clients[client]["label"]) for client in sorted(clients)}
        first = clients[next(iter(sizes))][feature]
        total = sum(sizes.values())
        x, y = np.empty((total, *first.shape[1:]), first.dtype), np.empty(total, np.int64)
        begin = 0
        for client, size in sizes.items():
            end = begin + size
            x[begin:end], y[begin:end] = (clients[client][name][()] for name in (feature, "label"))
            begin = end
    return x, y, sizes


# The three unbalanced sets of Federated EMNIST's digits that Chen et al. 2022 published.
#
# Official: the authors' files in TFF's layout, in Dataverse's archive.
# Embedded: generated digits by writer, which :class:`ByWriter` makes unbalanced.


TESTS_OF_DIGITS = 40_832
_TOLERANCE = 0.02  # of the largest clients' share, since the publisher writes "about"


class Cookup(PublishedData, name="cookup"):
    """The unbalanced sets of Federated EMNIST's digits, Chen et al. 2022."""

    official: ClassVar[tuple[str, ...]] = ("cookup",)
    published: ClassVar[int | None] = 3_383

    set: Number

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Read (or generate) one of the sets; its writers are the clients."""
        if source == "official":
            samples, partition = _official(self.set, cache, mirror), ByWriter()
        else:
            samples, partition = emnist_like("cookup-like"), ByWriter(unbalance=self.set)
        return partition.share_out(samples, seed, self.importance)


def _official(number: Number, cache: Path, mirror: str | None) -> Samples:
    ((name, archive),) = fetch_dataset("cookup", cache, mirror).items()
    train, test = f"cookup_train_{number}.h5", "test.h5"
    with TemporaryDirectory(dir=cache) as folder:
        unpack(archive, Path(folder))
        files = {path.name: path for path in Path(folder).rglob("*.h5")}
        if missing := {train, test} - {*files}:
            raise InputError(f"{archive}: {min(missing)} is missing; fetch the archive again")
        samples = read_digits(f"cookup_{number}", files[train], files[test])
        inputs = sha256_by_name([files[train], files[test]])
    check_unbalanced(samples, number)
    return replace(samples, inputs=inputs, unverified=SOURCES[name].unverified)


def check_unbalanced(samples: Samples, number: Number) -> None:
    """Compare the test samples, the labels and the imbalance with the published ones."""
    assert samples.writer is not None
    sizes = np.bincount(samples.writer)
    fraction, published = SETS[number].s, SETS[number].share
    share = share_of_largest(sizes[sizes > 0], fraction)
    phrase = f"about {published:.0%} of the samples with {fraction:.0%} of the clients"
    checks = {
        "images of 28 by 28 pixels": samples.x.shape[1:] == (28, 28),
        f"{TESTS_OF_DIGITS:,} test samples": len(samples.y_test) == TESTS_OF_DIGITS,
        f"all {samples.classes} labels": len(np.unique(samples.y)) == samples.classes,
        phrase: abs(share - published) < _TOLERANCE,
    }
    check_contents(samples.name, checks)


# Federated EMNIST's digits by writer, as in TensorFlow Federated (TFF).
#
# Steps: TFF's archive, or a stand-in of a tenth of the size -> samples -> a
# client for each writer.  All clients share the test set, as in Chen et al. 2022.


# Of the stand-in; the published data have 3,383 writers with 101 samples on average.
WRITERS, PER_WRITER, WRITERS_TESTS = 200, 101, 1_000

_ARRAYS = ("x", "y", "x_test", "y_test", "writer", "writer_test")


class EmnistDigits(PooledData, name="emnist_digits", title="EMNIST digits by writer"):
    """Federated EMNIST's digits by writer, as published by TFF."""

    official: ClassVar[tuple[str, ...]] = ("tff_emnist",)
    published: ClassVar[int | None] = 3_383

    unbalance: Number | None = Field(
        None, description="imbalance of the sets of chen2022optimal; null: as the writers are"
    )

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Make each writer a client; pixels are as in TFF."""
        samples = self.samples(source, cache, mirror)
        return ByWriter(unbalance=self.unbalance).share_out(samples, seed, self.importance)

    @classmethod
    def read(cls, edition: str, folder: Path) -> Samples:
        """Read the archive, which takes minutes, or what an earlier call has kept of it."""
        (source,) = editions("tff_emnist")[edition]
        digests = sha256_by_name([folder / source.file])

        def convert(target: Path) -> None:
            with unpacked_parts("tff_emnist", folder) as parts:
                samples = read_digits("tff_emnist", *parts)
            with replacing(target) as temporary:
                np.savez(temporary, **{array: getattr(samples, array) for array in _ARRAYS})

        target = folder / f"digits-{digests[source.file][:16]}.npz"
        with np.load(converted(target, convert), allow_pickle=False) as file:
            arrays = {array: file[array] for array in _ARRAYS}
        return Samples(name="tff_emnist", classes=10, **arrays)

    @classmethod
    def stand_in(cls) -> Samples:
        """Generate a tenth of the writers."""
        return emnist_like("emnist_digits-like")


@lru_cache(maxsize=1)
def emnist_like(name: str) -> Samples:
    """Generate the stand-in for EMNIST's digits by writer, with TFF's shapes and types."""
    rng = stream(0, "data.cookup_like")
    drawn = digits_like(rng, train=WRITERS * PER_WRITER, test=WRITERS_TESTS, writers=WRITERS)
    x, x_test = (np.float32(1) - pixels / np.float32(255) for pixels in (drawn.x, drawn.x_test))
    return replace(drawn, name=name, x=x, x_test=x_test)


# CIFAR-100 over TFF's clients, with one common test set as in Chen et al. 2022.


# Of the stand-in; the published data have 500 clients with 100 samples.
CLIENTS, PER_CLIENT, TESTS = 50, 100, 200


class TffCifar100(PooledData, name="tff_cifar100", title="CIFAR-100 (TensorFlow Federated)"):
    """CIFAR-100 over TFF's clients, Chen et al. 2022, appendix G."""

    official: ClassVar[tuple[str, ...]] = ("tff_cifar100",)
    published: ClassVar[int | None] = 500

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Load TFF's clients, pixels from 0 to 255; `seed` has no effect."""
        samples = self.samples(source, cache, mirror)
        return ByWriter().share_out(samples, seed, self.importance)

    @classmethod
    def read(cls, edition: str, folder: Path) -> Samples:
        """Read the archive."""
        with unpacked_parts("tff_cifar100", folder) as parts:
            return read_cifar100(*parts)

    @classmethod
    def stand_in(cls) -> Samples:
        """Generate images whose labels differ from client to client."""
        rng = stream(0, "data.cifar100_like")
        y, y_test = tastes(rng, CLIENTS, PER_CLIENT, 100), balanced(rng, TESTS, 100)
        drawn = images(rng, "cifar100-like", COLOURED, y, y_test, classes=100)
        return replace(drawn, writer=np.repeat(np.arange(CLIENTS), PER_CLIENT))


# TFF's Shakespeare by role, cut into short sequences as in Chen et al. 2022.
#
# Steps: TFF's archive, or a stand-in -> snippets by role -> a role's snippets
# joined and cut into chunks of six characters: the first five are the input, the last five the
# labels to predict, one per step.


STEPS = 5  # steps of a sequence
SNIPPET = 75  # characters, of the stand-in


class TffShakespeare(
    PooledData, name="tff_shakespeare", title="Shakespeare (TensorFlow Federated)"
):
    """Shakespeare by role as published by TFF, in sequences of five characters (Chen et al.)."""

    official: ClassVar[tuple[str, ...]] = ("tff_shakespeare",)
    published: ClassVar[int | None] = 715

    min_samples: Positive = Field(1, description="minimum training sequences of a role")

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Make each role a client; `seed` has no effect.

        The paper's roles have at least one batch of 8 sequences.

        In the result, `x` is int8, `y` int64, both of shape (sequences, 5); one common test set.
        """
        samples = self.samples(source, cache, mirror)
        assert samples.writer is not None
        roles = at_least(by_owner(samples.writer), self.min_samples)
        return gather(samples, roles, None, self.importance)

    @classmethod
    def read(cls, edition: str, folder: Path) -> Samples:
        """Read the archive."""
        with unpacked_parts("tff_shakespeare", folder) as parts:
            return _as_samples("tff_shakespeare", *map(read_snippets, parts))

    @classmethod
    def stand_in(cls) -> Samples:
        """Generate roles; every eighth snippet is a test."""
        roles = play_like(stream(0, "data.play_like"))
        train: Snippets = {}
        test: Snippets = {}
        for role, text in roles.items():
            snippets = [text[k : k + SNIPPET].encode() for k in range(0, len(text), SNIPPET)]
            test["/".join(role)] = tuple(snippets[7::8])
            del snippets[7::8]
            train["/".join(role)] = tuple(snippets)
        return _as_samples("tff_shakespeare-like", train, test)


def _as_samples(name: str, train: Snippets, test: Snippets) -> Samples:
    codes, role = sequences(train)
    tests, _ = sequences(test)
    x, x_test = codes[:, :STEPS], tests[:, :STEPS]
    y, y_test = (rows[:, 1:].astype(np.int64) for rows in (codes, tests))
    return Samples(name, x, y, x_test, y_test, classes=SIZES["tff"], writer=role)


def sequences(snippets: Snippets) -> tuple[NDArray[np.int8], Ints]:
    """Cut the joined snippets of each role into chunks; incomplete chunks are dropped.

    Returns symbol numbers, shape (sequences, 6), and the number of each sequence's role.
    """
    codes, sizes = [], []
    for lines in snippets.values():
        text = encode(np.frombuffer(b"".join(lines), np.uint8), "tff")
        size = len(text) // (STEPS + 1)
        codes.append(text[: size * (STEPS + 1)].reshape(size, STEPS + 1))
        sizes.append(size)
    return np.concatenate(codes), np.repeat(np.arange(len(sizes)), sizes)
