"""The history that :func:`fedsampling.train` returns."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from fedsampling.base.errors import InputError
from fedsampling.evidence.selections import are_selections, selections


class History(pd.DataFrame):
    """A frame with the columns ``seed``, ``at``, ``metric`` and ``value``.

    Slices of it and results of computations are plain frames.
    """

    _metadata = ["_selected"]  # noqa: RUF012  # pandas' name and type

    @property
    def _constructor(self) -> Callable[..., pd.DataFrame]:
        return pd.DataFrame

    def selections(self) -> pd.DataFrame:
        """Return the clients that were selected in each round.

        Returns
        -------
        DataFrame
            A row for each client that was selected: ``round``, counted from 1 as in ``at``;
            ``seed``; ``client``, by name if the clients have names; its aggregation ``weight``;
            whether it ``reported``, always true without ``failures``; and the ``seconds`` that its
            update takes, NaN without ``delays``.  A client that is selected twice has two rows.

        Raises
        ------
        InputError
            If the training had ``selections=False``, or is not finished (in `on_round`).

        Examples
        --------
        >>> import fedsampling as fs
        >>> data = fs.load("mnist", "by_digit", data="embedded")
        >>> work = {"model": "mlp", "steps": 2, "batch": 5, "step": 0.1, "rounds": 2}
        >>> history = fs.train(data, fs.scheme("uniform", m=5), **work)
        >>> history.selections().groupby("round")["client"].nunique().tolist()
        [5, 5]
        """
        if (selected := getattr(self, "_selected", None)) is None:
            raise InputError(
                "the history has no selections; they are recorded when the training ends, without "
                "selections=False"
            )
        return selected.copy()  # type: ignore[no-any-return]


def history_of(
    tables: Sequence[pd.DataFrame], seeds: Sequence[int], names: Sequence[object] | None = None
) -> History:
    """Join the tables of all seeds; the rows of selections become their own table.

    `names`: of the clients, if they have any.
    """
    rows, selected = [], []
    for table, seed in zip(tables, seeds, strict=True):
        chosen = are_selections(table)
        rows.append(table[~chosen].assign(seed=seed))
        if chosen.any():
            selected.append(selections(table[chosen]).assign(seed=seed))
    joined = pd.concat(rows, ignore_index=True)[["seed", "at", "metric", "value"]]
    history = History(joined.astype({"metric": str}))
    if selected:
        frame = pd.concat(selected, ignore_index=True)
        if names is not None:
            frame["client"] = np.array(names, object)[frame["client"]]
        columns = ["round", "seed", "client", "weight", "reported", "seconds"]
        object.__setattr__(history, "_selected", frame[columns])
    return history
