"""Stand-ins: the right shapes, always the same, learnable, with owners that differ."""

import numpy as np
import pytest

from fedsampling.base.streams import stream
from fedsampling.data.datasets import standins


def digits(seed=0):
    return standins.digits_like(stream(seed, "test"), train=3000, test=500, writers=30)


def accuracy(x, y, x_test, y_test):
    """Of ridge regression on the labels' indicators: what a linear model can learn."""
    A, B = (np.c_[rows.reshape(len(rows), -1) / 255, np.ones(len(rows))] for rows in (x, x_test))
    w = np.linalg.solve(A.T @ A + 10 * np.eye(A.shape[1]), A.T @ np.eye(y.max() + 1)[y])
    return float(np.mean(np.argmax(B @ w, axis=1) == y_test))


@pytest.mark.parametrize("shape", [standins.GRAY, standins.COLOURED])
def test_a_linear_model_learns_images_the_more_it_has(shape):
    rng = stream(0, "test")
    y, y_test = (standins.balanced(rng, size, 10) for size in (3000, 500))
    images = standins.images(rng, "like", shape, y, y_test, classes=10)
    with_300 = accuracy(images.x[:300], images.y[:300], images.x_test, images.y_test)
    with_3000 = accuracy(images.x, images.y, images.x_test, images.y_test)
    assert 0.2 < with_300 < with_3000 <= 1


def test_roles_differ_and_the_next_letter_can_be_learnt():
    texts = standins.play_like(stream(0, "test"))
    assert standins.play_like(stream(0, "test")) == texts
    assert len(texts) == standins.ROLES
    assert len({play for play, _ in texts}) == standins.PLAYS
    lengths = np.array([len(text) for text in texts.values()])
    assert standins.SHORTEST <= lengths.min() < lengths.max() / 3
    assert lengths.max() <= standins.LONGEST
    assert "  " not in "".join(text.strip() for text in texts.values())
    pairs = np.zeros((128, 128))
    for text in texts.values():
        codes = np.frombuffer(text.encode(), np.uint8)
        np.add.at(pairs, (codes[:-1], codes[1:]), 1)
    best_pair = pairs.max(1).sum() / pairs.sum()  # accuracy of the best guess after each letter
    assert best_pair > pairs.sum(0).max() / pairs.sum() + 0.05
