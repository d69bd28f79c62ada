"""Rotated clients: equal label shares, but each client's images are rotated by its own angle.

harshvardhan2025latency: "there is no label imbalance, but, the images on each client are rotated
by an angle sampled uniformly from [0°, 45°]" (arXiv 2504.01921, section 6; table 3 also has 30°
and 60°).
"""

from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError
from fedsampling.base.records import Positive
from fedsampling.base.streams import stream
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.partition import LabelPartition
from fedsampling.data.samples import Samples, gather
from fedsampling.data.shares import Importance, Shares, starts

Interpolation = Literal["bilinear", "nearest"]


class Rotated(LabelPartition, name="rotated"):
    """Clients of equal size with rotated images, Harshvardhan et al. 2025."""

    needs_tests: ClassVar[bool] = True

    clients: Positive
    degrees: Annotated[float, Field(ge=0, le=360)] = Field(description="largest angle")
    interpolation: Interpolation = "bilinear"

    def share_out(self, samples: Samples, seed: int, importance: Importance) -> FederatedDataset:
        """Assign training and test images at random; rotate both of a client by the same angle."""
        if samples.x.dtype != np.uint8 or samples.x.ndim < 3:
            raise InputError("partition: rotated needs images; x must be integers from 0 to 255")
        rng = stream(seed, "data.rotated")
        train, test = (equal_shares(len(y), self.clients, rng) for y in (samples.y, samples.y_test))
        upright = gather(samples, train, test, importance)
        angle = rng.uniform(0, self.degrees, self.clients)
        return replace(
            upright,
            x=rotate(upright.x, train[1], angle, self.interpolation),
            x_test=rotate(upright.x_test, test[1], angle, self.interpolation),
        )


def equal_shares(total: int, n: int, rng: np.random.Generator) -> Shares:
    """Assign all rows to n clients at random; sizes differ by at most one."""
    if not 1 <= n <= total:
        raise InputError(f"clients: {n} clients cannot share {total:,} samples; use 1 to {total}")
    return rng.permutation(total), starts(total // n + (np.arange(n) < total % n))


def rotate(
    images: NDArray[np.uint8], start: Ints, angle: Array, interpolation: Interpolation
) -> NDArray[np.uint8]:
    """Rotate every client's images anticlockwise about their centre, like torchvision's `rotate`.

    Size and centre do not change; pixels outside the image count as 0, also in bilinear means.  The
    values equal torchvision 0.28's, except for about one bilinear pixel in ten thousand, whose
    value is close to a half and is rounded in the other direction.

    The paper does not name the interpolation.  torchvision's default is "nearest"; "bilinear" keeps
    strokes smooth and is the default here.

    Client k owns ``images[start[k]:start[k + 1]]``. `angle`, shape (n,): in degrees.
    """
    height, width, *channels = images.shape[1:]
    turned = np.empty_like(images)
    for k, degrees in enumerate(angle):
        client_images = images[start[k] : start[k + 1]]
        pixels = np.moveaxis(client_images, 0, -1).reshape(height * width, -1)
        moved = _moved(pixels, height, width, float(degrees), interpolation)
        moved = moved.reshape(height, width, *channels, len(client_images))
        turned[start[k] : start[k + 1]] = np.moveaxis(moved, -1, 0)
    return turned


def _moved(
    pixels: NDArray[np.uint8], height: int, width: int, degrees: float, interpolation: str
) -> NDArray[np.uint8]:
    """Apply one rotation to many images with a sparse matrix, since they share its geometry."""
    row, column = _origins(height, width, degrees)
    if interpolation == "nearest":
        weights = _matrix(np.rint(row), np.rint(column), np.ones_like(row), height, width)
        picked: NDArray[np.uint8] = weights.astype(np.uint8) @ pixels
        return picked
    top, left = np.floor(row), np.floor(column)
    down, right = row - top, column - left
    weights = (
        _matrix(top, left, (1 - down) * (1 - right), height, width)
        + _matrix(top, left + 1, (1 - down) * right, height, width)
        + _matrix(top + 1, left, down * (1 - right), height, width)
        + _matrix(top + 1, left + 1, down * right, height, width)
    )
    # Adding 0.5 before the cast truncates rounds correctly: values are never negative.
    moved: NDArray[np.float32] = weights.astype(np.float32) @ pixels.astype(np.float32)
    moved += 0.5
    return moved.astype(np.uint8)


def _origins(height: int, width: int, degrees: float) -> tuple[Array, Array]:
    """Return the source of each pixel of the rotated image, shape (H W,), rows pointing down."""
    # Rounding removes the error of cos 90°, which would move pixels in exact quarter turns.
    turn = np.deg2rad(degrees)
    cos, sin = np.round(np.cos(turn), 12), np.round(np.sin(turn), 12)
    y, x = np.mgrid[:height, :width].reshape(2, -1) - np.array(
        [[(height - 1) / 2], [(width - 1) / 2]]
    )
    return sin * x + cos * y + (height - 1) / 2, cos * x - sin * y + (width - 1) / 2


def _matrix(row: Array, column: Array, weight: Array, height: int, width: int) -> Any:
    """Build the matrix from old to new pixels, with interpolation weights; 0 from outside."""
    from scipy.sparse import csr_array

    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    inside &= weight > 0
    source = (row * width + column)[inside].astype(np.int64)
    shape = (height * width, height * width)
    return csr_array((weight[inside], (np.flatnonzero(inside), source)), shape=shape)
