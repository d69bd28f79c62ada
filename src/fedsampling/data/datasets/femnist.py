"""LEAF's FEMNIST as a federated dataset: each writer is a client with training and test images.

Steps: NIST's two archives -> :func:`leaf_femnist.convert`, once -> :func:`leaf_femnist.read`, or
a stand-in -> LEAF's steps in LEAF's order (:mod:`fedsampling.data.partitions.natural`): draw
writers, drop those with few images, split each writer's images at random.

References
----------
S. Caldas et al.: LEAF: a benchmark for federated settings. arXiv:1812.01097.
"""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from fedsampling.base.files import sha256_by_name
from fedsampling.base.records import Part, Positive, Share
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import PublishedData
from fedsampling.data.datasets.standins import GRAY, images, unequal
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.formats import leaf_femnist
from fedsampling.data.partitions.natural import at_least, by_owner, sample_clients, split
from fedsampling.data.samples import Samples, first_clients, gather
from fedsampling.data.sources.cache import converted
from fedsampling.data.sources.fetch import fetch_dataset
from fedsampling.data.sources.sources import SOURCES

WRITERS, IMAGES = 100, 20_000  # of the stand-in; NIST has 3,597 and 814,255


class Femnist(PublishedData, name="femnist"):
    """FEMNIST by writer, processed as by LEAF."""

    official: ClassVar[tuple[str, ...]] = ("nist_sd19",)
    published: ClassVar[int | None] = 3_597

    clients: Positive | None = Field(None, description="number of writers to use; null: all")
    fraction: Part = Field(1.0, description="fraction of all images")
    min_samples: Positive = Field(1, description="minimum images of a writer, training and test")
    train: Share = Field(0.9, description="share of a writer's images for training")
    repeat_first: bool = Field(
        False,
        description="repeat the first image of each writer but the first, as LEAF does",
    )

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Make each sampled writer a client.

        The writers and their test images are random.  LEAF seeds them with the time of day, so the
        papers' clients cannot be reproduced; here `seed` determines them.  With `repeat_first`, one
        of two identical images may be in the test set.

        In the result, `x` is uint8 of shape (images, 28, 28), 255 for the background; 62 labels.
        """
        samples = _read_or_generate(source, cache, mirror)
        if self.repeat_first:
            samples = leaf_femnist.first_repeated(samples)
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
    def verify(cls, dataset: str, edition: str, folder: Path) -> tuple[str, ...]:
        """Compare official files with the published shapes and counts."""
        target = folder / "femnist.npz"
        leaf_femnist.convert(folder / "by_class.zip", folder / "by_write.zip", target)
        return leaf_femnist.verify(leaf_femnist.read(target))


@lru_cache(maxsize=1)
def _read_or_generate(source: str, cache: Path, mirror: str | None) -> Samples:
    """Read or generate the images, once for all seeds of a job."""
    if source != "official":
        rng = stream(0, "data.femnist_like")
        y, writer = rng.integers(62, size=IMAGES), unequal(rng, IMAGES, WRITERS)
        # No test part: load() splits each writer's images.
        drawn = images(
            rng,
            "femnist-like",
            GRAY,
            y,
            y[:0],
            classes=62,
            writer=writer,
            writer_test=writer[:0],
        )
        return replace(drawn, x=255 - drawn.x, x_test=255 - drawn.x_test)
    paths = fetch_dataset("nist_sd19", cache, mirror)
    by_class, by_write = (paths[f"nist_sd19/{file}"] for file in ("by_class.zip", "by_write.zip"))
    inputs = sha256_by_name([by_class, by_write])
    digest = "-".join(file_digest[:8] for file_digest in inputs.values())
    target = converted(
        cache / "nist_sd19" / f"femnist-{digest}.npz",
        lambda target: leaf_femnist.convert(by_class, by_write, target),
    )
    samples = leaf_femnist.read(target)
    leaf_femnist.verify(samples)
    unverified = any(SOURCES[name].unverified for name in paths)
    return replace(samples, inputs=inputs, unverified=unverified)
