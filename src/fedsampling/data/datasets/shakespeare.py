"""Shakespeare by role: next-character prediction, each role of each play a client.

Steps: Gutenberg's text -> text by role (:mod:`.roles`) -> :func:`windows` (a sample is a position
in that text) -> sampling, filter and split (:mod:`fedsampling.data.partitions.partition`) ->
:func:`encode_windows` (arrays).

References
----------
Caldas et al.: LEAF: a benchmark for federated settings. arXiv 1812.01097.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Ints
from fedsampling.base.files import sha256
from fedsampling.base.records import Positive, Proportion, Share, hashed_if_set
from fedsampling.base.streams import stream
from fedsampling.data.datasets.characters import SIZES, encode
from fedsampling.data.datasets.dataset import PublishedData
from fedsampling.data.datasets.roles import LENGTH, Roles, pooled, read
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.partition import at_least, sample_clients, split
from fedsampling.data.samples import first_clients
from fedsampling.data.shares import Shares, importances, ranks, select, starts
from fedsampling.data.sources.fetch import fetch_dataset
from fedsampling.data.sources.sources import SOURCES
from fedsampling.data.stand_ins import play_like

GAP = LENGTH - 1  # windows dropped between training and test, so that they do not overlap
# Output of LEAF's scripts for the same text.  (Its page says 1,129 users.)  After the split, 799
# users remain with 0.8 of the samples for training, 660 with LEAF's default of 0.9.
USERS = 1_130


class Shakespeare(PublishedData, name="shakespeare", title="Shakespeare (LEAF)"):
    """Shakespeare by role, processed as by LEAF."""

    official: ClassVar[tuple[str, ...]] = ("shakespeare",)
    published: ClassVar[int | None] = USERS

    clients: Positive | None = Field(None, description="number of roles to use; null: all")
    fraction: Proportion = Field(1.0, description="fraction of all samples")
    min_samples: Positive = Field(1, description="minimum samples of a role, training and test")
    train: Share = Field(0.8, description="share of a role's samples for training")
    every: Positive = hashed_if_set(1, "use every n-th sample of a role; 1: all")
    length: Positive = hashed_if_set(
        LENGTH, "characters before the predicted one that a sample keeps", le=LENGTH
    )
    vocabulary: Literal["printable", "leaf"] = "printable"

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Read (or generate) the text and make its roles the clients.

        As in LEAF: draw roles until they have `fraction` of all samples, drop roles with few
        samples, and split each role: the first samples are for training, the next 79 are dropped.
        LEAF seeds the draw of roles with the time of day, so the papers' clients cannot be
        reproduced.  Here `seed` determines the roles; results may depend on it.
        """
        inputs: Mapping[str, str] = {}
        unverified = False
        if source == "official":
            roles, inputs, unverified = _official(cache, mirror)
        else:
            roles = pooled(play_like(stream(0, "data.play_like")))
        drawn = sample_clients(windows(roles), self.fraction, stream(seed, "data.roles"))
        train, tests = split(at_least(drawn, self.min_samples), self.train, GAP)
        train, tests = (
            select(shares, ranks(shares) % self.every == 0)
            for shares in (first_clients(train, self.clients), first_clients(tests, self.clients))
        )
        x, y = encode_windows(roles, train[0], self.vocabulary)
        x_test, y_test = encode_windows(roles, tests[0], self.vocabulary)
        return FederatedDataset(
            name="shakespeare" if source == "official" else "shakespeare-like",
            x=x[:, -self.length :],
            y=y,
            start=train[1],
            p=importances(train[1], self.importance),
            x_test=x_test[:, -self.length :],
            y_test=y_test,
            start_test=tests[1],
            classes=SIZES[self.vocabulary],
            unverified=unverified,
            inputs=inputs,
        )


def windows(roles: Roles) -> Shares:
    """Return the positions in the text where the 80 characters of each role's samples begin."""
    sizes = np.diff(roles.begin) - LENGTH
    start = starts(sizes)
    return np.repeat(roles.begin[:-1] - start[:-1], sizes) + np.arange(start[-1]), start


def encode_windows(roles: Roles, index: Ints, vocabulary: str) -> tuple[NDArray[np.int8], Ints]:
    """Encode samples at positions `index`, shape (B,): x, shape (B, 80), and the next character."""
    codes = encode(roles.text, vocabulary)
    x = np.lib.stride_tricks.sliding_window_view(codes, LENGTH)[index]
    return x, codes[index + LENGTH].astype(np.int64)


def _official(cache: Path, mirror: str | None) -> tuple[Roles, dict[str, str], bool]:
    paths = fetch_dataset("shakespeare", cache, mirror)
    (path,) = paths.values()
    roles = read(path)
    unverified = any(SOURCES[name].unverified for name in paths)
    return roles, {path.name: sha256(path)}, unverified
