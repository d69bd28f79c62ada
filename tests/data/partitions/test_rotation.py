import numpy as np
import pytest
from scipy import ndimage

from fedsampling.base.streams import stream
from fedsampling.data.partitions.rotation import Rotated, equal_shares, rotate
from fedsampling.data.samples import Samples

IMAGES = stream(0, "test.images").integers(0, 256, (12, 9, 14, 3)).astype(np.uint8)
SQUARE = stream(0, "test.square").integers(0, 256, (5, 8, 8)).astype(np.uint8)


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_quarter_turns_are_exact_and_anticlockwise(interpolation, quarters):
    turned = rotate(SQUARE, np.array([0, 5]), np.array([90.0 * quarters]), interpolation)
    assert np.array_equal(turned, np.rot90(SQUARE, quarters, axes=(1, 2)))


@pytest.mark.parametrize(("interpolation", "order"), [("nearest", 0), ("bilinear", 1)])
@pytest.mark.parametrize("degrees", [7.3, 30.0, 44.9, 123.0])
def test_rotation_agrees_with_scipys(interpolation, order, degrees):
    turned = rotate(IMAGES, np.array([0, 12]), np.array([degrees]), interpolation)
    expected = ndimage.rotate(
        IMAGES.astype(float),
        degrees,
        axes=(2, 1),
        reshape=False,
        order=order,
        mode="grid-constant",
        prefilter=False,
    )
    assert np.abs(turned - expected).max() <= 0.5 + 1e-4  # rounding to whole numbers


def test_each_client_has_its_own_angle():
    start, angle = np.array([0, 4, 5, 12]), np.array([10.0, 0.0, 45.0])
    turned = rotate(IMAGES, start, angle, "bilinear")
    for k in range(3):
        rows = slice(start[k], start[k + 1])
        single = rotate(IMAGES[rows], start[k : k + 2] - start[k], angle[[k]], "bilinear")
        assert np.array_equal(turned[rows], single)
    assert np.array_equal(turned[4], IMAGES[4])


def test_training_and_test_images_of_a_client_have_the_same_angle():
    x, x_test = (np.repeat(SQUARE[:1], count, axis=0) for count in (8, 4))
    samples = Samples("one image", x, np.zeros(8, int), x_test, np.zeros(4, int), 1)
    data = Rotated(name="rotated", clients=4, degrees=45).share_out(samples, 0, "equal")
    np.testing.assert_array_equal(data.x[::2], data.x_test)
    np.testing.assert_array_equal(data.x[::2], data.x[1::2])
    assert len(np.unique(data.x_test, axis=0)) == 4


def test_all_rows_are_assigned_to_clients_of_equal_size():
    index, start = equal_shares(1_003, 100, stream(0, "test"))
    assert np.array_equal(np.sort(index), np.arange(1_003))
    assert np.unique(np.diff(start), return_counts=True)[1].tolist() == [97, 3]
