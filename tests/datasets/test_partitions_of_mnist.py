from pathlib import Path

import numpy as np
import pytest

from fedsampling.base.streams import stream
from fedsampling.datasets.formats import idx as mnist
from fedsampling.partitions.federated import share_of_largest
from fedsampling.partitions.natural import at_least, by_owner
from fedsampling.partitions.raw import Raw
from fedsampling.partitions.unbalancing import SETS, Unbalancing, unbalance


@pytest.fixture(scope="module")
def raw(mirror: str) -> Raw:
    files = [
        Path(mirror, "mnist", f"{part}-{kind}-ubyte.gz")
        for part in ("train", "t10k")
        for kind in ("images-idx3", "labels-idx1")
    ]
    writers = [
        Path(mirror, "qmnist", f"qmnist-{part}-labels-idx2-int.gz") for part in ("train", "test")
    ]
    for path in (*files, *writers):
        if not path.exists():
            pytest.skip(f"no real data: {path} is absent")
    return mnist.add_writers(mnist.read("mnist", *files), *writers)


def test_mnist_by_writer_has_539_clients(raw: Raw):
    shares = by_owner(raw.writer)
    sizes = np.diff(shares[1])
    assert (len(sizes), sizes.min(), np.median(sizes), sizes.max()) == (539, 19, 116, 131)
    assert len(at_least(shares, 100)[1]) - 1 == (sizes >= 100).sum() < 539


@pytest.mark.parametrize("chosen", SETS.values())
def test_unbalancing_meets_the_published_shares_on_mnist_by_writer(raw: Raw, chosen: Unbalancing):
    _, start = unbalance(by_owner(raw.writer), chosen.s, chosen.a, chosen.b, stream(0, "test"))
    # The same parameters as for Federated EMNIST; its clients are a tenth smaller.
    assert share_of_largest(np.diff(start), chosen.s) == pytest.approx(chosen.share, abs=0.02)
