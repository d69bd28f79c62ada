"""MNIST, FashionMNIST and CIFAR-10 from settings to clients, from stand-ins and real files."""

import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.data.federated import share_of_largest

from .loading import load

NAMES = ("mnist", "fashion_mnist", "cifar10")
BY_DIGIT = {"name": "by_digit"}
DIRICHLET = {"name": "dirichlet", "alpha": 0.1}
ROTATED = {"name": "rotated", "clients": 20, "degrees": 45}


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
)
def test_a_stand_in_takes_every_partition(name, partition, clients):
    data = load(name, partition=partition)
    reloaded, other_seed = load(name, partition=partition), load(name, partition=partition, seed=1)
    assert data.n_clients == clients
    assert data.classes == 10
    assert data.inputs == {}
    np.testing.assert_array_equal(data.x, reloaded.x)
    if partition.get("variant") != "code":
        np.testing.assert_allclose(data.p, data.n_samples / data.n_samples.sum())
    assert data.x.shape != other_seed.x.shape or not np.array_equal(data.x, other_seed.x)


def test_groups_shrink_with_the_stand_in_and_a_fifth_are_tests():
    data = load("cifar10", partition=DIRICHLET)
    assert data.n_samples.tolist() == [10] * 10 + [25] * 30 + [50] * 30 + [75] * 20 + [100] * 10
    assert np.diff(data.start_test).tolist() == (data.n_samples // 5).tolist()
    assert np.ptp(load("cifar10", partition=DIRICHLET, importance="equal").p) == 0


def test_rotation_keeps_labels_and_the_ink_of_training_and_test_images():
    upright = load("mnist", partition=ROTATED | {"degrees": 0})
    turned = load("mnist", partition=ROTATED)
    np.testing.assert_array_equal(upright.y, turned.y)
    np.testing.assert_array_equal(upright.y_test, turned.y_test)
    for before, after in ((upright.x, turned.x), (upright.x_test, turned.x_test)):
        assert not np.array_equal(before, after)
        # A turn about the centre keeps the ink, but for rounding and what leaves at the edges.
        assert after.sum() / before.sum() == pytest.approx(1, abs=0.01)


def test_mnists_writers_become_unbalanced_as_published():
    even = load("mnist", partition={"name": "by_writer"})
    data = load("mnist", partition={"name": "by_writer", "unbalance": 1})
    assert even.n_clients == data.n_clients == 54
    assert share_of_largest(data.n_samples, 0.1) == pytest.approx(0.82, abs=0.02)
    assert share_of_largest(even.n_samples, 0.1) < 0.2
    with pytest.raises(InputError, match=r"partition\.name: 'by_writer' is unknown"):
        load("cifar10", partition={"name": "by_writer"})


def test_some_of_the_writers_are_a_prefix_of_more():
    five, twenty = (load("mnist", partition={"name": "by_writer", "clients": n}) for n in (5, 20))
    assert (five.n_clients, twenty.n_clients) == (5, 20)
    np.testing.assert_array_equal(five.x, twenty.x[: five.start[-1]])
    with pytest.raises(InputError, match="must be 1 to 54"):
        load("mnist", partition={"name": "by_writer", "clients": 55})


def test_a_fraction_of_the_images_is_drawn_before_the_partition():
    upright = {"name": "rotated", "clients": 10, "degrees": 0}
    tenth, data = load("mnist", partition=upright, fraction=0.1), load("mnist", partition=upright)
    assert (len(tenth.x), len(tenth.x_test)) == (600, 100)
    images = {image.tobytes() for image in data.x}
    assert all(image.tobytes() in images for image in tenth.x)


def test_real_writers_unbalanced(mirror, tmp_path):
    partition = {"name": "by_writer", "unbalance": 1}
    data = load("mnist", "official", 0, tmp_path, mirror, partition=partition)
    assert data.n_clients == 539
    assert len(data.x_test) == 10_000
    assert len(data.inputs) == 6
    assert share_of_largest(data.n_samples, 0.1) == pytest.approx(0.82, abs=0.02)
