"""Users' own samples as a FederatedDataset: pooled, with the client of each or a partition.

:mod:`.user_clients` takes samples by client, :mod:`.user_frames` tables.  Input that cannot be
converted is rejected with a one-line error.
"""

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsampling.base.arrays import Ints
from fedsampling.base.errors import InputError, check_known, naming
from fedsampling.base.lazy import pd
from fedsampling.base.records import Seed, Share, Strict, check
from fedsampling.base.streams import stream
from fedsampling.data.federated import FederatedDataset, hold_out
from fedsampling.data.partitions.partition import Partition, by_owner
from fedsampling.data.samples import Samples, gather
from fedsampling.data.scales import check_scales
from fedsampling.data.shares import Importance, starts
from fedsampling.data.user_arrays import (
    MAX_LISTED_LABELS,
    Labelled,
    labelled,
    may_be_labels,
    owners,
    places,
    sha256_of,
    with_numbered_labels,
)
from fedsampling.data.user_datasets import is_dataset, samples_of
from fedsampling.data.user_encoding import Encode
from fedsampling.data.user_layout import aligned, aligned_rows, warn_of
from fedsampling.data.user_tables import read_client_info


def federated(
    x: Any,
    y: Any = None,
    *,
    clients: ArrayLike | None = None,
    partition: str | Mapping[str, Any] | Partition | None = None,
    x_test: Any = None,
    y_test: Any = None,
    clients_test: ArrayLike | None = None,
    test_share: float | None = None,
    client_info: "pd.DataFrame | Mapping[str, Any] | None" = None,
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
        become float32.  Without `y`, a ``torch.utils.data.Dataset`` or ``DataLoader`` of pairs.
    y : array, shape (N,)
        Labels: integers, text or booleans, numbered in sorted order.  Floating-point numbers are
        the targets of a regression.  With `tokens` also (N, steps).
    clients : array, shape (N,), optional
        The client that owns each sample: numbers or text.
    partition : str, dict or Partition, optional
        Assigns the samples instead, such as ``fs.partitions.AllByDirichlet(alpha=0.5,
        clients=100)``.
    x_test, y_test : array, optional
        Test samples, common to all clients.
    clients_test : array, optional
        The client that owns each test sample; then, clients are tested on their own samples.
    test_share : float, optional
        Without `x_test`: the fraction of each client's samples that become its test samples, drawn
        at random.  A partition that also assigns test samples draws them from all samples.
    client_info : DataFrame or mapping, optional
        Properties of the clients, a row for each, which samplers get as ``setup.info``.  The column
        ``client`` has the clients.
    tokens : bool
        Whether `x` and `y` contain token numbers, shape (N, steps), which stay unchanged.
    importance : {"samples", "equal"}
        p_k: proportional to the client's training samples, or 1/n.  Those that `test_share` makes
        its test samples count, too.
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
    checked = check(Options, {**options, "tokens": tokens}, "")
    name, seed = checked.name, checked.seed
    passed = Passed(x, y, clients).unpacked("x")
    passed_tests = Passed(x_test, y_test, clients_test).unpacked("x_test")
    _check_complete(passed, passed_tests, test_share)
    passed, passed_tests = _aligned(passed, passed_tests)
    train = labelled(passed.x, passed.y, "", tokens)
    test = Labelled(train.x[:0], train.y[:0])
    if passed_tests.x is not None:
        test = labelled(passed_tests.x, passed_tests.y, "_test", tokens)
    labels = np.unique(train.y)
    train, test, classes = with_numbered_labels(train, test, tokens)
    if classes is None and may_be_labels(train.y):
        warnings.warn(
            "y: floating-point numbers are the targets of a regression; "
            "convert them to integers if they are classes",
            stacklevel=2,
        )
    assigned = None if partition is None else _partition(partition)
    if test_share is not None and assigned is not None and assigned.needs_tests:
        train, test = _split(train, test_share, seed)
        test_share = None
    owned = _numbered_owners(passed, passed_tests, len(train.y), len(test.y), assigned)
    content = (*train, *test, *(part for part in (owned.train, owned.test) if part is not None))
    samples = Samples(
        name=name,
        x=train.x,
        y=train.y,
        x_test=test.x,
        y_test=test.y,
        classes=classes,
        writer=owned.train,
        writer_test=owned.test,
        inputs={name: sha256_of(*content)},
        names=owned.names,
    )
    data = _shared_out(samples, assigned, seed, importance)
    if test_share is not None:
        with naming("test_share"):
            data = hold_out(data, test_share, stream(seed, "holdout"), keep_owner=True)
    if (test_share or checked.test_share) and classes is not None and not tokens:
        _check_labels(data, labels)
    return _described(data, client_info)


class SampleOptions(TypedDict, total=False):
    """Keywords of :func:`federated` that :func:`fedsampling.from_clients` accepts."""

    x_test: Any
    y_test: Any
    test_share: float | None
    client_info: "pd.DataFrame | Mapping[str, Any] | None"
    tokens: bool
    importance: Importance
    name: str
    seed: int


class TableOptions(SampleOptions, total=False):
    """Keywords of :func:`federated` that :func:`fedsampling.from_frame` accepts."""

    partition: str | Mapping[str, Any] | Partition | None


class Options(Strict):
    """Validation of the options of :func:`federated` and :func:`fedsampling.from_frame`."""

    test_share: Share | None = None
    importance: Importance = "samples"
    name: str = ""
    seed: Seed = 0
    tokens: bool = False
    encode: Encode | None = None


class Passed(NamedTuple):
    """Samples as passed: inputs, labels and owners, each None if it is missing."""

    x: Any
    y: Any
    clients: ArrayLike | None

    def unpacked(self, argument: str) -> "Passed":
        """Return the samples of a dataset of pairs, passed as `argument`, as arrays."""
        if not is_dataset(self.x) or self.y is not None:
            return self
        x, y = samples_of(self.x, argument)
        return self._replace(x=x, y=y)

    def with_aligned_rows(self, suffix: str, notes: list[str]) -> "Passed":
        """Return the samples with their rows in one order."""
        arguments = {f"{name}{suffix}": values for name, values in self._asdict().items()}
        return Passed(*aligned_rows(arguments, notes))


class Owners(NamedTuple):
    """The clients' names in the order of their numbers, and the owner's number of each sample.

    Each is None if it is missing.
    """

    names: NDArray[Any] | None = None
    train: Ints | None = None
    test: Ints | None = None


def _check_complete(train: Passed, test: Passed, test_share: float | None) -> None:
    """Check that samples have labels, and that tests are passed in one way only."""
    if (test.x is None) != (test.y is None):
        raise InputError("x_test, y_test: one is missing; pass both or neither")
    if train.y is None:
        raise InputError("y: missing; pass a label for each sample")
    if test.x is not None and test_share is not None:
        raise InputError("test_share: cannot be combined with x_test; remove one of the two")


def _aligned(train: Passed, test: Passed) -> tuple[Passed, Passed]:
    """Return samples with rows in one order, and tests with the columns of the samples."""
    notes: list[str] = []
    train = train.with_aligned_rows("", notes)
    test = test.with_aligned_rows("_test", notes)
    x, layout = aligned(train.x, "x", None, notes)
    x_test = test.x
    if x_test is not None:
        x_test, _ = aligned(x_test, "x_test", layout, notes)
    warn_of(notes, stacklevel=4)
    return train._replace(x=x), test._replace(x=x_test)


def _numbered_owners(
    train: Passed, test: Passed, size: int, test_size: int, partition: Partition | None
) -> Owners:
    """Return the number of each sample's owner, of `size` samples and `test_size` tests."""
    names = owner = None
    if train.clients is not None:
        names, owner = np.unique(owners(train.clients, size), return_inverse=True)
        owner = owner.astype(np.int64)
    if test.clients is None:
        return Owners(names, owner)
    if names is None or test.x is None or partition is not None:
        raise InputError(
            "clients_test: needs clients and x_test; cannot be combined with partition"
        )
    tested = owners(test.clients, test_size, "clients_test")
    return Owners(names, owner, places(tested, names, "clients_test"))


def _shared_out(
    samples: Samples, partition: Partition | None, seed: int, importance: Importance
) -> FederatedDataset:
    """Give each client the samples that a partition assigns, or that it owns."""
    if partition is not None:
        _check_fits(partition, samples, is_regression=samples.classes is None)
        return partition.share_out(samples, seed, importance)
    if samples.writer is None:
        raise InputError(
            "clients, partition: both missing; pass each sample's owner, or a partition"
        )
    tests = None
    if (owner := samples.writer_test) is not None:
        sizes = np.bincount(owner, minlength=samples.writer.max() + 1)  # some clients have none
        tests = np.argsort(owner, kind="stable"), starts(sizes)
    data = gather(samples, by_owner(samples.writer), tests, importance)
    return data if samples.names is None else replace(data, names=tuple(samples.names.tolist()))


def _split(samples: Labelled, share: float, seed: int) -> tuple[Labelled, Labelled]:
    """Draw a fraction of all samples as tests."""
    order = stream(seed, "holdout").permutation(len(samples.y))
    is_test = np.zeros(len(order), np.bool_)
    is_test[order[: int(share * len(order))]] = True
    train, test = (Labelled(samples.x[part], samples.y[part]) for part in (~is_test, is_test))
    return train, test


def _check_labels(data: FederatedDataset, labels: NDArray[Any]) -> None:
    """Refuse a split that leaves labels to the tests alone, as for tests that are passed."""
    if unknown := sorted({*np.unique(data.y_test).tolist()} - {*np.unique(data.y).tolist()}):
        listed = ", ".join(repr(labels[label].item()) for label in unknown[:MAX_LISTED_LABELS])
        raise InputError(
            f"test_share: all samples of label {listed} became test samples; add samples of it, "
            "remove it, or use another seed"
        )


def _partition(partition: str | Mapping[str, Any] | Partition) -> Partition:
    """Check the settings of a partition."""
    settings = {"name": partition} if isinstance(partition, str) else partition
    if not isinstance(settings, Mapping | Partition):
        raise InputError("partition: must be a name, a dict or a record")
    return check(Partition, settings, "partition.")  # type: ignore[arg-type]


def _check_fits(checked: Partition, samples: Samples, is_regression: bool) -> None:
    """Check that a partition fits the samples."""
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


def _described(data: FederatedDataset, properties: Any) -> FederatedDataset:
    """Add the clients' properties, omit names that are their numbers, and check the scales."""
    numbers = np.arange(data.n_clients)
    names = numbers if data.names is None else np.asarray(data.names)
    # Equal floating-point numbers and booleans remain as they are, as in `client_info`.
    if names.dtype.kind == "i" and np.array_equal(names, numbers):
        data = replace(data, names=None)
    check_scales(data)
    if properties is None:
        return data
    info = read_client_info(properties, names)
    digest = sha256_of(*(info[name] for name in sorted(info)))
    return replace(data, info=info, inputs={**data.inputs, "client_info": digest})


def check_options(options: Mapping[str, Any], function: str, excluded: set[str]) -> None:
    """Refuse keywords that `function` does not take: unknown ones, and the `excluded`."""
    valid = {*inspect.signature(federated).parameters} - {"x", "y", *excluded}
    check_known(options, valid, f"{{}}: unknown in {function}")
