"""MNIST, FashionMNIST and CIFAR-10 from settings to clients, from stand-ins and real files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.data.federated import FederatedDataset

from .loading import IDX_FILES, load

NAMES = ("mnist", "fashion_mnist", "cifar10")
BY_DIGIT = {"name": "by_digit"}
DIRICHLET = {"name": "dirichlet", "alpha": 0.1}
ROTATED = {"name": "rotated", "clients": 20, "degrees": 45}


def loaded(name: str, partition: dict[str, Any], *source: str, **more: Any) -> FederatedDataset:
    return load(name, *source, partition=partition, **more)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("partition", "clients"),
    [
        (BY_DIGIT, 100),
        (DIRICHLET, 100),
        (DIRICHLET | {"variant": "code"}, 100),
        ({"name": "all_by_dirichlet", "clients": 30, "alpha": 2}, 30),
        (ROTATED, 20),
    ],
    ids=["by_digit", "text", "code", "all_by_dirichlet", "rotated"],
)
def test_a_stand_in_takes_every_partition(name, partition, clients):
    data = loaded(name, partition)
    again, other = loaded(name, partition), loaded(name, partition, seed=1)
    assert data.n_clients == clients
    assert data.classes == 10
    assert data.inputs == {}
    np.testing.assert_array_equal(data.x, again.x)
    if partition.get("variant") != "code":
        np.testing.assert_allclose(data.p, data.n_samples / data.n_samples.sum())
    assert data.x.shape != other.x.shape or not np.array_equal(data.x, other.x)


def test_groups_shrink_with_the_stand_in_and_a_fifth_are_tests():
    data = loaded("cifar10", DIRICHLET)
    assert data.start_test is not None
    assert data.n_samples.tolist() == [10] * 10 + [25] * 30 + [50] * 30 + [75] * 20 + [100] * 10
    assert np.diff(data.start_test).tolist() == (data.n_samples // 5).tolist()


def test_a_clients_training_and_test_images_have_the_same_angle():
    upright = loaded("mnist", ROTATED | {"degrees": 0})
    turned = loaded("mnist", ROTATED)
    np.testing.assert_array_equal(upright.y, turned.y)
    np.testing.assert_array_equal(upright.y_test, turned.y_test)
    for one, other in ((upright.x, turned.x), (upright.x_test, turned.x_test)):
        assert not np.array_equal(one, other)
        # A turn about the centre keeps the ink, but for rounding and what leaves at the edges.
        assert other.sum() / one.sum() == pytest.approx(1, abs=0.01)


def test_importance_can_be_equal():
    assert np.ptp(loaded("cifar10", DIRICHLET, importance="equal").p) == 0


def test_writers_become_unbalanced_as_published():
    even = loaded("mnist", {"name": "by_writer"})
    data = loaded("mnist", {"name": "by_writer", "unbalance": 1})
    assert even.n_clients == data.n_clients == 54
    held = np.sort(data.n_samples)[-5:].sum() / data.n_samples.sum()
    assert held == pytest.approx(0.82, abs=0.02)
    assert np.sort(even.n_samples)[-5:].sum() / even.n_samples.sum() < 0.2


def test_some_of_the_writers_are_a_prefix_of_more():
    few, more = (loaded("mnist", {"name": "by_writer", "clients": n}) for n in (5, 20))
    assert (few.n_clients, more.n_clients) == (5, 20)
    np.testing.assert_array_equal(few.x, more.x[: few.start[-1]])
    with pytest.raises(InputError, match="must be 1 to 54"):
        loaded("mnist", {"name": "by_writer", "clients": 55})


def test_a_fraction_of_the_images_is_drawn_before_the_partition():
    upright = {"name": "rotated", "clients": 10, "degrees": 0}
    few, every = loaded("mnist", upright, fraction=0.1), loaded("mnist", upright)
    assert (len(few.x), len(few.x_test)) == (600, 100)
    known = {image.tobytes() for image in every.x}
    assert all(image.tobytes() in known for image in few.x)


def test_only_mnist_has_writers():
    partition = {"name": "by_writer", "unbalance": None}
    with pytest.raises(InputError, match=r"partition\.name: 'by_writer' is unknown"):
        loaded("cifar10", partition)


def test_mnist_by_digit_from_the_publishers_files(mirror, tmp_path):
    data = loaded("mnist", BY_DIGIT, "official", cache=tmp_path, mirror=mirror)
    assert set(data.n_samples) == {500}
    assert (data.label_counts() > 0).sum(1).tolist() == [1] * 100
    assert sorted(data.inputs) == sorted(IDX_FILES)
    assert not data.unverified


def test_real_writers_unbalanced(mirror, tmp_path):
    partition = {"name": "by_writer", "unbalance": 1}
    data = loaded("mnist", partition, "official", cache=tmp_path, mirror=mirror)
    assert data.n_clients == 539
    assert len(data.x_test) == 10_000
    assert len(data.inputs) == 6
    held = np.sort(data.n_samples)[-54:].sum() / data.n_samples.sum()
    assert held == pytest.approx(0.82, abs=0.02)


def test_cifar10_from_a_mirrors_sheets_is_marked(mirror, tmp_path):
    if not Path(mirror, "cifar10").is_dir():
        pytest.skip(f"no real data: {mirror} does not hold cifar10/")
    found = loaded("cifar10", DIRICHLET, "official", cache=tmp_path, mirror=mirror)
    assert sorted(set(found.n_samples)) == [100, 250, 500, 750, 1000]
    assert found.unverified
    assert len(found.inputs) == 25
