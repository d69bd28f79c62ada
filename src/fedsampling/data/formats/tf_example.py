"""Reader of TensorFlow's example records that does not need TensorFlow.

A record is a protocol-buffer message: a map from feature names to lists of byte strings, float32 or
int64.  Only the parts of the encoding that this format uses are implemented; anything else raises
an error.

References
----------
tf.train.Example of TensorFlow (``example.proto``, ``feature.proto``), and the encoding of protocol
buffers, https://protobuf.dev/programming-guides/encoding.
"""

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Ints

_T = TypeVar("_T", bound=np.generic)
Feature = list[bytes] | NDArray[np.float32] | Ints

_VARINT, _LONG, _BYTES, _SHORT = 0, 1, 2, 5  # the wire types; the others are obsolete
_WIDTHS = {_LONG: 8, _SHORT: 4}


def parse_example(content: bytes) -> dict[str, Feature]:
    """Parse one record.

    Returns values by feature name: list of bytes, float32 array or int64 array, each of length k.
    """
    features: dict[str, Feature] = {}
    for field, value in _fields(content):
        for inner, entry in _fields(_message(value)) if field == 1 else ():
            if inner == 1:
                parts = dict(_fields(_message(entry)))
                name = bytes(_message(parts.get(1, b""))).decode()
                features[name] = _feature(_message(parts.get(2, b"")))
    return features


def _feature(content: memoryview) -> Feature:
    """Read the only list in a feature."""
    for kind, value in _fields(content):
        entries = [entry for field, entry in _fields(_message(value)) if field == 1]
        if kind == 1:
            return [bytes(_message(entry)) for entry in entries]
        if kind == 2:
            return _joined([np.frombuffer(_message(entry), "<f4") for entry in entries], np.float32)
        if kind == 3:
            # An unpacked entry is a single number; a packed one contains all of them.
            numbers = [
                np.array([entry], np.uint64).view(np.int64)
                if isinstance(entry, int)
                else _varints(entry)
                for entry in entries
            ]
            return _joined(numbers, np.int64)
    raise ValueError("not a record of examples: a feature has no values")


def _joined(parts: list[NDArray[_T]], dtype: type[_T]) -> NDArray[_T]:
    return np.concatenate(parts).astype(dtype, copy=False) if parts else np.empty(0, dtype)


def _varints(content: memoryview) -> Ints:
    """Decode all packed numbers at once: seven bits per byte, the lowest first."""
    data = np.frombuffer(content, np.uint8)
    last = data < 0x80
    if not len(data):
        return np.empty(0, np.int64)
    start = np.flatnonzero(np.append(True, last[:-1]))
    place = np.arange(len(data)) - np.repeat(start, np.diff(np.append(start, len(data))))
    if not last[-1] or place.max() > 9:
        raise ValueError("not a record of examples: a number does not end")
    bits = (data & 0x7F).astype(np.uint64) << (7 * place).astype(np.uint64)
    return np.bitwise_or.reduceat(bits, start).view(np.int64)


def _fields(content: bytes | memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the fields of a message: number, and value or content."""
    view, at = memoryview(content), 0
    while at < len(view):
        key, at = _varint(view, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(view, at)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, at = _varint(view, at)
        elif kind in _WIDTHS:
            length = _WIDTHS[kind]
        else:
            raise ValueError(f"not a record of examples: wire type {kind}")
        if at + length > len(view):
            raise ValueError("not a record of examples: it ends too early")
        yield key >> 3, view[at : at + length]
        at += length


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    """Decode one number; return it and the position after it."""
    value = 0
    for place, byte in enumerate(view[at : at + 10]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value & (1 << 64) - 1, at + place + 1
    raise ValueError("not a record of examples: a number does not end")


def _message(value: int | bytes | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError("not a record of examples: a number where a message is due")
    return memoryview(value)
