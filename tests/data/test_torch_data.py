"""Datasets, loaders and tensors of PyTorch keep their samples, or are refused in one line."""

import numpy as np
import pytest
import torch
from tests.shared import line_of
from torch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    SubsetRandomSampler,
    TensorDataset,
)

import fedsampling as fs

N = 20
OWNERS = np.arange(N) % 4


class Samples(Dataset):
    """Numbered samples; some are augmented, or have random labels."""

    def __init__(self, n, augment=False, random_labels=False):
        self.n, self.augment, self.random_labels = n, augment, random_labels

    def __len__(self):
        return self.n

    def __getitem__(self, row):
        x = torch.arange(4.0) + row
        y = int(torch.randint(1000, ())) if self.random_labels else row % 2
        return x + torch.randn(4) * self.augment, y


def centred(items):
    x, y = torch.utils.data.default_collate(items)
    return x - x.mean(0), y


def doubled(items):
    x, y = torch.utils.data.default_collate(items)
    return 2 * x, y


class Stream(IterableDataset):
    def __iter__(self):
        return iter([(torch.ones(2), 0)])


class Dicts(Samples):
    def __getitem__(self, row):
        return {"pixels": torch.ones(2), "digit": row}


class Augmented(TensorDataset):
    def __getitem__(self, row):
        x, y = super().__getitem__(row)
        return x + torch.randn(4), y


TENSORS = torch.ones(N, 4), torch.arange(N)
SHUFFLED = DataLoader(Samples(N), batch_size=7, shuffle=True, drop_last=True)
HALF = BatchSampler(SubsetRandomSampler(range(10)), 5, drop_last=False)
DATASETS = {  # a dataset, and the start of the line that refuses it
    "plain": (Samples(N), ""),
    "shuffled": (SHUFFLED, ""),
    "own collate": (DataLoader(Samples(N), batch_size=7, collate_fn=doubled), ""),
    "no batches": (DataLoader(Samples(N), batch_size=None), ""),
    "augmented part": (
        ConcatDataset([Samples(10), Samples(10, True)]),
        "x: sample 10 differs each",
    ),
    "random labels": (Samples(N, random_labels=True), "x: label of sample 0 differs each"),
    "centred batches": (
        DataLoader(Samples(N), batch_size=7, collate_fn=centred),
        "x: sample 0 depends on its batch or differs each time; remove collate_fn",
    ),
    "augmented tensors": (Augmented(*TENSORS), "x: sample 0 differs each time; remove random tr"),
    "stream": (Stream(), "x: an iterable dataset has no order; use a map-style one, or two"),
    "chain": (ChainDataset([Stream()]), "x: an iterable dataset has no order"),
    "loader of a stream": (DataLoader(Stream()), "x: an iterable dataset has no order"),
    "dicts": (Dicts(N), "x: Dicts gives dicts with the fields 'pixels', 'digit'; choose two: x=["),
    "tensors alone": (TensorDataset(torch.ones(4, 2)), "x: TensorDataset has no pairs of sample"),
}


@pytest.mark.parametrize("name", DATASETS)
def test_datasets_give_the_same_samples_each_time_or_are_refused(name):
    dataset, line = DATASETS[name]
    call = lambda: fs.federated(dataset, clients=OWNERS)  # noqa: E731
    if line:
        assert line_of(call).startswith(line)
    else:
        scale = 2 if name == "own collate" else 1
        rows = call().x[:, 0] / scale
        assert sorted(rows.tolist()) == [*range(N)]


def test_a_loader_with_batches_of_its_own_gives_their_samples():
    data = fs.federated(DataLoader(Samples(N), batch_sampler=HALF), clients=OWNERS[:10])
    assert sorted(data.x[:, 0].tolist()) == [*range(10)]


ONES = torch.ones(4, 2)
TENSOR_KINDS = {
    "bfloat16": (ONES.bfloat16() / 3, ""),
    "float8": (ONES.to(torch.float8_e4m3fn), ""),
    "half": (ONES.half() / 3, ""),
    "conjugate": ((ONES + 2j).conj().imag, ""),
    "sparse": (ONES.to_sparse(), "x: a sparse tensor; pass tensor.to_dense()"),
    "quantised": (
        torch.quantize_per_tensor(ONES, 0.1, 0, torch.quint8),
        "x: a quantised tensor; pass tensor.dequantize()",
    ),
    "meta": (ONES.to("meta"), "x: a meta tensor has no values; pass one with values"),
    "complex": (ONES + 1j, "x: contains values of type complex64; convert to numbers"),
    "none": ([*ONES[:3], None], "x: missing in 1 of 4 samples, first in row 3; remove these"),
    "number": ([*ONES[:3], 3], "x: rows differ in shape, such as (2,) in row 0 and () in row 3;"),
    "dicts": ([{"a": 1.0}] * 4, "x: dicts with the fields 'a'; pass a list of one field"),
}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", TENSOR_KINDS)
def test_tensors_keep_their_numbers_or_are_refused(name):
    x, line = TENSOR_KINDS[name]
    call = lambda: fs.federated(x, [0, 1, 0, 1], clients=[0, 0, 1, 1])  # noqa: E731
    if line:
        assert line_of(call).startswith(line)
    else:
        np.testing.assert_array_equal(call().x, x.float().resolve_neg().numpy())
