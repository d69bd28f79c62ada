"""TFF's Shakespeare by role, cut into short sequences as in chen2022optimal.

Steps: TFF's archive in either edition, or a stand-in -> snippets by role -> a role's snippets
joined and cut into chunks of six characters: the first five are the input, the last five the labels
to predict, one per step.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Ints
from fedsampling.base.records import Positive
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import PublishedData
from fedsampling.data.datasets.standins import play_like
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.formats import tff
from fedsampling.data.formats.shakespeare_roles import SIZES, encode
from fedsampling.data.formats.tff_files import fetch_parts, unpack_edition
from fedsampling.data.partitions.natural import at_least, by_owner
from fedsampling.data.partitions.shares import importances

LENGTH = 5  # steps of a sequence
SNIPPET = 75  # characters, of the stand-in


class TffShakespeare(PublishedData, name="tff_shakespeare"):
    """Shakespeare by role as published by TFF, in sequences of five characters, chen2022optimal."""

    official: ClassVar[tuple[str, ...]] = ("tff_shakespeare",)
    published: ClassVar[int | None] = 715

    min_samples: Positive = Field(1, description="minimum training sequences of a role")

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Make each role a client; `seed` has no effect.

        The paper's roles have at least one batch of 8 sequences.

        In the result, `x` is int8, `y` int64, both of shape (sequences, 5); one common test set.
        """
        inputs: Mapping[str, str] = {}
        unverified = False
        if source == "official":
            with fetch_parts("tff_shakespeare", cache, mirror) as (train, test, unverified):
                snippets, tests = tff.read_snippets(train), tff.read_snippets(test)
                inputs = tff.inputs(train, test)
            tff.verify_snippets(snippets, tests)
        else:
            snippets, tests = _embedded()
        codes, role = sequences(snippets)
        index, start = at_least(by_owner(role), self.min_samples)
        train_codes, test_codes = codes[index], sequences(tests)[0]
        return FederatedDataset(
            name="tff_shakespeare" if source == "official" else "tff_shakespeare-like",
            x=train_codes[:, :LENGTH],
            y=train_codes[:, 1:].astype(np.int64),
            start=start,
            p=importances(start, self.importance),
            x_test=test_codes[:, :LENGTH],
            y_test=test_codes[:, 1:].astype(np.int64),
            classes=SIZES["tff"],
            unverified=unverified,
            inputs=inputs,
        )

    @classmethod
    def verify(cls, dataset: str, edition: str, folder: Path) -> tuple[str, ...]:
        """Compare official files with the published shapes and counts."""
        train, test = unpack_edition(dataset, edition, folder)
        return tff.verify_snippets(tff.read_snippets(train), tff.read_snippets(test))


def sequences(snippets: tff.Snippets) -> tuple[NDArray[np.int8], Ints]:
    """Cut the joined snippets of each role into chunks; incomplete chunks are dropped.

    Returns `codes`, shape (sequences, 6): symbol numbers in TFF's vocabulary; `role`, shape
    (sequences,): number of the role, in the order of `snippets`.
    """
    codes, sizes = [], []
    for lines in snippets.values():
        text = encode(np.frombuffer(b"".join(lines), np.uint8), "tff")
        size = len(text) // (LENGTH + 1)
        codes.append(text[: size * (LENGTH + 1)].reshape(size, LENGTH + 1))
        sizes.append(size)
    return np.concatenate(codes), np.repeat(np.arange(len(sizes)), sizes)


def _embedded() -> tuple[tff.Snippets, tff.Snippets]:
    """Generate roles; every eighth snippet is a test."""
    roles = play_like(stream(0, "data.play_like"))
    lines = {
        "/".join(role): [
            text[begin : begin + SNIPPET].encode() for begin in range(0, len(text), SNIPPET)
        ]
        for role, text in roles.items()
    }
    train, tests = (
        {
            role: tuple(line for k, line in enumerate(snippets) if (k % 8 == 7) == is_test)
            for role, snippets in lines.items()
        }
        for is_test in (False, True)
    )
    return train, tests
