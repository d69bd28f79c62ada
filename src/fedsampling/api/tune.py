"""Tuning samplers in Python: :func:`tune`."""

import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Unpack

import numpy as np

from fedsampling.api.arguments import (
    Choice,
    check_data,
    described,
    plain_numbers,
    with_labels,
)
from fedsampling.api.keywords import TrainingArguments
from fedsampling.api.train import checked_settings, train
from fedsampling.base.errors import InputError, naming
from fedsampling.base.lazy import pd
from fedsampling.base.records import Seed, Share, Strict, check
from fedsampling.base.streams import stream
from fedsampling.data.federated import FederatedDataset, hold_out
from fedsampling.evidence.directions import declared, is_larger_better
from fedsampling.evidence.fairness import MEASURES

Grid = Mapping[str, Sequence[Any]]
TESTED = ("accuracy", "accuracy_std", "test_loss")  # metrics on test samples
TIMES = ("seconds", "asking_seconds", "wasted_seconds")
ALL_ROUNDS = "trials are scored over all their rounds; remove it"
# Arguments of `train` that are no settings of experiments.
OTHERS = "seeds", "loss", "metrics", "on_round", "progress", "device", "threads", "checkpoint"


def tune(
    samplers: "Sequence[Choice] | Mapping[str, Choice]",
    data: FederatedDataset,
    grid: Grid,
    *,
    metric: str = "accuracy",
    larger: bool | None = None,
    holdout: float = 0.2,
    **training: Unpack[TrainingArguments],
) -> "pd.DataFrame":
    """Choose settings for each sampler among the same trials, on a holdout.

    The test set of `data` is not used.  All trials play all rounds: `until` is refused here, and
    :func:`fedsampling.compare` applies it to the final runs only.

    Parameters
    ----------
    samplers : sequence, or mapping of str to sampler
        As in :func:`fedsampling.compare`.
    data : FederatedDataset
    grid : mapping of str to list
        Values of settings of :func:`train`, such as ``{"step": [0.01, 0.1, 1]}``.  With several
        settings, all combinations are tried.  They replace the same settings in `training`.
    metric : str
        Metric that scores the trials.
    larger : bool, optional
        Whether larger is better.  By default as is known of the package's metrics, or as the
        function in `metrics` declares: ``brier.smaller_is_better = True``, or scikit-learn's
        ``greater_is_better``.
    holdout : float
        Part of each client's training samples that measures the trials instead of training.
    **training
        As in :func:`train`; the default of ``seeds`` is 2.

    Returns
    -------
    DataFrame
        A row for each sampler and trial: ``sampler``, the settings of the grid, ``score`` (the mean
        over seeds and the second half of the trial's rounds; NaN if a run diverged), ``chosen`` and
        ``at_edge``: the settings of which the chosen value is the smallest or largest of the grid.

    Raises
    ------
    InputError
        As in :func:`train`, or if the grid is invalid.

    Warns
    -----
    UserWarning
        If a chosen value is at the edge of the grid.

    Examples
    --------
    >>> import fedsampling as fs
    >>> data = fs.load("mnist", "by_digit", data="embedded")
    >>> work = {"model": "mlp", "steps": 2, "batch": 5, "rounds": 4}
    >>> trials = fs.tune([fs.scheme("md", m=5)], data, {"step": [1e-9, 0.1, 10]}, **work)
    >>> trials.loc[trials["chosen"], "step"].tolist()
    [0.1]
    """
    if training.get("until") is not None:
        raise InputError(f"until: {ALL_ROUNDS}")
    table = trials_of(samplers, data, grid, metric, larger, holdout, **training)
    warn_at_edge(table)
    return table


def trials_of(
    samplers: "Sequence[Choice] | Mapping[str, Choice]",
    data: FederatedDataset,
    grid: Grid,
    metric: str,
    larger: bool | None,
    holdout: float = 0.2,
    **training: Any,
) -> "pd.DataFrame":
    """Run and score the trials of :func:`tune`."""
    from fedsampling.evidence.scores import is_at_edge, score_trials, scores

    if not isinstance(grid, Mapping) or not grid or not all(isinstance(key, str) for key in grid):
        raise InputError("grid: must be a dict of lists, such as {'step': [0.01, 0.1, 1]}")
    for key, values in grid.items():
        if isinstance(values, str) or not hasattr(values, "__len__") or not len(values):
            problem = f"{described(values)} is invalid; must be a list of values"
            raise InputError(f"grid.{key}: {problem}")
    if "until" in grid:
        raise InputError(f"grid.until: {ALL_ROUNDS}")
    larger = direction_of(metric, larger, training)
    check_data(data)
    seed = training.get("problem_seed", 0)
    split = check(_Holdout, {"holdout": holdout, "problem_seed": seed}, "")
    with naming("holdout"):
        rng = stream(split.problem_seed, "holdout")
        part = hold_out(data, split.holdout, rng, keep_owner=data.start_test is not None)
    plain = {key: plain_numbers([*values]) for key, values in grid.items()}
    trials = [dict(zip(plain, row, strict=True)) for row in product(*plain.values())]
    training = {"seeds": 2, **training}
    labelled = labelled_samplers(samplers)
    check_all(labelled, data, training, trials)
    check_measured(metric, part, {**training, **grid})
    training["until"] = None
    runs = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* runs diverged")  # a diverged trial is not chosen
        for label, sampler in labelled.items():
            for number, trial in enumerate(trials):
                measured = scores(train(part, sampler, **(training | trial)), metric)
                runs.append(measured.assign(sampler=label, trial=number))
    table = pd.concat(runs, ignore_index=True)
    table["score"] *= 1 if larger else -1
    table = score_trials(table, ["sampler", "trial"])
    table["score"] = table["score"].where(np.isfinite(table["score"])) * (1 if larger else -1)
    for position, key in enumerate(grid):
        chosen = [trials[number][key] for number in table["trial"]]
        column = pd.Series(chosen, dtype=object)
        if all(value is not None for value in chosen):  # pandas would turn None into NaN
            column = column.infer_objects()
        table.insert(1 + position, key, column)
    edges = [
        ", ".join(key for key in grid if row["chosen"] and is_at_edge(row[key], plain[key]))
        for row in table.to_dict("records")
    ]
    return table.drop(columns="trial").assign(at_edge=edges)


def direction_of(metric: str, larger: bool | None, training: Mapping[str, Any]) -> bool:
    """Return whether larger is better, before anything is trained."""
    metrics = training.get("metrics")
    directions = declared(metrics) if isinstance(metrics, Mapping) else {}
    return is_larger_better(metric, larger, directions)


def check_measured(metric: str, data: FederatedDataset, training: Mapping[str, Any]) -> None:
    """Refuse a metric of the package that this training does not measure."""
    metrics = training.get("metrics")
    if isinstance(metrics, Mapping) and metric in metrics:
        return
    if metric in MEASURES and not (training.get("by_client") or training.get("clients")):
        raise InputError(f"metric: {metric!r} is a measure of clients; add by_client=True")
    if metric in TESTED and not len(data.x_test):
        raise InputError(
            f"metric: the data have no test samples for {metric!r}; make some (test_share=0.2, "
            "x_test)"
        )
    if metric in TESTED and (metric == "test_loss") != (data.classes is None):
        fix = "labels; use 'accuracy'" if data.classes is not None else "numbers; use 'test_loss'"
        raise InputError(f"metric: {metric!r} is not measured where y are {fix}")
    if metric in TIMES and training.get("delays") is None:
        raise InputError(f"metric: {metric!r} needs delays; add them, such as 'synthetic'")


def warn_at_edge(trials: "pd.DataFrame") -> None:
    """Warn of chosen values that are the smallest or largest of the grid."""
    rows = trials[trials["at_edge"] != ""].to_dict("records")
    if best := ", ".join(f"{row['sampler']} ({row['at_edge']})" for row in rows):
        warnings.warn(
            f"the best values are at the edge of the grid: {best}; extend it", stacklevel=3
        )


class _Holdout(Strict):
    """Validation of the settings of a holdout."""

    holdout: Share
    problem_seed: Seed


def check_all(
    labelled: Mapping[str, Choice],
    data: FederatedDataset,
    training: dict[str, Any],
    trials: Sequence[dict[str, Any]] = ({},),
) -> None:
    """Check the settings of all samplers and trials before the first one trains."""
    for (label, sampler), trial in product(labelled.items(), trials):
        settings = {key: value for key, value in (training | trial).items() if key not in OTHERS}
        if "model" in settings:  # `train` reports a missing model
            with naming(label):
                checked_settings(data, sampler, **settings)


def labelled_samplers(
    samplers: "Sequence[Choice] | Mapping[str, Choice | pd.DataFrame]",
) -> dict[str, Choice]:
    """Return the samplers by label."""
    labelled: dict[str, Choice] = {}
    by_label = samplers if isinstance(samplers, Mapping) else with_labels(samplers)
    for label, each in by_label.items():
        if isinstance(each, pd.DataFrame):
            raise InputError(f"samplers: {label!r} is a history; pass only histories, or none")
        labelled[label] = each
    if not labelled:
        raise InputError("samplers: empty; pass at least one")
    return labelled
