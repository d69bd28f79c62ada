"""Samples and targets of PyTorch's datasets and loaders.

Each sample is read twice, because a random transform would give other numbers in each process.  A
loader gives its samples one at a time and then in its batches, because a ``collate_fn`` may mix the
samples of a batch, which have no place in rounds that draw other batches.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fedsampling.base.errors import InputError, described
from fedsampling.data.user_arrays import as_array, copied
from fedsampling.data.user_layout import is_image

BATCH = 64  # samples of a batch in which a loader without one reads again


def is_dataset(value: Any) -> bool:
    """Whether a value is a dataset of PyTorch, or a loader."""
    torch_data: Any = sys.modules.get("torch.utils.data")
    if torch_data and isinstance(value, torch_data.Dataset | torch_data.DataLoader):
        return True
    has_samples = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    has_columns = hasattr(value, "columns") or hasattr(value, "column_names")
    is_array = hasattr(value, "__array__") or isinstance(value, list | tuple | str | Mapping)
    return hasattr(value, "collate_fn") or (has_samples and not is_array and not has_columns)


def samples_of(dataset: Any, argument: str) -> tuple[Any, Any]:
    """Return the samples and targets of a dataset or loader of PyTorch, in its order."""
    torch_data: Any = sys.modules.get("torch.utils.data")
    if torch_data and type(dataset) is torch_data.TensorDataset and len(dataset.tensors) == 2:
        x, y = dataset.tensors
        return x, y
    rows = _rows(dataset, argument)
    items = [_item(dataset, row, argument) for row in rows]
    for row, item in zip(rows, items, strict=True):
        _check_pair(item, row, dataset, argument)
    for row, item, again in zip(rows, items, _read_again(dataset, rows, argument), strict=True):
        names = {"sample": (item[0], again[0]), "label of sample": (item[1], again[1])}
        for name, (first, second) in names.items():
            if not _is_same(first, second):
                cause = "differs each time; remove random transforms"
                if _has_own_collate(dataset):
                    cause = "depends on its batch or differs each time; remove collate_fn"
                raise InputError(f"{argument}: {name} {row} {cause}")
    if not items:
        raise InputError(f"{argument}: no samples; pass at least one")
    x, y = zip(*items, strict=True)
    return x, y


def check_same(values: Any, again: Any, argument: str) -> None:
    """Refuse a column of arrays or images that differs when it is read again.

    An iterator that is exhausted cannot be compared.
    """
    has_arrays = isinstance(values, list) and values and (is_image(values[0]) or np.ndim(values[0]))
    if has_arrays and len(again) == len(values):
        for row, (first, second) in enumerate(zip(values, again, strict=True)):
            if not _is_same(first, second):
                line = f"sample {row} differs each time; remove random transforms"
                raise InputError(f"{argument}: {line}")


def _rows(dataset: Any, argument: str) -> list[int]:
    """Return the numbers of the samples, which for a loader are those of its sampler, sorted."""
    is_loader = hasattr(dataset, "collate_fn")
    source = dataset.dataset if is_loader else dataset
    streams = f"{argument}: an iterable dataset has no order; use a map-style one, or two lists"
    torch_data: Any = sys.modules.get("torch.utils.data")
    if torch_data and isinstance(source, torch_data.IterableDataset):
        raise InputError(streams)
    try:
        n = len(source)
    except Exception:  # whatever a user's dataset raises
        raise InputError(streams) from None
    if not is_loader:
        return [*range(n)]
    rows = _drawn(dataset)
    if rows != _drawn(dataset):
        raise InputError(f"{argument}: the loader's samples differ each time; remove its sampler")
    return rows


def _drawn(loader: Any) -> list[int]:
    """Return the samples that a loader draws, sorted; a last incomplete batch counts, too."""
    batches = loader.batch_sampler
    if batches is None:
        return sorted(loader.sampler)
    if hasattr(batches, "sampler"):
        return sorted(batches.sampler)
    return sorted(row for batch in batches for row in batch)


def _item(source: Any, row: int, argument: str) -> Any:
    """Return a copy of a sample and its label; a loader collates them in a batch of one."""
    try:
        if hasattr(source, "collate_fn"):
            if source.batch_sampler is None:
                item = source.collate_fn(source.dataset[row])
            else:
                item = _single(source.collate_fn([source.dataset[row]]))
        else:
            item = source[row]
    except Exception as error:  # a user's dataset may raise anything
        raise InputError(f"{argument}: sample {row}: {described(error)}; correct it") from error
    return [*map(copied, item)] if isinstance(item, tuple | list) else item


def _single(batch: Any) -> Any:
    if isinstance(batch, tuple | list):
        return [part[0] for part in batch]
    return batch


def _read_again(source: Any, rows: Sequence[int], argument: str) -> Iterator[Any]:
    """Yield all samples and labels again, of a loader in batches."""
    if not hasattr(source, "collate_fn") or source.batch_sampler is None:
        yield from (_item(source, row, argument) for row in rows)
        return
    size = source.batch_size or BATCH
    for begin in range(0, len(rows), size):
        part = rows[begin : begin + size]
        try:
            batch = source.collate_fn([source.dataset[row] for row in part])
            if any(len(values) != len(part) for values in batch):
                raise ValueError(f"collate_fn returned other than {len(part)} samples")
            yield from zip(*batch, strict=True)
        except Exception as error:
            line = f"{argument}: samples {part[0]} to {part[-1]}: {described(error)}; correct it"
            raise InputError(line) from error


def _check_pair(item: Any, row: int, dataset: Any, argument: str) -> None:
    """Refuse what is no pair of a sample and its label."""
    kind = type(dataset).__name__
    if isinstance(item, Mapping):
        fields = ", ".join(map(repr, item))
        raise InputError(
            f"{argument}: {kind} gives dicts with the fields {fields}; choose two: "
            "x=[sample[FIELD] for sample in dataset], y=[sample[LABEL] for sample in dataset]"
        )
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise InputError(
            f"{argument}: {kind} has no pairs of sample and label; sample {row} is of type "
            f"{type(item).__name__}"
        )


def _is_same(first: Any, second: Any) -> bool:
    """Whether two readings of a sample or label are equal."""
    if is_image(first) and is_image(second):
        return bool(first.mode == second.mode and first.tobytes() == second.tobytes())
    if isinstance(first, str | int | float) and isinstance(second, str | int | float):
        return repr(first) == repr(second)
    one, other = (as_array([value], "") for value in (first, second))
    if one.dtype.kind == "O" or other.dtype.kind == "O":
        return repr(first) == repr(second)
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))


def _has_own_collate(dataset: Any) -> bool:
    collate = getattr(dataset, "collate_fn", None)
    return collate is not None and not collate.__module__.startswith("torch.utils.data")
