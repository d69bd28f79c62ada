"""Generated stand-ins for published data: same shapes, learnable, heterogeneous clients.

Each class has a coarse template and each owner a coarse style.  A sample is their sum, shifted by a
few pixels, plus noise.  Stand-ins test the pipeline without downloads; they are never evidence.
"""

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Ints
from fedsampling.data.samples import Samples

GRAY, COLOURED = (28, 28), (32, 32, 3)
ROLES, PLAYS = 100, 5
SHORTEST, LONGEST = 900, 6_000  # characters of a role; enough for tests under both of LEAF's splits

_KNOT = 4  # pixels between the independent values of a template
_SHIFT = 3  # pixels, at most, in each direction
_STYLE, _NOISE = 0.8, 1.5  # standard deviations, relative to a template's
_LIGHT = 60  # pixel values per standard deviation
_CHUNK = 1000  # images generated at once, which limits the memory
_SYMBOLS = " abcdefghijklmnopqrstuvwxyz,.;'?!"


def images(
    rng: np.random.Generator,
    name: str,
    shape: tuple[int, ...],
    y: Ints,
    y_test: Ints,
    *,
    classes: int,
    writer: Ints | None = None,
    writer_test: Ints | None = None,
) -> Samples:
    """Generate an image of bytes for each label; each writer has a style.

    `shape` is that of an image: height and width in multiples of four pixels, optionally colours.
    """
    owners = 1 if writer is None else int(writer.max()) + 1
    template = _coarse(rng, classes, shape)
    style = _STYLE * _coarse(rng, owners, shape)

    def drawn(label: Ints, owner: Ints | None) -> NDArray[np.uint8]:
        pixels = np.empty((len(label), *shape), np.uint8)
        for begin in range(0, len(label), _CHUNK):
            part = slice(begin, begin + _CHUNK)
            values = template[label[part]]
            if owner is not None:
                values = values + style[owner[part]]
            values = _shifted(rng, values)
            values = values + _NOISE * rng.standard_normal(values.shape, np.float32)
            pixels[part] = np.clip(_LIGHT * values, 0, 255)
        pixels[:, :_KNOT] = pixels[:, -_KNOT:] = pixels[:, :, :_KNOT] = pixels[:, :, -_KNOT:] = 0
        return pixels

    x, x_test = drawn(y, writer), drawn(y_test, writer_test)
    return Samples(name, x, y, x_test, y_test, classes, writer, writer_test)


def digits_like(rng: np.random.Generator, *, train: int, test: int, writers: int) -> Samples:
    """Generate digits of 28 x 28 pixels by writer; training and test parts share their writers."""
    writer, writer_test = (rng.integers(writers, size=size) for size in (train, test))
    y, y_test = balanced(rng, train, 10), balanced(rng, test, 10)
    return images(
        rng, "digits-like", GRAY, y, y_test, classes=10, writer=writer, writer_test=writer_test
    )


def balanced(rng: np.random.Generator, size: int, classes: int) -> Ints:
    """Draw labels; their counts differ by at most one."""
    return rng.permutation(np.arange(size) % classes)


def unequal(rng: np.random.Generator, samples: int, owners: int) -> Ints:
    """Draw the owner of each sample, sorted; shares are log-normal, and every owner has samples."""
    share = rng.lognormal(sigma=0.5, size=owners)
    drawn = rng.choice(owners, size=samples - owners, p=share / share.sum())
    return np.sort(np.concatenate([np.arange(owners), drawn]))


def tastes(rng: np.random.Generator, owners: int, count: int, classes: int) -> Ints:
    """Draw labels owner by owner; each owner has few classes (Dirichlet with α = 0.1)."""
    taste = rng.dirichlet(np.full(classes, 0.1), owners)
    return np.concatenate([rng.choice(classes, count, p=p) for p in taste])


def play_like(rng: np.random.Generator) -> dict[tuple[str, str], str]:
    """Generate the texts of 100 roles of 5 plays, by (play, role).

    Each role is a Markov chain over letters, punctuation and spaces.  The logit of the next symbol
    is the sum of a common part for each pair of symbols, which a model can learn, and a preference
    of the role, which makes clients heterogeneous.  Lengths are log-normal.
    """
    V = len(_SYMBOLS)
    logit = 1.5 * rng.standard_normal((V, V)) + 0.5 * rng.standard_normal((ROLES, 1, V))
    logit[:, :, 0] += 2.0  # short words
    logit[:, 0, 0] = -np.inf  # no run of spaces
    lengths = np.exp(rng.normal(np.log(1_500), 0.6, ROLES)).clip(SHORTEST, LONGEST).astype(int)
    reached = np.cumsum(np.exp(logit), axis=-1)
    reached /= reached[..., -1:]
    codes = np.zeros((ROLES, int(lengths.max())), np.int64)
    for t in range(1, codes.shape[1]):
        above = rng.random((ROLES, 1)) >= reached[np.arange(ROLES), codes[:, t - 1]]
        codes[:, t] = above.sum(-1)
    symbols = np.frombuffer(_SYMBOLS.encode(), np.uint8)
    return {
        (f"PLAY {k % PLAYS + 1}", f"ROLE {k + 1:03d}"): bytes(symbols[codes[k, :length]]).decode()
        for k, length in enumerate(lengths)
    }


def vectors(
    rng: np.random.Generator, samples: int, features: int, positive: float
) -> tuple[Array, Array]:
    """Draw feature vectors whose labels -1 and +1 follow a linear rule with noise."""
    x = 0.5 * rng.standard_normal((samples, features))
    score = x @ rng.standard_normal(features) + rng.logistic(size=samples)
    return x, np.where(score > np.quantile(score, 1 - positive), 1.0, -1.0)


def blobs(rng: np.random.Generator, y: Ints, features: int) -> Array:
    """Draw feature vectors around a separate mean for each label, shape (samples, features)."""
    means = rng.standard_normal((int(y.max()) + 1, features))
    return means[y] + rng.standard_normal((len(y), features))


def _coarse(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Draw coarse random pictures, shape (count, ...)."""
    height, width, *colours = shape
    size = (count, height // _KNOT, width // _KNOT, *colours)
    knots = rng.standard_normal(size, np.float32)
    return knots.repeat(_KNOT, axis=1).repeat(_KNOT, axis=2)


def _shifted(rng: np.random.Generator, pictures: NDArray[np.float32]) -> NDArray[np.float32]:
    """Shift each picture cyclically by some pixels."""
    n, height, width = pictures.shape[:3]
    down, right = rng.integers(-_SHIFT, _SHIFT, (2, n, 1), endpoint=True)
    row, column = (np.arange(height) - down) % height, (np.arange(width) - right) % width
    moved: NDArray[np.float32] = pictures[
        np.arange(n)[:, None, None], row[:, :, None], column[:, None, :]
    ]
    return moved
