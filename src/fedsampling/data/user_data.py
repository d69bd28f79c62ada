"""Users' own samples as a FederatedDataset, from arrays, tensors, lists or tables.

:func:`federated` takes pooled samples with the client of each, or a partition that assigns them;
:func:`from_clients` takes samples by client; :func:`from_frame` a pandas table;
:func:`from_huggingface` the columns of a ``datasets.Dataset``.  Input that they cannot convert is
rejected with a one-line error.
"""

import hashlib
import inspect
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsampling.base.errors import InputError, nearest
from fedsampling.base.records import Share, Strict, check
from fedsampling.base.streams import stream
from fedsampling.data.federated import FederatedDataset, hold_out
from fedsampling.data.partitions.natural import by_owner
from fedsampling.data.partitions.partition import Partition
from fedsampling.data.partitions.shares import Importance, importances
from fedsampling.data.samples import Samples

if TYPE_CHECKING:
    import pandas as pd

IMAGE_AXES = 3  # samples, rows and columns: the fewest axes of images
NAMED = 5  # labels that a message lists
MAX_CLASSES = 20  # whole numbers that may be labels
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
    >>> fs.federated(x, y, clients=["a", "a", "b", "b", "b", "c"]).n_samples.tolist()
    [2, 3, 1]
    """
    if importance not in get_args(Importance):
        raise InputError(f"importance: {importance!r} is unknown; use 'samples' or 'equal'")
    if (x_test is None) != (y_test is None):
        raise InputError("x_test, y_test: one is missing; pass both or neither")
    if x_test is not None and test_share is not None:
        raise InputError("test_share: cannot be combined with x_test; remove one of the two")
    train = _pair(x, y, "", tokens)
    test = _pair(x_test, y_test, "_test", tokens) if x_test is not None else _none_of(train)
    train, test, classes = _numbered(train, test, tokens)
    if classes is None and _may_be_labels(train.y):
        warnings.warn(
            "y: floating-point numbers are the targets of a regression; "
            "convert them to integers if they are classes",
            stacklevel=2,
        )
    share = None if test_share is None else check(_Held, {"test_share": test_share}, "").test_share
    if share is not None and clients is None:  # before the partition, which may deal tests out
        train, test = _split(train, share, seed)
    owner = None if clients is None else _owners(clients, len(train.y))
    content = (*train, *test, *([] if owner is None else [owner]))
    samples = Samples(
        name=name,
        x=train.x,
        y=train.y,
        x_test=test.x,
        y_test=test.y,
        classes=classes or 0,
        writer=owner,
        inputs={name: _digest(*content)},
    )
    data = _shared_out(samples, classes, partition, importance, seed)
    if share is None or clients is None:
        return data
    return hold_out(data, share, stream(seed, "holdout"))


def from_clients(samples: Sequence[tuple[ArrayLike, ArrayLike]], **more: Any) -> FederatedDataset:
    """Make a dataset from one pair ``(x, y)`` per client.

    Parameters
    ----------
    samples : sequence of pairs
        Samples (n_k, ...) and labels or targets (n_k,) of each client.
    **more
        As in :func:`federated`: ``x_test``, ``y_test``, ``test_share``, ``tokens``,
        ``importance``, ``name``, ``seed``.

    Raises
    ------
    InputError
        As in :func:`federated`, with the client's number.
    """
    pairs = list(samples)
    _only_known(more, "from_clients", {"clients", "partition"})
    if not pairs:
        raise InputError("samples: empty; pass one pair (x, y) for each client")
    xs: list[NDArray[Any]] = []
    ys: list[NDArray[Any]] = []
    for client, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"client {client}: {type(pair).__name__} is invalid; must be (x, y)")
        x, y = _array(pair[0], f"client {client}: x"), _array(pair[1], f"client {client}: y")
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
    return federated(np.concatenate(xs), np.concatenate(ys), clients=owner, **more)


def from_frame(
    frame: "pd.DataFrame", *, target: str, client: str | None = None, **more: Any
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
    **more
        As in :func:`federated`.

    Raises
    ------
    InputError
        If a column is missing or does not contain numbers.
    """
    _only_known(more, "from_frame", {"clients"})
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
    return federated(x, frame[target].to_numpy(), clients=owner, **more)


def from_huggingface(
    dataset: Any,
    *,
    target: str,
    features: str | Sequence[str] | None = None,
    client: str | None = None,
    **more: Any,
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
    **more
        As in :func:`federated`.

    Raises
    ------
    InputError
        If a column is missing, or cannot be converted.
    """
    _only_known(more, "from_huggingface", {"clients"})
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
        more = {**test, **more}
    owners = None if client is None else _column(train, client)
    return federated(_columns(train, used), _column(train, target), clients=owners, **more)


class _Held(Strict):
    """Fraction of each client's samples that is held out."""

    test_share: Share


class _Samples(NamedTuple):
    """Samples (N, ...) and labels or targets of each."""

    x: NDArray[Any]
    y: NDArray[Any]


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


def _array(values: Any, place: str) -> NDArray[Any]:
    """Convert arrays, tensors, series and lists to an array whose first axis is samples."""
    if hasattr(values, "detach"):  # a tensor, perhaps on a GPU or with a gradient
        values = values.detach().cpu()
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        raise InputError(f"{place}: rows differ in shape; pass arrays of one shape") from None
    if array.ndim < 1:
        raise InputError(f"{place}: {type(values).__name__} is invalid; must be an array")
    return array


def _pair(x: Any, y: Any, which: str, tokens: bool) -> _Samples:
    samples = _features(_array(x, f"x{which}"), f"x{which}", tokens)
    labels = _array(y, f"y{which}")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if len(samples) != len(labels):
        raise InputError(
            f"x{which}, y{which}: {len(samples)} samples but {len(labels)} labels; must be equal"
        )
    if not len(samples):
        raise InputError(f"x{which}: no samples; pass at least one")
    if labels.ndim != 1 and not (tokens and labels.ndim == 2):
        raise InputError(f"y{which}: shape {labels.shape} is invalid; must be one label per sample")
    return _Samples(samples, _targets(labels, f"y{which}"))


def _features(x: NDArray[Any], place: str, tokens: bool) -> NDArray[Any]:
    if x.dtype.kind not in "iufb":
        raise InputError(f"{place}: contains {_kind(x)}; convert to numbers")
    x = x[:, None] if x.ndim == 1 else x
    if not np.isfinite(x).all():
        rows = np.flatnonzero(~np.isfinite(x).reshape(len(x), -1).all(1))
        raise InputError(
            f"{place}: {len(rows)} samples are NaN or infinite, first row {rows[0]}; remove them"
        )
    if tokens:
        if x.dtype.kind not in "iu" or x.ndim != 2 or x.min() < 0:
            raise InputError(f"{place}: tokens must be integers from 0 up, shape (N, steps)")
        return x.astype(np.int64)
    if x.dtype.kind in "iu" and x.ndim >= IMAGE_AXES and x.min() >= 0 and x.max() <= 255:
        return x.astype(np.uint8)
    return x.astype(np.float32)


def _may_be_labels(y: NDArray[Any]) -> bool:
    """Whether numbers look like labels: integers with few different values."""
    return not (y % 1).any() and len(np.unique(y)) <= MAX_CLASSES


def _targets(y: NDArray[Any], place: str) -> NDArray[Any]:
    """Return labels as integers, booleans or text, and targets as float64."""
    if y.dtype.kind == "f":
        if not np.isfinite(y).all():
            raise InputError(f"{place}: contains NaN or infinity; remove these samples")
        return y.astype(np.float64)
    if y.dtype.kind == "O":
        if not all(isinstance(label, str) for label in y.flat):
            raise InputError(f"{place}: labels have several types; convert all to text or integers")
        return y.astype(np.str_)
    if y.dtype.kind not in "iubU":
        raise InputError(f"{place}: contains {_kind(y)}; must be integers, text or numbers")
    return y


def _numbered(
    train: _Samples, test: _Samples, tokens: bool
) -> tuple[_Samples, _Samples, int | None]:
    """Replace labels by numbers from 0 in sorted order; keep the targets of a regression."""
    if train.x.shape[1:] != test.x.shape[1:]:
        raise InputError(
            f"x_test: samples have shape {test.x.shape[1:]}, but those of x {train.x.shape[1:]}"
        )
    if train.x.dtype != test.x.dtype:
        train, test = (part._replace(x=part.x.astype(np.float32)) for part in (train, test))
    kinds = {part.y.dtype.kind == "f" for part in (train, test)}
    if len(kinds) > 1:
        raise InputError("y, y_test: one has labels, the other numbers; must be of the same kind")
    if kinds == {True}:
        return train, test, None
    if tokens:
        most = max(int(part.max()) for part in (*train, *test) if part.size)
        train, test = (part._replace(y=part.y.astype(np.int64)) for part in (train, test))
        return train, test, most + 1
    labels, y = np.unique(train.y, return_inverse=True)
    if unknown := sorted({*np.unique(test.y).tolist()} - {*labels.tolist()}, key=str):
        named = ", ".join(map(repr, unknown[:NAMED]))
        raise InputError(f"y_test: no training sample has label {named}; remove these test samples")
    number = np.searchsorted(labels, test.y)
    return (
        train._replace(y=y.reshape(train.y.shape).astype(np.int64)),
        test._replace(y=number.astype(np.int64)),
        len(labels),
    )


def _split(samples: _Samples, share: float, seed: int) -> tuple[_Samples, _Samples]:
    """Draw a fraction of all samples as tests."""
    order = stream(seed, "holdout").permutation(len(samples.y))
    back = np.zeros(len(order), np.bool_)
    back[order[: int(share * len(order))]] = True
    train, test = (_Samples(samples.x[part], samples.y[part]) for part in (~back, back))
    return train, test


def _none_of(train: _Samples) -> _Samples:
    return _Samples(train.x[:0], train.y[:0])


def _owners(clients: ArrayLike, n: int) -> NDArray[np.int64]:
    """Replace clients by numbers from 0 in sorted order."""
    owner = _array(clients, "clients")
    if owner.shape != (n,):
        raise InputError(f"clients: shape {owner.shape}; must be one owner per sample, ({n},)")
    if owner.dtype.kind == "O":
        if any(each is None or each != each for each in owner):
            raise InputError("clients: some samples have no owner; remove them")
        owner = owner.astype(np.str_)
    if owner.dtype.kind == "f" and not np.isfinite(owner).all():
        raise InputError("clients: some samples have no owner; remove them")
    numbers: NDArray[np.int64] = np.unique(owner, return_inverse=True)[1].astype(np.int64)
    return numbers


def _shared_out(
    samples: Samples, classes: int | None, partition: Any, importance: Importance, seed: int
) -> FederatedDataset:
    if partition is None:
        if samples.writer is None:
            raise InputError(
                "clients, partition: both missing; pass each sample's owner, or a partition"
            )
        return _by_owner(samples, classes, importance)
    record = {"name": partition} if isinstance(partition, str) else partition
    if not isinstance(record, Mapping | Partition):
        raise InputError("partition: must be a name, a dict or a record")
    chosen = check(Partition, record, "partition.")  # type: ignore[arg-type]
    if classes is None:
        raise InputError(
            "partition: needs labels, but the targets are numbers; pass clients instead"
        )
    if chosen.needs_writers and samples.writer is None:
        raise InputError(f"partition: {chosen.named} needs the owner of each sample; pass clients")
    if samples.writer is not None and not chosen.needs_writers:
        raise InputError(
            f"partition: {chosen.named} cannot be combined with clients; remove one of the two"
        )
    if chosen.named == "rotated" and samples.x.dtype != np.uint8:
        raise InputError("partition: rotated needs images; x must be integers from 0 to 255")
    try:
        return chosen.share_out(samples, seed, importance)
    except InputError as error:
        if len(samples.y_test):
            raise
        hint = "there are no test samples; if the partition assigns tests, too, give test_share"
        raise InputError(*(f"{line} ({hint})" for line in error.lines)) from None


def _by_owner(samples: Samples, classes: int | None, importance: Importance) -> FederatedDataset:
    assert samples.writer is not None
    index, start = by_owner(samples.writer)
    return FederatedDataset(
        name=samples.name,
        x=samples.x[index],
        y=samples.y[index],
        start=start,
        p=importances(start, importance),
        x_test=samples.x_test,
        y_test=samples.y_test,
        inputs=samples.inputs,
        classes=classes,
    )


def _only_known(more: Mapping[str, Any], function: str, taken: set[str]) -> None:
    known = {*inspect.signature(federated).parameters} - {"x", "y", *taken}
    for key in more:
        if key not in known:
            raise InputError(f"{key}: unknown in {function}; {nearest(key, known)}")


def _digest(*arrays: NDArray[Any]) -> str:
    """Return the SHA-256 of the arrays' types, shapes and values."""
    content = hashlib.sha256()
    for array in arrays:
        content.update(f"{array.dtype.str}{array.shape}".encode())
        content.update(np.ascontiguousarray(array).tobytes())
    return content.hexdigest()


def _kind(values: NDArray[Any]) -> str:
    return "text" if values.dtype.kind in "US" else f"values of type {values.dtype}"
