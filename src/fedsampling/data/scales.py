"""Check that the samples of all clients, and the tests, are on one scale.

Samples that were converted differently are refused: bytes 0…255 mixed with fractions 0…1, bytes
with bits, and images of 8 with images of 16 bits.  Measurements whose size differs by client pass.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.errors import InputError
from fedsampling.data.federated import FederatedDataset

# Scales differ if some clients have whole numbers, some of them large, and others small fractions.
MIN_LARGE, MAX_SMALL, MIN_WHOLE = 100.0, 10.0, 16  # the last: how many whole numbers prove it
MAX_BYTE, MAX_CENTRED = 255, 128  # of bytes from 0, and from −128
MIN_PIXELS = 16  # features of a table that may be an image
MIN_ONES = 0.1  # share of ones in images of bits; rare counts have fewer
MIN_BRIGHT = 200.0  # largest value of almost every image of 8 bits
MIN_WIDE = 4.0 * MAX_BYTE  # largest value of an image with more than 8 bits
BLOCK_NUMBERS = 2**22  # numbers whose scale is measured at once


class Parts(NamedTuple):
    """Scales of the clients' training samples and, as the last part, of all tests."""

    start: Ints  # shape (parts + 1,): first sample of each part
    size: Array  # largest absolute value
    low: Array  # smallest value
    is_whole: Bools  # whether all numbers are whole
    ones: Array  # share of ones; 0 for parts that have other numbers than 0 and 1


def check_scales(data: FederatedDataset) -> None:
    """Refuse parts on different scales: of clients, or of training and test."""
    if data.input_type == "tokens":
        return
    parts = _parts(data)
    for kinds in (_beside_fractions, _beside_bits, _beside_centred):
        first, second = kinds(parts, data)
        if first.any() and second.any():
            raise InputError(_line(parts, first, second, data))


def _beside_fractions(parts: Parts, data: FederatedDataset) -> tuple[Bools, Bools]:
    """Return which parts are large whole numbers, and which small fractions; none by chance."""
    large = parts.is_whole & (parts.size > MIN_LARGE)
    small = ~parts.is_whole & (parts.size <= MAX_SMALL)
    n_whole = np.diff(parts.start)[parts.is_whole].sum() * data.x[0].size
    if (~parts.is_whole & ~small).any() or n_whole < MIN_WHOLE:
        return np.zeros_like(large), small
    return large, small


def _beside_bits(parts: Parts, data: FederatedDataset) -> tuple[Bools, Bools]:
    """Return which parts are images of more bits than others, and which of fewer."""
    is_image = data.x.ndim > 2
    is_table = not is_image and data.x[0].size < MIN_PIXELS  # where both kinds must be clear
    least = 0.0 if data.input_type == "unit" else 2 * MIN_ONES if is_table else MIN_ONES
    bits = (parts.ones > least) & (parts.ones < 1 - least)
    byte = (parts.size > (MIN_BRIGHT if is_table else MIN_LARGE)) & (parts.size <= MAX_BYTE)
    wide = parts.size > MIN_WIDE
    if not parts.is_whole.all():
        return np.zeros_like(bits), bits
    if is_image and wide.any():
        return wide, bits | (byte & (parts.size > MIN_BRIGHT))
    return byte, bits


def _beside_centred(parts: Parts, data: FederatedDataset) -> tuple[Bools, Bools]:
    """Return which parts are bytes, and which bytes from −128 to 127."""
    may_be_images = data.x.ndim > 2 or data.x[0].size >= MIN_PIXELS
    is_whole = parts.is_whole & may_be_images
    byte = is_whole & (parts.low >= 0) & (parts.size > MAX_CENTRED) & (parts.size <= MAX_BYTE)
    centred = is_whole & (parts.low < -MIN_LARGE) & (parts.size <= MAX_CENTRED)
    return byte, centred


def _parts(data: FederatedDataset) -> Parts:
    tests = [len(data.x) + len(data.x_test)] if len(data.x_test) else []
    start = np.append(data.start, tests).astype(np.int64)
    measured = np.concatenate([_scales(data.x), _scales(data.x_test)], axis=1)
    size, fractions = np.maximum.reduceat(measured[:2], start[:-1], axis=1)
    ones = np.add.reduceat(measured[2], start[:-1]) / (np.diff(start) * data.x[0].size)
    low = np.minimum.reduceat(measured[3], start[:-1])
    is_bits = (fractions == 0) & (low == 0) & (size == 1)
    return Parts(start, size, low, fractions == 0, np.where(is_bits, ones, 0.0))


def _scales(x: NDArray[Any]) -> Array:
    """Return each sample's largest size, whether it has fractions, its ones if bits, its minimum.

    Shape (4, samples).
    """
    scales = np.zeros((4, len(x)))
    rows = max(1, BLOCK_NUMBERS // max(1, x[:1].size))
    for first in range(0, len(x), rows):
        block = x[first : first + rows].reshape(len(x[first : first + rows]), -1)
        part = scales[:, first : first + rows]
        part[0] = block.max(1) if x.dtype == np.uint8 else np.abs(block).max(1)
        part[1] = 0.0 if x.dtype == np.uint8 else (block != np.floor(block)).any(1)
        bits = part[0] == 1
        part[2, bits] = (block[bits] == 1).sum(1)
        part[3] = block.min(1)
    return scales


def _line(parts: Parts, first: Bools, second: Bools, data: FederatedDataset) -> str:
    """Describe the last part of each of two kinds."""
    pooled = data.x if not len(data.x_test) else np.concatenate([data.x, data.x_test])
    places = [int(np.flatnonzero(kind)[-1]) for kind in (first, second)]
    values = [pooled[parts.start[part] : parts.start[part + 1]] for part in places]
    ranges = [f"{part.min():g}…{part.max():g}" for part in values]
    n = data.n_clients
    if n in places:
        names = ["x_test" if part == n else "x" for part in places]
    else:
        clients = data.names or range(n)
        names = [f"client {clients[part]}" for part in places]
    kind = "whole numbers" if parts.is_whole[places[1]] else "fractions"
    return (
        f"x: different scales; {names[0]} has whole numbers {ranges[0]}, {names[1]} {kind} "
        f"{ranges[1]}; convert all to the same scale"
    )
