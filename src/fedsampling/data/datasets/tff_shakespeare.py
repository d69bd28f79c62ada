"""TFF's Shakespeare by role, cut into short sequences as in Chen et al. 2022.

Steps: TFF's archive, or a stand-in -> snippets by role -> a role's snippets joined and cut into
chunks of six characters: the first five are the input, the last five the labels to predict, one per
step.
"""

from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Ints
from fedsampling.base.records import Positive
from fedsampling.base.streams import stream
from fedsampling.data.datasets.characters import SIZES, encode
from fedsampling.data.datasets.dataset import PooledData
from fedsampling.data.datasets.tff import Snippets, read_snippets, unpacked_parts
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.partition import at_least, by_owner
from fedsampling.data.samples import Samples, gather
from fedsampling.data.stand_ins import play_like

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
