"""Whether a metric should be large or small.

The package knows its own metrics.  A function of a user declares it with an attribute,
``brier.smaller_is_better = True``, or ``greater_is_better`` as in scikit-learn.  Nothing is guessed
from a name.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fedsampling.base.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

# Of a single client, whose summaries over clients follow.
ACCURACIES, LOSSES = ("accuracy", "training_accuracy"), ("loss", "training_loss")
LEVELS, SPREADS = ("mean_{}", "median_{}", "worst_{}", "best_{}"), ("{}_deviation", "{}_gap")
LARGER = frozenset(
    {
        *ACCURACIES,
        *(level.format(score) for level in LEVELS for score in ACCURACIES),
        *("accuracy_worst", "accuracy_q10", "accuracy_q50", "accuracy_q90", "update_cosine"),
        *("entropy", "jain", "met", "least_weight"),
    }
)
SMALLER = frozenset(
    {
        *LOSSES,
        *(level.format(score) for level in LEVELS for score in LOSSES),
        *(spread.format(score) for spread in SPREADS for score in (*ACCURACIES, *LOSSES)),
        *("test_loss", "train_loss", "loss_std", "accuracy_std", "update_error"),
        *("model_bits", "norm_bits", "exchange_bits", "observation_bits", "down_bits"),
        *("seconds", "asking_seconds", "gradients", "never_selected"),
        *("failed", "wasted_bits", "wasted_seconds"),
    }
)
ATTRIBUTES = {"smaller_is_better": False, "greater_is_better": True}  # whether true means larger
DIRECTIONS = "larger is better"  # of a history's ``attrs``: declared directions by metric


def declared(metrics: Mapping[str, Any]) -> dict[str, bool]:
    """Return whether larger is better for the metrics whose functions declare it."""
    directions: dict[str, bool] = {}
    for name, function in metrics.items():
        for attribute, means_larger in ATTRIBUTES.items():
            if (value := getattr(function, attribute, None)) is None:
                continue
            if not isinstance(value, bool | np.bool_):
                raise InputError(
                    f"metrics.{name}: {attribute} = {value!r} is invalid; must be True or False"
                )
            larger = bool(value) == means_larger
            if directions.setdefault(name, larger) != larger:
                raise InputError(
                    f"metrics.{name}: smaller_is_better and greater_is_better disagree; remove one"
                )
    return directions


def of_histories(histories: Iterable["pd.DataFrame"]) -> dict[str, bool]:
    """Return the directions that the metrics of some histories declared."""
    return {
        name: larger
        for history in histories
        for name, larger in history.attrs.get(DIRECTIONS, {}).items()
    }


def is_larger_better(
    metric: Any, larger: Any = None, directions: Mapping[str, bool] | None = None
) -> bool:
    """Whether a metric should be large: as the call says, as it declares, or as is known.

    Raises InputError if none of them says it.
    """
    if not isinstance(metric, str):
        raise InputError(f"metric: {metric!r} is invalid; must be a name")
    if larger is not None:
        if not isinstance(larger, bool | np.bool_):
            raise InputError(f"larger: {larger!r} is invalid; must be True, False or None")
        return bool(larger)
    if metric in (directions or {}):
        return bool((directions or {})[metric])
    if metric in LARGER or metric in SMALLER:
        return metric in LARGER
    raise InputError(
        f"metric: whether {metric!r} should be large or small is unknown; pass larger=True or "
        f"larger=False, or set smaller_is_better on its function"
    )
