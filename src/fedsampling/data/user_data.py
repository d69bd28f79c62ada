"""Users' own samples as a FederatedDataset, from arrays, tensors, lists or tables.

:func:`federated` takes pooled samples with the client of each, or a partition that assigns them;
:func:`from_clients` takes samples by client; :func:`from_frame` a pandas table;
:func:`from_huggingface` the columns of a ``datasets.Dataset``.  Input that they cannot convert is
rejected with a one-line error.
"""

import inspect
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsampling.base.errors import InputError, nearest
from fedsampling.base.records import Share, Strict, check
from fedsampling.base.streams import stream
from fedsampling.data.federated import FederatedDataset, hold_out
from fedsampling.data.partitions.natural import by_owner
from fedsampling.data.partitions.partition import Partition
from fedsampling.data.partitions.shares import Importance
from fedsampling.data.samples import Samples, gather
from fedsampling.data.user_arrays import (
    Labelled,
    as_array,
    labelled,
    may_be_labels,
    owner_numbers,
    sha256_of,
    with_numbered_labels,
)

if TYPE_CHECKING:
    import pandas as pd

ROW_NUMBERS = re.compile(r"Unnamed: \d+|__index_level_\d+__")  # as pandas names them


def federated(
    x: ArrayLike,
    y: ArrayLike,
    *,
    clients: ArrayLike | None = None,
    partition: str | Mapping[str, Any] | Partition | None = None,
    x_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    test_share: float | None = None,
    tokens: bool = False,
    importance: Importance = "samples",
    name: str = "own",
    seed: int = 0,
) -> FederatedDataset:
    """Make a federated dataset from your own samples.

    Parameters
    ----------
    x : array, shape (N, ...)
        Training samples: an array, a tensor or a list.  Integers of three axes or more between 0
        and 255 are images, which :func:`fedsampling.train` divides by 255; all other numbers
        become float32.
    y : array, shape (N,)
        Labels: integers, text or booleans, numbered in sorted order.  Floating-point numbers are
        the targets of a regression.  With `tokens` also (N, steps).
    clients : array, shape (N,), optional
        The client that owns each sample: numbers or text.
    partition : str, dict or Partition, optional
        Assigns the samples instead, such as ``fs.partitions.AllByDirichlet(alpha=0.5,
        clients=100)``.
    x_test, y_test : array, optional
        Common test samples.
    test_share : float, optional
        Without `x_test`: the fraction of samples drawn at random as the test set, of each client,
        or with a partition, of all samples.
    tokens : bool
        Whether `x` and `y` contain token numbers, shape (N, steps), which stay unchanged.
    importance : {"samples", "equal"}
        p_k: proportional to the client's training samples, or 1/n.
    name : str
        For provenance.
    seed : int
        Draws the partition and the held-out samples.

    Returns
    -------
    FederatedDataset
        Its ``inputs`` has the SHA-256 of the content.

    Raises
    ------
    InputError
        If an argument cannot be converted, or two of them do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> import fedsampling as fs
    >>> x, y = np.random.rand(6, 2), ["cat", "dog", "cat", "dog", "dog", "cat"]
    >>> fs.federated(x, y, clients=["a", "a", "b", "b", "b", "c"])
    <FederatedDataset 'own': 3 clients, 6 training and 0 test samples of shape (2,), 2 classes>
    """
    if importance not in get_args(Importance):
        raise InputError(f"importance: {importance!r} is unknown; use 'samples' or 'equal'")
    if (x_test is None) != (y_test is None):
        raise InputError("x_test, y_test: one is missing; pass both or neither")
    if x_test is not None and test_share is not None:
        raise InputError("test_share: cannot be combined with x_test; remove one of the two")
    share = (
        None if test_share is None else check(_Holdout, {"test_share": test_share}, "").test_share
    )
    train = labelled(x, y, "", tokens)
    test = Labelled(train.x[:0], train.y[:0])
    if x_test is not None:
        test = labelled(x_test, y_test, "_test", tokens)
    train, test, classes = with_numbered_labels(train, test, tokens)
    if classes is None and may_be_labels(train.y):
        warnings.warn(
            "y: floating-point numbers are the targets of a regression; "
            "convert them to integers if they are classes",
            stacklevel=2,
        )
    if share is not None and clients is None:  # before the partition, which may deal tests out
        train, test = _split(train, share, seed)
    owner = None if clients is None else owner_numbers(clients, len(train.y))
    content = (*train, *test, *([] if owner is None else [owner]))
    samples = Samples(
        name=name,
        x=train.x,
        y=train.y,
        x_test=test.x,
        y_test=test.y,
        classes=classes,
        writer=owner,
        inputs={name: sha256_of(*content)},
    )
    if partition is not None:
        checked = _checked_partition(partition, samples, is_regression=classes is None)
        data = checked.share_out(samples, seed, importance)
    elif owner is not None:
        data = gather(samples, by_owner(owner), None, importance)
    else:
        raise InputError(
            "clients, partition: both missing; pass each sample's owner, or a partition"
        )
    if share is not None and clients is not None:
        data = hold_out(data, share, stream(seed, "holdout"))
    if share is not None and not len(data.x_test):
        largest = len(x) if clients is None else data.n_samples.max()
        raise InputError(
            f"test_share: {share:g} of {largest} samples, the most that a client has, is less than "
            "one, so there are no test samples; use more samples or a larger share, or x_test"
        )
    return data


def from_clients(
    samples: Sequence[tuple[ArrayLike, ArrayLike]], **options: Any
) -> FederatedDataset:
    """Make a dataset from one pair ``(x, y)`` per client.

    Parameters
    ----------
    samples : sequence of pairs
        Samples (n_k, ...) and labels or targets (n_k,) of each client.
    **options
        As in :func:`federated`: ``x_test``, ``y_test``, ``test_share``, ``tokens``,
        ``importance``, ``name``, ``seed``.

    Raises
    ------
    InputError
        As in :func:`federated`, with the client's number.

    Examples
    --------
    >>> import numpy as np
    >>> import fedsampling as fs
    >>> hospitals = [(np.random.rand(n, 4), np.arange(n) % 2) for n in (20, 30)]
    >>> fs.from_clients(hospitals).n_samples.tolist()
    [20, 30]
    """
    pairs = list(samples)
    _check_options(options, "from_clients", {"clients", "partition"})
    if not pairs:
        raise InputError("samples: empty; pass one pair (x, y) for each client")
    xs: list[NDArray[Any]] = []
    ys: list[NDArray[Any]] = []
    for client, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"client {client}: {type(pair).__name__} is invalid; must be (x, y)")
        x, y = as_array(pair[0], f"client {client}: x"), as_array(pair[1], f"client {client}: y")
        if not len(y):
            raise InputError(f"client {client}: no samples; leave this client out")
        if len(x) != len(y):
            raise InputError(
                f"client {client}: {len(x)} samples but {len(y)} labels; must be equal"
            )
        if x.shape[1:] != (first := (xs or [x])[0].shape[1:]):
            raise InputError(f"client {client}: samples of shape {x.shape[1:]}, not {first}")
        xs.append(x)
        ys.append(y)
    owner = np.repeat(np.arange(len(ys)), [len(y) for y in ys])
    return federated(np.concatenate(xs), np.concatenate(ys), clients=owner, **options)


def from_frame(
    frame: "pd.DataFrame", *, target: str, client: str | None = None, **options: Any
) -> FederatedDataset:
    """Make a dataset from a pandas table with one row per sample.

    Parameters
    ----------
    frame : DataFrame
        All columns except `target` and `client` are features and must contain numbers.
    target : str
        Column of labels (integers, text, booleans) or of targets (floating-point numbers).
    client : str, optional
        Column with each sample's client; without it, a ``partition`` is required.
    **options
        As in :func:`federated`.

    Raises
    ------
    InputError
        If a column is missing or does not contain numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> import fedsampling as fs
    >>> frame = pd.DataFrame({"age": [50, 61, 47], "ill": ["no", "yes", "no"], "site": [1, 1, 2]})
    >>> fs.from_frame(frame, target="ill", client="site").n_clients
    2
    """
    _check_options(options, "from_frame", {"clients"})
    columns = [str(column) for column in frame.columns]
    for key, column in (("target", target), ("client", client)):
        if column is not None and column not in columns:
            raise InputError(f"{key}: no column {column!r}; {nearest(str(column), columns)}")
    features = frame.drop(columns=[target, *([client] if client is not None else [])])
    if not len(features.columns):
        raise InputError(f"frame: {target!r} is the only column; add the features")
    for column in features.columns:
        kind = features[column].dtype.kind
        if kind not in "iufb":
            raise InputError(f"frame: column {column!r} is not numeric; convert or remove it")
        if ROW_NUMBERS.fullmatch(str(column)):
            raise InputError(
                f"frame: column {column!r} has row numbers; remove it (to_csv with index=False)"
            )
    owner = None if client is None else frame[client].to_numpy()
    x = features.to_numpy(np.float32)
    return federated(x, frame[target].to_numpy(), clients=owner, **options)


def from_huggingface(
    dataset: Any,
    *,
    target: str,
    features: str | Sequence[str] | None = None,
    client: str | None = None,
    **options: Any,
) -> FederatedDataset:
    """Make a dataset from a ``datasets.Dataset`` of Hugging Face, or any object with named columns.

    Parameters
    ----------
    dataset : datasets.Dataset, or mapping with splits "train" and "test"
        Has ``column_names``; ``dataset[name]`` gives a value per sample: numbers, lists, arrays or
        images.  The split ``"test"`` becomes `x_test` and `y_test`.
    target : str
        Column of labels or targets.
    features : str or sequence of str, optional
        A column of arrays or images, or columns of numbers; by default, all other columns.
    client : str, optional
        Column with each sample's client; without it, a ``partition`` is required.
    **options
        As in :func:`federated`.

    Raises
    ------
    InputError
        If a column is missing, or cannot be converted.

    Examples
    --------
    >>> import fedsampling as fs
    >>> from datasets import Dataset
    >>> texts = {"tokens": [[1, 2], [3, 4]], "next": [[2, 5], [4, 5]], "author": ["a", "b"]}
    >>> rows = Dataset.from_dict(texts)
    >>> fs.from_huggingface(rows, target="next", client="author", tokens=True).n_clients
    2
    """
    _check_options(options, "from_huggingface", {"clients"})
    splits = dataset if isinstance(dataset, Mapping) else {"train": dataset}
    if "train" not in splits:
        raise InputError(f"dataset: no split 'train'; it has {', '.join(map(str, splits))}")
    train, columns = splits["train"], [*splits["train"].column_names]
    named = [features] if isinstance(features, str) else features
    used = [name for name in columns if name not in (target, client)] if named is None else named
    if not used:
        raise InputError(f"features: no columns except {target!r}; add the features")
    for key, name in (("target", target), ("client", client), *(("features", n) for n in used)):
        if name is not None and name not in columns:
            raise InputError(f"{key}: no column {name!r}; {nearest(str(name), columns)}")
    if "test" in splits:
        test = {"x_test": _columns(splits["test"], used), "y_test": _column(splits["test"], target)}
        options = {**test, **options}
    owners = None if client is None else _column(train, client)
    return federated(_columns(train, used), _column(train, target), clients=owners, **options)


class _Holdout(Strict):
    """Fraction of each client's samples that is held out."""

    test_share: Share


def _split(samples: Labelled, share: float, seed: int) -> tuple[Labelled, Labelled]:
    """Draw a fraction of all samples as tests."""
    order = stream(seed, "holdout").permutation(len(samples.y))
    is_test = np.zeros(len(order), np.bool_)
    is_test[order[: int(share * len(order))]] = True
    train, test = (Labelled(samples.x[part], samples.y[part]) for part in (~is_test, is_test))
    return train, test


def _checked_partition(
    partition: str | Mapping[str, Any] | Partition, samples: Samples, is_regression: bool
) -> Partition:
    """Check that a partition's settings are valid and fit the samples."""
    settings = {"name": partition} if isinstance(partition, str) else partition
    if not isinstance(settings, Mapping | Partition):
        raise InputError("partition: must be a name, a dict or a record")
    checked = check(Partition, settings, "partition.")  # type: ignore[arg-type]
    if is_regression:
        raise InputError(
            "partition: needs labels, but the targets are numbers; pass clients instead"
        )
    if checked.needs_writers and samples.writer is None:
        raise InputError(f"partition: {checked.named} needs the owner of each sample; pass clients")
    if samples.writer is not None and not checked.needs_writers:
        raise InputError(
            f"partition: {checked.named} cannot be combined with clients; remove one of the two"
        )
    if checked.needs_tests and not len(samples.y_test):
        raise InputError(
            f"partition: {checked.named} also assigns test samples; pass x_test and y_test, "
            "or test_share"
        )
    return checked


def _columns(dataset: Any, names: Sequence[str]) -> NDArray[Any]:
    """Return a single column unchanged, or several columns of numbers side by side."""
    columns = [_column(dataset, name) for name in names]
    if len(columns) == 1:
        return columns[0]
    for name, column in zip(names, columns, strict=True):
        if column.ndim != 1 or column.dtype.kind not in "iufb":
            raise InputError(f"features: column {name!r} is not numeric; name a single column")
    return np.stack(columns, axis=1)


def _column(dataset: Any, name: str) -> NDArray[Any]:
    try:
        return np.stack([np.asarray(value) for value in dataset[name]])
    except ValueError:
        raise InputError(
            f"column {name!r}: values differ in shape; convert them to one shape"
        ) from None


def _check_options(options: Mapping[str, Any], function: str, excluded: set[str]) -> None:
    valid = {*inspect.signature(federated).parameters} - {"x", "y", *excluded}
    for key in options:
        if key not in valid:
            raise InputError(f"{key}: unknown in {function}; {nearest(key, valid)}")
