"""Federated datasets of TensorFlow Federated, and chen2022optimal's subsets, as arrays.

A part in either of TFF's layouts (:mod:`tff_files`) is read client by client into the pooled
arrays, without a second copy in memory.  Clients are numbered in the order of their names.

References
----------
S. Caldas et al.: LEAF: a benchmark for federated settings. arXiv:1812.01097 (Federated EMNIST).
S. Reddi et al.: Adaptive federated optimization. ICLR 2021 (Federated CIFAR-100).
W. Chen, S. Horváth, P. Richtárik: Optimal client sampling for federated learning. TMLR 2022;
files at doi:10.7910/DVN/RZQIKP.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
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
from fedsampling.data.datasets.dataset import (
    COLOURED,
    PooledData,
    PublishedData,
    balanced,
    digits_like,
    images,
    play_like,
    tastes,
)
from fedsampling.data.datasets.shakespeare import SIZES, encode
from fedsampling.data.datasets.tff_files import (
    Examples,
    FeatureType,
    Part,
    hdf5_examples,
    sqlite_examples,
    unpacked_parts,
)
from fedsampling.data.federated import (
    FederatedDataset,
    Samples,
    gather,
    passed_checks,
    share_of_largest,
)
from fedsampling.data.partitions.partition import SETS, ByWriter, Number, at_least, by_owner
from fedsampling.data.sources.fetch import fetch_dataset
from fedsampling.data.sources.local_files import Bounds, converted, unpack
from fedsampling.data.sources.sources import SOURCES, editions

Snippets = dict[str, tuple[bytes, ...]]


# Published numbers of test samples, clients and training samples; the authors of the unbalanced
# datasets state only the first.
PUBLISHED = {
    "tff_emnist": (40_832, 3_383, 341_873),
    **{f"cookup_{number}": (40_832,) for number in SETS},
    "tff_cifar100": (10_000, 500, 50_000),
    "tff_shakespeare": (2_356, 715, 16_068),
}

# For the unbalanced datasets: fraction of the largest clients, and of the samples that they hold.
SHARES = {f"cookup_{number}": (chosen.s, chosen.share) for number, chosen in SETS.items()}
_TOLERANCE = 0.02  # since the publisher writes "about"


def read_digits(name: str, train: Part, test: Part) -> Samples:
    """Read Federated EMNIST digits, or an unbalanced training set with the same test set.

    `train`, `test`: with ``pixels`` (n, 28, 28) and ``label`` (n,) for every client. In the result,
    `x` is float32 as stored, 1 for the background; writers have one numbering in both parts.
    """
    pixels = FeatureType((28, 28), np.float32)
    x, y, owners = _read(train, "pixels", pixels)
    x_test, y_test, owners_test = _read(test, "pixels", pixels)
    number = {client: k for k, client in enumerate(sorted({*owners, *owners_test}))}
    writer, writer_test = (
        np.repeat([number[client] for client in sizes], [*sizes.values()])
        for sizes in (owners, owners_test)
    )
    read = inputs(train, test)
    return Samples(name, x, y, x_test, y_test, 10, writer, writer_test, inputs=read)


def read_cifar100(train: Part, test: Part) -> Samples:
    """Read Federated CIFAR-100 with its fine labels.

    Its 100 test clients are not among the 500 training clients, although they share names. The test
    part therefore has no writers here.
    """
    image = FeatureType((32, 32, 3), np.uint8)
    x, y, owners = _read(train, "image", image)
    x_test, y_test, _ = _read(test, "image", image)
    writer = np.repeat(np.arange(len(owners)), [*owners.values()])
    read = inputs(train, test)
    return Samples("tff_cifar100", x, y, x_test, y_test, 100, writer, inputs=read)


def read_snippets(part: Part) -> Snippets:
    """Read the lines of each role of TFF's Shakespeare, sorted by the role's name."""
    with _opened(part, {"snippets": FeatureType((), np.object_)}) as examples:
        return {
            client: tuple(bytes(line) for line in examples.read(client)["snippets"])
            for client in examples.sizes
        }


def verify(samples: Samples) -> tuple[str, ...]:
    """Compare clients, samples and imbalance with published values; return the checks passed."""
    assert samples.writer is not None
    sizes = np.bincount(samples.writer)
    clients = int(np.count_nonzero(sizes))
    findings = _count_findings(samples.name, clients, len(samples.y), len(samples.y_test))
    findings[f"all {samples.classes} labels"] = len(np.unique(samples.y)) == samples.classes
    if samples.name in SHARES:
        fraction, published = SHARES[samples.name]
        share = share_of_largest(sizes[sizes > 0], fraction)
        phrase = f"about {published:.0%} of the samples with {fraction:.0%} of the clients"
        findings[phrase] = abs(share - published) < _TOLERANCE
    return passed_checks(samples.name, findings)


def verify_snippets(train: Snippets, test: Snippets) -> tuple[str, ...]:
    """Compare numbers of roles and lines with published numbers; return the checks passed."""
    n_train, n_test = (sum(map(len, part.values())) for part in (train, test))
    return passed_checks(
        "tff_shakespeare", _count_findings("tff_shakespeare", len(train), n_train, n_test)
    )


def inputs(*parts: Part) -> dict[str, str]:
    """Return the SHA-256 of the parts' published files, by name."""
    return sha256_by_name(dict.fromkeys(part.origin or part.path for part in parts))


def _count_findings(name: str, clients: int, train: int, test: int) -> dict[str, bool]:
    counts = {"test samples": test, "clients": clients, "training samples": train}
    return {
        f"{published:,} {kind}": counts[kind] == published
        for kind, published in zip(counts, PUBLISHED[name], strict=False)
    }


def _read(part: Part, feature: str, kind: FeatureType) -> tuple[NDArray[Any], Ints, dict[str, int]]:
    """Return samples and labels, client by client, and the number of samples of each client."""
    with _opened(part, {feature: kind, "label": FeatureType((), np.int64)}) as examples:
        total = sum(examples.sizes.values())
        x, y = np.empty((total, *kind.shape), kind.dtype), np.empty(total, np.int64)
        begin = 0
        for client, count in examples.sizes.items():
            end = begin + count
            record = examples.read(client)
            values, labels = record[feature], record["label"]
            fits = values.shape == (count, *kind.shape) and values.dtype == kind.dtype
            if not fits or labels.shape != (count,):
                raise ValueError(
                    f"{part.path}: client {client} has {feature} {values.dtype} {values.shape} and "
                    f"label {labels.shape}, not {np.dtype(kind.dtype)} {('n', *kind.shape)} and "
                    "(n,)"
                )
            x[begin:end], y[begin:end] = values, labels
            begin = end
    return x, y, examples.sizes


def _opened(part: Part, kinds: Mapping[str, FeatureType]) -> AbstractContextManager[Examples]:
    if part.split:
        return sqlite_examples(part.path, part.split, kinds)
    return hdf5_examples(part.path, kinds)


# The three unbalanced sets of Federated EMNIST's digits that Chen et al. 2022 published.
#
# Official: the authors' files in TFF's layout, as single files or in Dataverse's archive.
# Embedded: generated digits by writer, which :class:`ByWriter` makes unbalanced.


TEST = "test.h5"
_BOUNDS = Bounds(members=50, size=4 << 30)


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

    @classmethod
    def verify(cls, dataset: str, edition: str, folder: Path) -> tuple[str, ...]:
        """Compare official files with the published shapes and counts."""
        if edition != "files":
            return super().verify(dataset, edition, folder)
        phrases: list[str] = []
        for number in (1, 2, 3):
            samples = _read_set(number, {path.name: path for path in folder.iterdir()})
            phrases += [f"{phrase} in {samples.name}" for phrase in verify(samples)]
        return tuple(phrases)


def _official(number: int, cache: Path, mirror: str | None) -> Samples:
    paths = fetch_dataset("cookup", cache, mirror)
    with ExitStack() as stack:
        files: Mapping[str, Path] = {path.name: path for path in paths.values()}
        if TEST not in files:
            (archive,) = files.values()
            folder = Path(stack.enter_context(TemporaryDirectory(dir=cache)))
            names = (_train_file(number), TEST)
            members = unpack(
                archive, folder, _BOUNDS, lambda name: PurePosixPath(name).name in names
            )
            files = {path.name: path for path in members.values()}
            if missing := [name for name in names if name not in files]:
                raise InputError(f"{archive}: {missing[0]} is missing; fetch the archive again")
        samples = _read_set(number, files)
    verify(samples)
    return replace(samples, unverified=any(SOURCES[name].unverified for name in paths))


def _read_set(number: int, files: Mapping[str, Path]) -> Samples:
    return read_digits(f"cookup_{number}", Part(files[_train_file(number)]), Part(files[TEST]))


def _train_file(number: int) -> str:
    return f"cookup_train_{number}.h5"


# Federated EMNIST's digits by writer, as in TensorFlow Federated (TFF).
#
# Steps: TFF's archive in either edition, or a stand-in of a tenth of the size -> samples -> a
# client for each writer.  All clients share the test set, as in Chen et al. 2022.


# Of the stand-in; the published data have 3,383 writers with 101 samples on average.
WRITERS, PER_WRITER, WRITERS_TESTS = 200, 101, 1_000

_ARRAYS = ("x", "y", "x_test", "y_test", "writer", "writer_test")


class EmnistDigits(PooledData, name="emnist_digits"):
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
    def read(cls, edition: str, folder: Path) -> tuple[Samples, tuple[str, ...]]:
        """Read the archive, which takes minutes, or what an earlier call has kept of it."""
        (source,) = editions("tff_emnist")[edition]
        digests = sha256_by_name([folder / source.file])

        def convert(target: Path) -> None:
            with unpacked_parts("tff_emnist", edition, folder) as parts:
                samples = read_digits("tff_emnist", *parts)
            verify(samples)
            with replacing(target) as temporary:
                np.savez(temporary, **{array: getattr(samples, array) for array in _ARRAYS})

        target = folder / f"digits-{digests[source.file][:16]}.npz"
        with np.load(converted(target, convert), allow_pickle=False) as file:
            arrays = {array: file[array] for array in _ARRAYS}
        samples = Samples(name="tff_emnist", classes=10, inputs=digests, **arrays)
        return samples, verify(samples)

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


class TffCifar100(PooledData, name="tff_cifar100"):
    """CIFAR-100 over TFF's clients, Chen et al. 2022, appendix G."""

    official: ClassVar[tuple[str, ...]] = ("tff_cifar100",)
    published: ClassVar[int | None] = 500

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Load TFF's clients, pixels from 0 to 255; `seed` has no effect."""
        samples = self.samples(source, cache, mirror)
        return ByWriter().share_out(samples, seed, self.importance)

    @classmethod
    def read(cls, edition: str, folder: Path) -> tuple[Samples, tuple[str, ...]]:
        """Read the archive."""
        with unpacked_parts("tff_cifar100", edition, folder) as parts:
            samples = read_cifar100(*parts)
        return samples, verify(samples)

    @classmethod
    def stand_in(cls) -> Samples:
        """Generate images whose labels differ from client to client."""
        rng = stream(0, "data.cifar100_like")
        y, y_test = tastes(rng, CLIENTS, PER_CLIENT, 100), balanced(rng, TESTS, 100)
        drawn = images(rng, "cifar100-like", COLOURED, y, y_test, classes=100)
        return replace(drawn, writer=np.repeat(np.arange(CLIENTS), PER_CLIENT))


# TFF's Shakespeare by role, cut into short sequences as in Chen et al. 2022.
#
# Steps: TFF's archive in either edition, or a stand-in -> snippets by role -> a role's snippets
# joined and cut into chunks of six characters: the first five are the input, the last five the
# labels to predict, one per step.


STEPS = 5  # steps of a sequence
SNIPPET = 75  # characters, of the stand-in


class TffShakespeare(PooledData, name="tff_shakespeare"):
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
    def read(cls, edition: str, folder: Path) -> tuple[Samples, tuple[str, ...]]:
        """Read the archive."""
        with unpacked_parts("tff_shakespeare", edition, folder) as parts:
            train, test = map(read_snippets, parts)
        return _as_samples("tff_shakespeare", train, test), verify_snippets(train, test)

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
