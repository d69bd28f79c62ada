"""Users' own samples as a FederatedDataset, from arrays, tensors, lists or tables.

:func:`federated` takes pooled samples with the client of each, or a partition that assigns them;
:func:`from_clients` takes samples by client; :func:`from_frame` a pandas table;
:func:`from_huggingface` the columns of a ``datasets.Dataset``.  Input that they cannot convert is
rejected with a one-line error.
"""

import inspect
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fedsampling.base.errors import InputError, nearest
from fedsampling.base.records import Seed, Share, Strict, check
from fedsampling.base.streams import stream
from fedsampling.data.federated import FederatedDataset, hold_out
from fedsampling.data.partitions.natural import by_owner
from fedsampling.data.partitions.partition import Partition
from fedsampling.data.partitions.shares import Importance
from fedsampling.data.samples import Samples, gather
from fedsampling.data.user_arrays import (
    Labelled,
    check_scales,
    kind_of,
    labelled,
    may_be_labels,
    numbers,
    one_type,
    owner_numbers,
    sha256_of,
    with_numbered_labels,
)
from fedsampling.data.user_tables import train_and_test

if TYPE_CHECKING:
    import pandas as pd


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
    seed = seed.item() if isinstance(seed, np.integer) else seed
    options = {"test_share": test_share, "importance": importance, "name": name, "seed": seed}
    checked = check(_Options, {**options, "tokens": tokens}, "")
    name, seed = checked.name, checked.seed
    if (x_test is None) != (y_test is None):
        raise InputError("x_test, y_test: one is missing; pass both or neither")
    if x_test is not None and test_share is not None:
        raise InputError("test_share: cannot be combined with x_test; remove one of the two")
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
    if test_share is not None and clients is None:  # before the partition, which may deal tests out
        train, test = _split(train, test_share, seed)
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
        fitting = _checked_partition(partition, samples, is_regression=classes is None)
        data = fitting.share_out(samples, seed, importance)
    elif owner is not None:
        data = gather(samples, by_owner(owner), None, importance)
    else:
        raise InputError(
            "clients, partition: both missing; pass each sample's owner, or a partition"
        )
    if test_share is not None and clients is not None:
        data = hold_out(data, test_share, stream(seed, "holdout"))
    check_scales(data)
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
    _check_options(options, "from_clients", {"clients", "partition"})
    if not isinstance(samples, Iterable) or isinstance(samples, str | Mapping):
        raise InputError(f"samples: {type(samples).__name__} is invalid; must be a list of (x, y)")
    parts = [_client(pair, f"client {client}: ") for client, pair in enumerate(samples)]
    if not parts:
        raise InputError("samples: empty; pass one pair (x, y) for each client")
    first, kind = parts[0].x.shape[1:], kind_of(parts[0].y)
    for client, (x, y) in enumerate(parts):
        if x.shape[1:] != first:
            raise InputError(f"client {client}: samples of shape {x.shape[1:]}, not {first}")
        if kind_of(y) != kind:
            raise InputError(
                f"client {client}: y contains {kind_of(y)}, but that of client 0 {kind}; convert "
                "all to one type"
            )
    owner = np.repeat(np.arange(len(parts)), [len(part.y) for part in parts])
    x, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return federated(x, y, clients=owner, **options)


def from_frame(
    frame: "pd.DataFrame | Mapping[str, Any]",
    *,
    target: Any,
    client: Any = None,
    features: Any = None,
    **options: Any,
) -> FederatedDataset:
    """Make a dataset from a pandas table with one row per sample.

    Parameters
    ----------
    frame : DataFrame, or mapping of column names to values
        Or a mapping of the splits "train" and "test" to such tables.
    target : name of a column
        Labels (integers, text, booleans) or targets (floating-point numbers).
    client : name of a column, optional
        Each sample's client; without it, a ``partition`` is required.
    features : name or list of names, optional
        Columns of numbers, or a single column of arrays; by default, all other columns.
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
    return _from_table(frame, target, features, client, options)


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
    return _from_table(dataset, target, features, client, options)


class _Options(Strict):
    """Validation of the options of :func:`federated`."""

    test_share: Share | None
    importance: Importance
    name: str
    seed: Seed
    tokens: bool


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


def _client(pair: Any, client: str) -> Labelled:
    """Check one client's samples and labels."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InputError(f"{client}{type(pair).__name__} is invalid; must be (x, y)")
    x, y = numbers(pair[0], f"{client}x"), one_type(pair[1], f"{client}y")
    if len(x) != len(y):
        raise InputError(f"{client}{len(x)} samples but {len(y)} labels; must be equal")
    return Labelled(x, y)


def _from_table(
    source: Any, target: Any, features: Any, client: Any, options: dict[str, Any]
) -> FederatedDataset:
    """Make a dataset from named columns, or from splits "train" and "test" of them."""
    _check_options(options, "from_frame", {"clients"})
    train, test = train_and_test(source, target, features, client)
    if test is not None:
        for key in ("x_test", "y_test", "test_share"):
            if options.get(key) is not None:
                raise InputError(f"{key}: cannot be combined with a split 'test'; remove one")
        options = {**options, "x_test": test.x, "y_test": test.y}
    return federated(train.x, train.y, clients=train.owner, **options)


def _check_options(options: Mapping[str, Any], function: str, excluded: set[str]) -> None:
    valid = {*inspect.signature(federated).parameters} - {"x", "y", *excluded}
    for key in options:
        if key not in valid:
            raise InputError(f"{key}: unknown in {function}; {nearest(key, valid)}")
