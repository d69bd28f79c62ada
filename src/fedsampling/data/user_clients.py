"""Users' own samples, given by client, as a FederatedDataset."""

from collections.abc import Iterable, Mapping, Set
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.errors import InputError
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.user_arrays import Labelled, copied, kind_of, numbers, one_type
from fedsampling.data.user_data import SampleOptions, check_options, federated
from fedsampling.data.user_datasets import is_dataset, samples_of
from fedsampling.data.user_layout import Layout, aligned, aligned_rows, warn_of


def from_clients(
    samples: "Mapping[Any, Any] | Iterable[Any]", **options: Unpack[SampleOptions]
) -> FederatedDataset:
    """Make a dataset from the samples of each client.

    Parameters
    ----------
    samples : mapping of names to clients, or sequence of clients
        A client is ``(x, y)``, with samples (n_k, ...) and labels or targets (n_k,); or ``(x, y,
        x_test, y_test)`` with its own test samples; or a dataset or loader of PyTorch, or a pair of
        these for training and test.
    **options
        As in :func:`federated`: ``x_test``, ``y_test``, ``test_share``, ``client_info``,
        ``tokens``, ``importance``, ``name``, ``seed``.

    Returns
    -------
    FederatedDataset
        Its clients are in the order of the sequence, or of their sorted names.

    Raises
    ------
    InputError
        As in :func:`federated`; the message begins with the client's name.

    Examples
    --------
    >>> import numpy as np
    >>> import fedsampling as fs
    >>> hospitals = {f"H{n}": (np.random.rand(n, 4), np.arange(n) % 2) for n in (20, 30)}
    >>> fs.from_clients(hospitals).n_samples.tolist()
    [20, 30]
    """
    check_options(options, "from_clients", {"clients", "clients_test", "partition", "y"})
    if not isinstance(samples, Iterable) or isinstance(samples, str):
        raise InputError(f"samples: {type(samples).__name__} is invalid; must be a list of (x, y)")
    named = samples.items() if isinstance(samples, Mapping) else enumerate(samples)
    if isinstance(samples, Set):
        raise InputError("samples: a set has no order; pass a list, or a dict of clients")
    is_lazy = not isinstance(samples, list | tuple | dict)
    parts: dict[Any, tuple[Labelled, Labelled | None]] = {}
    layout: Layout | None = None
    notes: list[str] = []
    for name, part in named:
        train, test, layout = _client(part, f"client {name}: ", is_lazy, layout, notes)
        parts[name] = train, test
    if options.get("x_test") is not None and layout is not None:
        options["x_test"], _ = aligned(options["x_test"], "x_test", layout, notes)
    warn_of(notes)
    if not parts:
        raise InputError("samples: empty; pass one pair (x, y) for each client")
    trains = {name: train for name, (train, _) in parts.items()}
    tests = {name: test for name, (_, test) in parts.items() if test is not None}
    others = [key for key in ("x_test", "test_share") if options.get(key) is not None]
    if tests and others:
        raise InputError(f"{others[0]}: cannot be combined with tests of each client; remove one")
    keywords: dict[str, Any] = {**options}
    if tests:
        x, y, clients = _pooled(tests, "tests ")
        keywords |= {"x_test": x, "y_test": y, "clients_test": clients}
    x, y, clients = _pooled(trains, "")
    return federated(x, y, clients=clients, **keywords)


def _client(
    part: Any, client: str, is_lazy: bool, layout: Layout | None, notes: list[str]
) -> tuple[Labelled, Labelled | None, Layout | None]:
    """Check one client's training samples and, if it has any, its test samples.

    `is_lazy`: whether the next client may use the memory of this one. `layout`: of the first
    client's samples, with which these are aligned; returned for the next client.
    """
    parts = [part] if is_dataset(part) else part
    is_list = isinstance(parts, tuple | list)
    has_datasets = is_list and any(map(is_dataset, parts))
    if not is_list or len(parts) not in ((1, 2) if has_datasets else (2, 4)):
        raise InputError(f"{client}{type(part).__name__} is invalid; must be (x, y)")
    if has_datasets:
        parts = [array for dataset in parts for array in samples_of(dataset, f"{client}x")]
    checked = []
    for x, y, suffix in zip(parts[::2], parts[1::2], ("", "_test"), strict=False):
        name_x, name_y = f"{client}x{suffix}", f"{client}y{suffix}"
        x, y = aligned_rows({name_x: x, name_y: y}, notes)
        x, layout = aligned(x, name_x, layout, notes)
        checked.append(Labelled(numbers(x, name_x), one_type(y, name_y)))
    if is_lazy:
        checked = [Labelled(copied(x), copied(y)) for x, y in checked]
    for x, y in checked:
        if len(x) != len(y):
            raise InputError(f"{client}{len(x)} samples but {len(y)} labels; must be equal")
    return checked[0], checked[1] if len(checked) > 1 else None, layout


def _pooled(
    parts: Mapping[Any, Labelled], kind: str
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Join the clients' samples; return them with the name of each sample's client."""
    first = next(iter(parts))
    for client, (x, y) in parts.items():
        if x.shape[1:] != (expected := parts[first].x.shape[1:]):
            raise InputError(
                f"client {client}: {kind}samples of shape {x.shape[1:]}, not {expected}"
            )
        if kind_of(y) != kind_of(parts[first].y):
            raise InputError(
                f"client {client}: {kind}y contains {kind_of(y)}, but that of client {first} "
                f"{kind_of(parts[first].y)}; convert all to one type"
            )
    x, y = (np.concatenate(arrays) for arrays in zip(*parts.values(), strict=True))
    names = one_type([*parts], "samples: names")
    if names.ndim > 1:
        raise InputError(f"samples: name {first!r} is invalid; must be text or a number")
    return x, y, np.repeat(names, [len(part.y) for part in parts.values()])
