"""Comparing samplers in Python: :func:`compare`."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from fedsampling.api.arguments import (
    Choice,
    Numbers,
    check_data,
    plain_numbers,
)
from fedsampling.api.keywords import TrainingArguments
from fedsampling.api.train import train
from fedsampling.api.tune import (
    Grid,
    check_all,
    check_measured,
    direction_of,
    labelled_samplers,
    trials_of,
    warn_at_edge,
)
from fedsampling.base.errors import InputError, nearest
from fedsampling.base.lazy import pd
from fedsampling.base.records import check
from fedsampling.data.federated import FederatedDataset


def compare(
    samplers: "Sequence[Choice] | Mapping[str, Choice | pd.DataFrame]",
    data: FederatedDataset | None = None,
    *,
    metric: str = "accuracy",
    reference: str | None = None,
    larger: bool | None = None,
    tune: Grid | None = None,
    **training: Unpack[TrainingArguments],
) -> "pd.DataFrame":
    """Train with several samplers and rank them, with intervals and significance.

    Parameters
    ----------
    samplers : sequence, or mapping of str to sampler
        Samplers as in :func:`train`; or a mapping of labels to histories returned by
        :func:`train`, which are compared without further training.
    data : FederatedDataset
        Not used for histories.
    metric : str
        Metric to compare after the last round; with ``by_client=True`` also a measure of
        :func:`fedsampling.left_out`, such as ``"worst_accuracy"``.
    reference : str, optional
        Label of the sampler that the others are compared with; by default the first one.
    larger : bool, optional
        Whether larger is better.  By default as is known of the package's metrics, or as the
        function in `metrics` declares: ``brier.smaller_is_better = True``, or scikit-learn's
        ``greater_is_better``.
    tune : mapping of str to list, optional
        A grid, such as ``{"step": [0.01, 0.1, 1]}``: each sampler is trained with the values that
        :func:`fedsampling.tune` chooses for it, on a holdout and with two other seeds; `until`
        ends no trial.
    **training
        As in :func:`train`; the default of ``seeds`` is 5.

    Returns
    -------
    DataFrame
        See :func:`fedsampling.evidence.ranking.ranking`; the best first.  ``value`` has its own
        95 % interval.  ``difference`` from the reference is paired by seed and Holm-corrected;
        ``significance`` follows from it.  The range of the ``rank`` compares all pairs, so it can
        be wide for a sampler that is better than the reference.  With `tune`, also the chosen
        values, and ``at_edge``.

    Raises
    ------
    InputError
        As in :func:`train`, or if a metric or label is unknown.

    Examples
    --------
    >>> import fedsampling as fs
    >>> data = fs.load("mnist", "by_digit", data="embedded")
    >>> samplers = [fs.scheme("md", m=5), fs.scheme("uniform", m=5)]
    >>> work = {"model": "mlp", "steps": 2, "batch": 5, "step": 0.1, "rounds": 2}
    >>> table = fs.compare(samplers, data, seeds=3, **work)
    >>> sorted(table["sampler"])
    ['md', 'uniform']
    """
    from fedsampling.evidence.ranking import ranking
    from fedsampling.evidence.scores import last_values

    if isinstance(samplers, pd.DataFrame):
        raise InputError("samplers: is one history; pass several as a dict, {label: history}")
    if histories := _histories(samplers):
        if data is not None or training or tune:
            raise InputError("samplers: are histories; remove data and the training settings")
        return ranking(histories, metric, reference or next(iter(histories)), larger)
    labelled = labelled_samplers(samplers)
    first = reference or next(iter(labelled))
    if data is None:
        raise InputError("data: missing; pass a dataset, such as fedsampling.load('mnist', …)")
    if reference is not None and reference not in labelled:
        raise InputError(f"reference: {reference!r} is unknown; {nearest(reference, labelled)}")
    keywords: dict[str, Any] = {"seeds": 5, **training}
    larger = direction_of(metric, larger, keywords)
    check_data(data)
    tuned = tune if isinstance(tune, Mapping) else {}  # another grid is refused below
    check_measured(metric, data, {**keywords, **tuned})
    if tune is None:
        check_all(labelled, data, keywords)
    chosen: dict[str, dict[str, Any]] = {label: {} for label in labelled}
    if tune is not None:
        seeds = check(Numbers, {"seeds": plain_numbers(keywords["seeds"])}, "").seeds
        other_seeds = {"seeds": [max(seeds) + 1, max(seeds) + 2]}
        trials = trials_of(labelled, data, tune, metric, larger, **(keywords | other_seeds))
        warn_at_edge(trials)
        rows = trials[trials["chosen"]].set_index("sampler")[[*tune, "at_edge"]]
        chosen = {
            label: {key: plain_numbers(rows.at[label, key]) for key in tune} for label in labelled
        }
    trained: dict[str, pd.DataFrame] = {}
    for label, sampler in labelled.items():
        trained[label] = train(data, sampler, **(keywords | chosen[label]))
        last_values(trained[label], metric)  # the others do not train if it is missing
    table = ranking(trained, metric, first, larger)
    if tune is not None:
        attrs = table.attrs
        table = table.join(rows, on="sampler")
        table.attrs = {**attrs, "tuned": [*rows]}
    return table


def _histories(
    samplers: "Sequence[Choice] | Mapping[str, Choice | pd.DataFrame]",
) -> "dict[str, pd.DataFrame]":
    """Return the histories that are passed in place of samplers; none if some are samplers."""
    if not isinstance(samplers, Mapping):
        return {}
    histories = {key: each for key, each in samplers.items() if isinstance(each, pd.DataFrame)}
    return histories if len(histories) == len(samplers) else {}
