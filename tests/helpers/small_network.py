"""Small datasets, and a network of 59 parameters, which several tests share."""

import numpy as np
import torch

import fedsampling as fs
from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.models.settings import Mlp
from fedsampling.learning.training.learner import NetworkLearner
from fedsampling.learning.training.local_work import LocalWork

SIZES = np.array([7, 3, 12, 5, 9])
TESTS = np.array([0, 2, 2, 5, 6, 8])  # where each client's tests begin; the second one has none


def dataset():
    rng = np.random.default_rng(1)
    total = int(SIZES.sum())
    return FederatedDataset(
        "small",
        rng.integers(0, 256, (total, 3, 2), dtype=np.uint8),
        rng.integers(0, 4, total),
        np.concatenate([[0], np.cumsum(SIZES)]),
        SIZES / total,
        rng.integers(0, 256, (8, 3, 2), dtype=np.uint8),
        rng.integers(0, 4, 8),
        start_test=TESTS,
        classes=4,
    )


def samples(client):
    """A client's training images as numbers from 0 to 1, and their labels."""
    data = dataset()
    rows = slice(data.start[client], data.start[client + 1])
    return torch.from_numpy(data.x[rows]).float() / 255, torch.from_numpy(data.y[rows])


def three_clients(kind="floats"):
    """Clients with 6, 9 and 12 samples of three classes: images, as floats or bytes, or tokens."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(27, 5, 5)).astype(np.float32)
    if kind == "bytes":
        x = rng.integers(0, 256, size=(27, 5, 5)).astype(np.uint8)
    elif kind == "tokens":
        x = rng.integers(0, 3, size=(27, 6))
    y = np.arange(27) % 3
    owner = np.repeat(np.arange(3), [6, 9, 12])
    tests = {"x_test": x[::2].copy(), "y_test": y[::2].copy()}
    return fs.federated(x, y, clients=owner, tokens=kind == "tokens", **tests)


def without_tests(x, y, sizes, p=None):
    """Clients of these sizes, equally important if p is None, that have training samples only."""
    start = np.concatenate([[0], np.cumsum(sizes)])
    p = np.full(len(sizes), 1 / len(sizes)) if p is None else p
    return FederatedDataset("small", x, y, start, p, np.empty((0, x.shape[1])), np.empty(0))


def learner(work=LocalWork(batch=4, step=0.1, steps=3), **changes):  # noqa: B008
    data = dataset()
    network = Mlp(hidden=5).build(data.x.shape[1:], data.classes)
    return NetworkLearner(network, data, work, **changes)
