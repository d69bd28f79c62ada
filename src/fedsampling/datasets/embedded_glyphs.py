"""Letters and digits as pen strokes, from which :mod:`embedded_images` makes handwriting.

Each character is a few strokes through points of a grid: x from 0 to 4, y from 0 (top of a
capital) over 6 (the line) to 8 (end of a descender).  A point named twice keeps its corner when
the stroke is smoothed.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

POINTS = 64  # along each character, at equal distances

# In the order of LEAF's labels: digits, capitals, small letters; "|" lifts the pen.
_STROKES = """
0: 20 00 06 46 40 20;           1: 12 20 20 26;          2: 01 00 40 43 06 06 46
3: 00 40 43 13 13 43 46 06;     4: 30 30 04 04 44|32 36; 5: 40 00 00 03 03 42 46 16 05
6: 40 10 04 06 46 43 03;        7: 00 40 40 16;          8: 20 00 03 43 46 06 03 43 40 20
9: 42 40 00 03 43 41 41 36;     A: 06 20 20 46|14 34;    B: 06 00 00 40 43 03 03 43 46 06 06
C: 41 40 00 06 46 45;           D: 06 06 00 00 40 46 06; E: 40 00 00 06 06 46|03 33
F: 40 00 00 06|03 33;           G: 41 40 00 06 46 43 43 23; H: 00 06|40 46|03 43
I: 20 26|10 30|16 36;           J: 40 46 06 05;          K: 00 06|40 03 03 46
L: 00 06 06 46;                 M: 06 00 00 24 24 40 40 46; N: 06 00 00 46 46 40
O: 20 00 03 06 26 46 43 40 20; P: 06 00 00 40 43 03;  Q: 20 00 06 46 40 20|24 47
R: 06 00 00 40 43 03 03 46;     S: 41 40 00 03 43 46 06 05; T: 00 40|20 26
U: 00 06 46 40;                 V: 00 26 26 40;          W: 00 16 16 22 22 36 36 40
X: 00 46|40 06;                 Y: 00 23 23 40|23 26;    Z: 00 40 40 06 06 46
a: 42 02 06 46 42 42 46;        b: 00 06 06 46 42 02;    c: 43 42 02 06 46 45
d: 40 46 46 06 02 42;           e: 04 44 42 02 06 46;    f: 40 20 20 26|03 33
g: 42 02 05 45 42 42 48 08;     h: 00 06|04 02 42 46 46; i: 22 26|20 21
j: 32 38 08|30 31;              k: 00 06|32 04 04 36;    l: 20 26 26 36
m: 02 06|03 02 22 26|23 22 42 46; n: 02 06|04 02 42 46 46; o: 22 02 06 46 42 22
p: 08 02 02 42 46 06;           q: 48 42 42 02 06 46;    r: 02 06|04 02 42
s: 42 02 04 44 46 06;           t: 20 26 46|02 42;       u: 02 06 46 42 42 46
v: 02 26 26 42;                 w: 02 16 16 23 23 36 36 42; x: 02 46|42 06
y: 02 26|42 08;                 z: 02 42 42 06 06 46
"""


@cache
def glyphs() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the points of the 62 characters and the lengths of their strokes.

    Returns
    -------
    points : float32 array, shape (62, POINTS, 2)
        x and y in units of the grid, each character about its middle.
    length : float32 array, shape (62,)
        Of all strokes of a character.
    """
    entries = [entry for line in _STROKES.strip().splitlines() for entry in line.split(";")]
    traced = [_trace(entry.split(":")[1]) for entry in entries]
    points = np.stack([points for points, _ in traced])
    return points.astype(np.float32), np.array([length for _, length in traced], np.float32)


def _trace(strokes: str) -> tuple[NDArray[np.float64], float]:
    """Return equidistant points along smoothed strokes, and the strokes' length."""
    begins, ends = [], []
    for stroke in strokes.split("|"):
        line = _smooth(np.array([list(point) for point in stroke.split()]).astype(np.float64))
        begins.append(line[:-1])
        ends.append(line[1:])
    begin, end = np.concatenate(begins), np.concatenate(ends)
    reach = np.cumsum(np.linalg.norm(end - begin, axis=1))
    target = (np.arange(POINTS) + 0.5) / POINTS * reach[-1]
    segment = np.searchsorted(reach, target)
    rest = (reach[segment] - target) / np.linalg.norm(end - begin, axis=1)[segment]
    points = end[segment] + rest[:, None] * (begin - end)[segment]
    middle = (points.min(0) + points.max(0)) / 2
    return points - middle, float(reach[-1])


def _smooth(line: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cut the corners of a line three times (Chaikin 1974), its ends stay."""
    for _ in range(3):
        near, far = line[:-1] * 0.75 + line[1:] * 0.25, line[:-1] * 0.25 + line[1:] * 0.75
        inner = np.stack([near, far], axis=1).reshape(-1, 2)
        line = np.concatenate([line[:1], inner, line[-1:]])
    return line
