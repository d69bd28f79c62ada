"""Federated EMNIST's digits by writer, as in TensorFlow Federated (TFF).

Steps: TFF's archive, or a stand-in of a tenth of the size -> samples -> a
client for each writer.  All clients share the test set, as in Chen et al. 2022.

References
----------
S. Caldas et al.: LEAF: a benchmark for federated settings. arXiv:1812.01097.
"""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from fedsampling.base.files import replacing, sha256_by_name
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import PooledData
from fedsampling.data.datasets.tff import read_digits, unpacked_parts
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.unbalanced import ByWriter, Number
from fedsampling.data.samples import Samples
from fedsampling.data.sources.cache import converted
from fedsampling.data.sources.sources import editions
from fedsampling.data.stand_ins import digits_like

# Of the stand-in; the published data have 3,383 writers with 101 samples on average.
WRITERS, PER_WRITER, WRITERS_TESTS = 200, 101, 1_000
CONVERSION = 1  # version of the file that `read` keeps; increase it if other arrays are written
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

        target = folder / f"digits-{digests[source.file][:16]}-{CONVERSION}.npz"
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
