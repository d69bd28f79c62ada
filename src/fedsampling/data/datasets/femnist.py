"""FEMNIST as a federated dataset: each writer is a client with training and test images.

Steps: NIST's two archives (:mod:`.nist`), or a stand-in -> LEAF's steps in LEAF's order
(:mod:`fedsampling.data.partitions.partition`): draw writers, drop those with few images, split each
writer's images at random.

References
----------
S. Caldas et al.: LEAF: a benchmark for federated settings. arXiv:1812.01097.
"""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from fedsampling.base.files import sha256_by_name
from fedsampling.base.records import Positive, Proportion, Share
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import PooledData
from fedsampling.data.datasets.nist import CONVERSION, convert, first_repeated, read
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.partition import at_least, by_owner, sample_clients, split
from fedsampling.data.samples import Samples, first_clients, gather
from fedsampling.data.sources.cache import converted
from fedsampling.data.stand_ins import GRAY, images, unequal

WRITERS, IMAGES = 100, 20_000  # of the stand-in; NIST has 3,597 and 814,255


class Femnist(PooledData, name="femnist", title="FEMNIST (LEAF)"):
    """FEMNIST by writer, processed as by LEAF."""

    official: ClassVar[tuple[str, ...]] = ("nist_sd19",)
    published: ClassVar[int | None] = 3_597

    clients: Positive | None = Field(None, description="number of writers to use; null: all")
    fraction: Proportion = Field(1.0, description="fraction of all images")
    min_samples: Positive = Field(1, description="minimum images of a writer, training and test")
    train: Share = Field(0.9, description="share of a writer's images for training")
    repeat_first: bool = Field(
        False, description="repeat the first image of each writer but the first, as LEAF does"
    )

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Make each sampled writer a client; pixels are bytes, 255 for the background.

        LEAF seeds the draws of writers and test images with the time of day, so the papers' clients
        cannot be reproduced; here `seed` determines them. With `repeat_first`, one of two identical
        images may be in the test set.
        """
        samples = self.samples(source, cache, mirror)
        if self.repeat_first:
            samples = first_repeated(samples)
        assert samples.writer is not None
        writers = by_owner(samples.writer)
        drawn = sample_clients(writers, self.fraction, stream(seed, "data.writers"))
        large_enough = at_least(drawn, self.min_samples)
        train, test = (
            first_clients(shares, self.clients)
            for shares in split(large_enough, self.train, rng=stream(seed, "data.writers.split"))
        )
        # Rows of one pool become tests and training samples.
        pool = replace(samples, x_test=samples.x, y_test=samples.y, writer_test=samples.writer)
        return gather(pool, train, test, self.importance)

    @classmethod
    def read(cls, edition: str, folder: Path) -> Samples:
        """Read NIST's archives, which takes minutes, or what an earlier call has kept of them."""
        archives = folder / "by_class.zip", folder / "by_write.zip"
        inputs = sha256_by_name(archives)
        digest = "-".join(file_digest[:8] for file_digest in inputs.values())
        path = folder / f"femnist-{digest}-{CONVERSION}.npz"
        samples = read(converted(path, lambda target: convert(*archives, target)))
        return replace(samples, inputs=inputs)

    @classmethod
    def stand_in(cls) -> Samples:
        """Generate images, all for training: `load` splits the images of each writer."""
        rng = stream(0, "data.femnist_like")
        y, writer = rng.integers(62, size=IMAGES), unequal(rng, IMAGES, WRITERS)
        drawn = images(
            rng, "femnist-like", GRAY, y, y[:0], classes=62, writer=writer, writer_test=writer[:0]
        )
        return replace(drawn, x=255 - drawn.x, x_test=255 - drawn.x_test)
