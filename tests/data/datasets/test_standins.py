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


def test_images_are_of_the_chosen_number_balanced_and_always_the_same():
    images, same_seed, other_seed = digits(), digits(), digits(1)
    assert (images.x.shape, images.x_test.shape) == ((3000, 28, 28), (500, 28, 28))
    assert np.bincount(images.y).tolist() == [300] * 10
    np.testing.assert_array_equal(images.x, same_seed.x)
    assert not np.array_equal(images.x, other_seed.x)


@pytest.mark.parametrize("shape", [standins.GRAY, standins.COLOURED])
def test_a_linear_model_learns_images_the_more_it_has(shape):
    rng = stream(0, "test")
    y, y_test = (standins.balanced(rng, size, 10) for size in (3000, 500))
    images = standins.images(rng, "like", shape, y, y_test, classes=10)
    with_300 = accuracy(images.x[:300], images.y[:300], images.x_test, images.y_test)
    with_3000 = accuracy(images.x, images.y, images.x_test, images.y_test)
    assert 0.2 < with_300 < with_3000 <= 1


def test_images_of_one_writer_are_more_alike_than_those_of_two():
    images = digits()
    three = images.y == 3
    x, writer = images.x[three].reshape(three.sum(), -1) / 255, images.writer[three]
    square = (x**2).sum(1)
    distance = square[:, None] + square - 2 * x @ x.T
    same_writer = writer[:, None] == writer
    np.fill_diagonal(same_writer, False)
    assert distance[same_writer].mean() < 0.99 * distance[writer[:, None] != writer].mean()


def test_owners_are_unequal_and_have_tastes():
    sizes = np.bincount(standins.unequal(stream(0, "test"), 4000, 40))
    assert sizes.min() > 0
    assert sizes.max() > 4 * sizes.min()
    labels = standins.tastes(stream(0, "test"), 50, 100, 100).reshape(50, 100)
    assert np.mean([np.bincount(row).max() for row in labels]) > 20  # of equal tastes: about 4


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


def test_labels_of_vectors_follow_a_rule_with_errors():
    x, y = standins.vectors(stream(0, "test"), 5500, 22, 0.096)
    assert np.mean(y > 0) == pytest.approx(0.096, abs=1e-3)
    w = np.linalg.lstsq(x, y, rcond=None)[0]
    score, positive = x @ w, y > 0
    ranked = np.mean(score[positive][:, None] > score[~positive])  # area under the ROC curve
    assert 0.75 < ranked < 0.98
