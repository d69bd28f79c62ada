"""Training in Python: :func:`train` runs the code of the papers' experiments.

Settings have the names that they have in the papers' files, and are passed as keywords, dicts or
records.  The numbers are those of the pipeline::

    data = fs.load("mnist", fs.partitions.AllByDirichlet(alpha=0.1, clients=100), data="embedded")
    scheme = fs.scheme("clustered_similarity", m=10)
    history = fs.train(data, scheme, model="mlp", steps=50, batch=50, step=0.01, rounds=200)
"""

import inspect
import os
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from fedsampling.api.arguments import (
    Choice,
    Numbers,
    check_data,
    described,
    is_own,
    naming_keywords,
    own_network_of,
    plain_numbers,
    training_settings,
    with_defaults,
)
from fedsampling.api.keywords import TrainingSettings
from fedsampling.api.load import CACHE
from fedsampling.api.resuming import resumable
from fedsampling.base import memory
from fedsampling.base.errors import InputError
from fedsampling.base.lazy import pd, torch
from fedsampling.base.progress import rewritten_line
from fedsampling.base.records import check
from fedsampling.data.federated import FederatedDataset
from fedsampling.evidence.directions import DIRECTIONS, declared
from fedsampling.experiments.config import MIRROR_VARIABLE, Config
from fedsampling.experiments.networks.settings import Training
from fedsampling.experiments.networks.training import Additions, train_network
from fedsampling.experiments.simulations.simulation import RunContext
from fedsampling.learning.training.checkpoint import Checkpoint
from fedsampling.samplers.protocol.base import Scheme

if TYPE_CHECKING:
    from fedsampling.api.history import History
    from fedsampling.learning.models.own import OwnModel
    from fedsampling.learning.models.own_losses import Loss
    from fedsampling.learning.training.loop import Watch
    from fedsampling.learning.training.own_metrics import Metric

SETTINGS = "settings"  # in a history's attributes
LARGE_FEATURE = 1e4  # beyond which no usual step trains; standardised features are below 100


def train(
    data: FederatedDataset,
    scheme: Choice,
    *,
    model: "Choice | OwnModel",
    batch: int | None = None,
    step: float | None = None,
    rounds: int | None = None,
    steps: int | None = None,
    epochs: int | None = None,
    seeds: int | Sequence[int] = 1,
    evaluate_every: int = 1,
    loss: "Loss | None" = None,
    metrics: "Mapping[str, Metric] | None" = None,
    on_round: "Callable[[pd.DataFrame], bool | None] | None" = None,
    progress: bool | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    threads: int | None = None,
    checkpoint: str | Path | None = None,
    **settings: Unpack[TrainingSettings],
) -> "History":
    """Train a network; in every round, a sampler selects some of the clients.

    Parameters
    ----------
    data : FederatedDataset
    scheme : str, dict or Scheme
        Such as ``fs.scheme("md", m=10)``.
    model : str, dict or Model; or torch.nn.Module, or function that returns one
        Such as ``"mlp"`` or ``{"name": "mlp", "hidden": 100}``.  With a module, all seeds start
        from its parameters.  A function is called for each seed, after PyTorch's generator has been
        seeded.
    batch : int
        Size of a mini-batch; required.
    step : float
        Local learning rate; required.
    rounds : int
        Required.
    steps, epochs : int
        Local training of a selected client; exactly one of the two.
    seeds : int or sequence of int
        The seeds, or a number n for the seeds 0, …, n − 1; they are trained together.
    evaluate_every : int
        Rounds between measurements.
    loss : callable, optional
        ``loss(outputs, targets)`` returns one number per sample of a batch.  The default is cross
        entropy, or half the squared error for regression.
    metrics : mapping of str to callable, optional
        ``metric(model, x, y)`` returns a number at each measurement; ``model`` is the global model,
        ``x`` and ``y`` are tensors of all test samples.  To be compared, a function declares its
        direction: ``metric.smaller_is_better = True``.
    on_round : callable, optional
        Called before the first round and after each round, with the history so far, which has no
        ``selections()`` and no ``attrs``; returning True stops the training.
    progress : bool, optional
        Whether a line on stderr shows the finished rounds and the time left; by default, in
        terminals and notebooks.
    device : {"auto", "cpu", "cuda"}
    threads : int, optional
        PyTorch's threads during training; by default, the variable ``OMP_NUM_THREADS``, or 1.
        Small products are slower on several threads, above all while other programs run.
    checkpoint : str or Path, optional
        Folder in which progress is saved every minute and at Ctrl-C.  The same call resumes to the
        bit; once finished, it returns the saved history, except with `on_round`.  Settings, data,
        seeds, the package and your model, sampler, loss and metrics decide whether it is the same:
        your code with the functions, modules and values that it uses, also those imported in its
        body.  Files and environment variables that it reads, modules imported by a computed name,
        and other libraries' versions are not seen; use another folder if they change.
    **settings
        Other settings of the papers' experiments, with the same defaults: ``server_step``,
        ``server`` ("fedavgm", "fedadam" or "fedyogi"), ``momentum``, ``weight_decay``, ``clip``,
        ``prox``, ``decay``, ``schedule`` ("cosine", or a dict), ``delays`` and ``availability``
        (a name, a dict, or a table, file or array of your own), ``training_loss``, ``by_client``
        (each client's rounds, weight and final accuracy on its test samples; see
        :func:`fedsampling.by_client`), ``selections`` (false saves memory), …
        The default of ``inputs`` depends on the samples' type.  ``failures`` are clients that do
        not report after they were selected: a probability, one for each client, or a dict with
        ``probability``, ``reports`` (a table, file or array of the rounds in which a client
        reports), ``deadline`` (seconds that the server waits) and ``first`` (reports that end a
        round).

    Returns
    -------
    History
        A DataFrame with the columns ``seed``, ``at`` (the round), ``metric`` and ``value``:
        ``accuracy``, ``loss`` and others at each measurement, and each round's cost in bits and,
        with ``delays``, in seconds.  Its method
        :meth:`~fedsampling.api.history.History.selections` returns who was selected in each round,
        its weight, and whether it reported.
        ``attrs["settings"]`` has all settings, defaults included; a loss and a model of your own by
        name.

    Raises
    ------
    InputError
        If a setting or the sampler's result is invalid, or if the sampler or the model does not fit
        the data.

    Warns
    -----
    UserWarning
        If runs diverged: their values are NaN from the round in ``diverged_at`` on.

    Examples
    --------
    >>> import fedsampling as fs
    >>> data = fs.load("mnist", "by_digit", data="embedded")
    >>> work = {"model": "mlp", "steps": 2, "batch": 5, "step": 0.1, "rounds": 2}
    >>> history = fs.train(data, fs.scheme("md", m=5), **work)
    >>> history[history["metric"] == "accuracy"]["at"].tolist()
    [0, 1, 2]
    """
    from fedsampling.api.history import history_of
    from fedsampling.evidence.histories import NAMES
    from fedsampling.runs.environment import device as available_device

    check_data(data)
    keywords: dict[str, Any] = {"steps": steps, "epochs": epochs, **settings}
    keywords |= {"batch": batch, "step": step, "rounds": rounds, "evaluate_every": evaluate_every}
    keywords.setdefault("selections", True)
    checked = checked_settings(data, scheme, model=model, **keywords)
    directions = _directions(metrics, data)
    numbers = check(Numbers, {"seeds": plain_numbers(seeds), "threads": plain_numbers(threads)}, "")
    mirror = os.environ.get(MIRROR_VARIABLE) or None
    context = RunContext(CACHE, mirror, available_device(check(Config, {"device": device}, "")))
    source = "official" if data.inputs else "embedded"
    named, watch = checked.sampler.named, _watch_of(on_round, numbers.seeds)
    # Diverging runs overflow in every round; a single warning at the end reports them.
    with (
        naming_keywords(),
        _blaming(checked.sampler, watch),
        _with_threads(numbers.threads),
        np.errstate(over="ignore", invalid="ignore"),
    ):
        network = own_network_of(model, checked, data, loss)
        with rewritten_line(named, checked.rounds, progress) as tell:
            additions = Additions(
                progress=tell, network=network, metrics=dict(metrics or {}), watch=watch
            )

            def compute(saved: Checkpoint) -> list["pd.DataFrame"]:
                folders = replace(context, checkpoint=saved)
                return train_network(checked, data, source, numbers.seeds, folders, additions)

            users_code = [model if is_own(model) else None, loss, metrics]
            tables = resumable(
                checkpoint, checked, data, numbers.seeds, users_code, bool(watch), compute
            )
    _warn_of_divergence(dict(zip(numbers.seeds, tables, strict=True)), checked.work.step, data)
    history = history_of(tables, numbers.seeds, data.names)
    history.attrs[DIRECTIONS] = directions
    own_model = {"model": described(model)} if is_own(model) else {}
    history.attrs[SETTINGS] = {
        **with_defaults(checked),
        **own_model,
        "seeds": [*numbers.seeds],
        "loss": None if loss is None else getattr(loss, "__name__", type(loss).__name__),
        "metrics": [*(metrics or {})],
    }
    if data.names is not None and checked.evaluation.by_client:
        history.attrs[NAMES] = tuple(data.names)
    return history


def _directions(
    metrics: "Mapping[str, Metric] | None", data: FederatedDataset
) -> Mapping[str, bool]:
    """Check a user's metrics; return for those that declare it whether larger is better."""
    from fedsampling.evidence.histories import PREFIX

    if metrics is None:
        return {}
    if not isinstance(metrics, Mapping) or not all(isinstance(name, str) for name in metrics):
        raise InputError(f"metrics: {described(metrics)} is invalid; must map names to functions")
    directions = declared(metrics)
    if metrics and not len(data.x_test):
        raise InputError(
            "metrics: the data have no test samples to measure; make some (test_share=0.2, x_test)"
        )
    if hidden := [name for name in metrics if name.startswith(PREFIX)]:
        raise InputError(
            f"metrics: {hidden[0]!r} is invalid; {PREFIX!r} begins the metrics of single clients: "
            "use another name"
        )
    return directions


def checked_settings(
    data: FederatedDataset, scheme: Choice, *, model: "Choice | OwnModel", **settings: Any
) -> Training:
    """Check the arguments of :func:`train` that are settings of the papers' experiments."""
    settings = {"inputs": data.input_type} | settings
    # Missing ones are reported after unknown keys, such as `lr` for `step`.
    missing = [key for key in ("batch", "step", "rounds") if settings.get(key) is None]
    settings = {key: value for key, value in settings.items() if key not in missing}
    return training_settings(model, scheme, settings, inspect.signature(train).parameters)


def _watch_of(
    on_round: "Callable[[pd.DataFrame], bool | None] | None", seeds: Sequence[int]
) -> "Watch | None":
    """Wrap `on_round` as the function that the server loop calls after each round."""
    if on_round is None:
        return None
    if not callable(on_round):
        raise InputError(f"on_round: {described(on_round)} is invalid; must be a function")
    from fedsampling.api.history import history_of

    def watch(tables: list["pd.DataFrame"]) -> bool:
        stops = on_round(history_of(tables, seeds))  # a new table, which the function may change
        if stops is not None and not isinstance(stops, bool | np.bool_):
            raise InputError(f"on_round: returned {described(stops)}; must be True, False or None")
        return bool(stops)

    return watch


@contextmanager
def _with_threads(threads: int | None) -> Iterator[None]:
    """Set the number of PyTorch's threads, and restore it at the end."""
    before = torch.get_num_threads()
    default = before if "OMP_NUM_THREADS" in os.environ else 1
    torch.set_num_threads(threads or default)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _warn_of_divergence(
    tables: Mapping[int, "pd.DataFrame"], step: float, data: FederatedDataset
) -> None:
    """Warn of the seeds whose models diverged, with the rounds and the probable cause."""
    ends = {seed: table[table["metric"] == "diverged_at"] for seed, table in tables.items()}
    rounds = {seed: int(rows["value"].iloc[0]) for seed, rows in ends.items()}
    if lost := [f"seed {seed} after round {end}" for seed, end in rounds.items() if end >= 0]:
        tail = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
        fix = f"use a smaller step than {step:g}"
        if data.input_type == "raw" and (largest := float(np.abs(data.x).max())) > LARGE_FEATURE:
            fix = f"features reach {largest:.0e}: scale them, such as to standard deviation 1"
        warnings.warn(
            f"{len(lost)} of {len(rounds)} runs diverged ({', '.join(lost[:5])}{tail}); "
            f"their later values are NaN; {fix}",
            stacklevel=3,
        )


@contextmanager
def _blaming(scheme: Scheme, watch: "Watch | None") -> Iterator[None]:
    """Report lack of memory, or an error in a user's sampler, in one line; not those of `watch`."""
    try:
        with memory.in_a_line():
            yield
    except InputError:
        raise
    except Exception as error:
        code = getattr(watch, "__code__", None)
        by_watch = any(frame.f_code is code for frame, _ in traceback.walk_tb(error.__traceback__))
        if by_watch or type(scheme).__module__.startswith("fedsampling."):
            raise
        raise InputError(
            f"scheme: {scheme.named}: {type(error).__name__}: {error}; "
            "fedsampling.check_sampler finds the cause"
        ) from error
