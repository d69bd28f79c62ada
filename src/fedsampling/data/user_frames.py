"""Users' own tables, of pandas or of Hugging Face, as a FederatedDataset."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from fedsampling.base.errors import InputError
from fedsampling.base.lazy import pd
from fedsampling.base.records import check
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.user_data import Options, TableOptions, check_options, federated
from fedsampling.data.user_encoding import Encode, standardised
from fedsampling.data.user_tables import is_table, train_and_test, with_client_column


def from_frame(
    frame: "pd.DataFrame | Mapping[str, Any]",
    *,
    target: Any,
    client: Any = None,
    features: Any = None,
    test: Any = None,
    encode: Encode | None = None,
    **options: Unpack[TableOptions],
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
    test : name of a column, optional
        True for test samples, which remain their client's own; or ``"test"`` and ``"train"``.
    encode : {"pooled", "by_client"}, optional
        Numbers are standardised with the mean and standard deviation of the training samples of
        all clients or of each, text and booleans are one-hot.  Missing numbers become the mean,
        with a feature that marks them; missing text is in no category.
    **options
        As in :func:`federated`; the clients' column in `client_info` may have the name `client`.

    Raises
    ------
    InputError
        If a column is missing, or does not contain numbers and is not encoded.

    Examples
    --------
    >>> import pandas as pd
    >>> import fedsampling as fs
    >>> frame = pd.DataFrame({"age": [50, 61, 47], "ill": ["no", "yes", "no"], "site": [1, 1, 2]})
    >>> fs.from_frame(frame, target="ill", client="site").n_clients
    2
    """
    check_options(options, "from_frame", {"clients", "clients_test", "y"})
    checked = check(Options, {"encode": encode}, "").encode
    columns = (target, features, client, test)
    train, tests, encoding = train_and_test(frame, *columns, encodes=checked is not None)
    keywords: dict[str, Any] = {**options}
    info = keywords.get("client_info")
    if is_table(info):
        keywords["client_info"] = with_client_column(info, client)
    if tests is not None:
        for key in ("x_test", "y_test", "test_share"):
            if keywords.get(key) is not None:
                raise InputError(f"{key}: cannot be combined with a split 'test'; remove one")
        keywords |= {"x_test": tests.x, "y_test": tests.y, "clients_test": tests.owner}
    data = federated(train.x, train.y, clients=train.owner, **keywords)
    return data if checked is None or encoding is None else standardised(data, encoding, checked)


def from_huggingface(
    dataset: Any,
    *,
    target: str,
    features: str | Sequence[str] | None = None,
    client: str | None = None,
    **options: Unpack[TableOptions],
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
    check_options(options, "from_huggingface", {"clients", "clients_test", "y"})
    return from_frame(dataset, target=target, features=features, client=client, **options)
