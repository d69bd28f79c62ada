"""Trainings with a checkpoint: resume a stopped training, read a finished one."""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedsampling.api.arguments import described
from fedsampling.base.contents import content_of
from fedsampling.base.errors import InputError
from fedsampling.base.families import members_within
from fedsampling.base.files import check_writable, digest
from fedsampling.base.stopping import Stop, Stopped, stopping_on_signals
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.user_arrays import sha256_of
from fedsampling.experiments.fingerprints import fingerprint
from fedsampling.experiments.networks.settings import Training
from fedsampling.learning.training.checkpoint import NEVER, Checkpoint

if TYPE_CHECKING:
    import pandas as pd

CHECKPOINT_SECONDS = 60.0  # between two checkpoints
GRACE_SECONDS = 60.0  # seconds before a scheduler's time limit at which a training stops


def resumable(
    folder: str | Path | None,
    settings: Training,
    data: FederatedDataset,
    seeds: Sequence[int],
    users_code: Sequence[Any],
    is_watched: bool,
    compute: "Callable[[Checkpoint], list[pd.DataFrame]]",
) -> "list[pd.DataFrame]":
    """Train and save the tables of all seeds; resume a stopped training, read a finished one.

    `users_code`: objects that determine the results, besides the settings and the class of the
    sampler. `is_watched`: whether a callback may end the training; its tables are not saved.
    """
    if folder is None:
        return compute(NEVER)
    if not isinstance(folder, str | os.PathLike) or not os.fspath(folder):
        raise InputError(f"checkpoint: {described(folder)} is invalid; must be a folder")
    from fedsampling.runs import store

    folder = Path(folder).expanduser()
    check_writable(folder)
    code = fingerprint(Training.__module__, *sorted({m.code for m in members_within(settings)}))
    spec = settings.model_dump(mode="json")
    users_content = content_of([type(settings.sampler), *users_code])
    content = _digest(data)
    key = digest([spec, users_content, content, [*seeds], code])
    hashes = [digest([key, seed]) for seed in seeds]
    runs = [None if is_watched else store.find([folder], run, code) for run in hashes]
    if len(tables := [run.table for run in runs if run is not None]) == len(seeds):
        return tables
    is_main = threading.current_thread() is threading.main_thread()  # which alone gets signals
    with stopping_on_signals(GRACE_SECONDS) if is_main else nullcontext(Stop()) as stop:
        file = folder / "checkpoints" / f"{key}.npz"
        checkpoint = Checkpoint(file, key, CHECKPOINT_SECONDS, stop)
        try:
            tables = compute(checkpoint)
        except Stopped as stopped:
            line = f"{stopped}; the same call with checkpoint={str(folder)!r} resumes it"
            raise KeyboardInterrupt(line) from None
    if (own := users_code[0]) is not None:  # the settings have a model of the package in its place
        spec["model"] = {"users": getattr(own, "__qualname__", type(own).__qualname__)}
    spec["dataset"] = {"name": data.name, "clients": data.n_clients, "content": content}
    for run, seed, table in zip(hashes, seeds, tables, strict=True) if not is_watched else ():
        notes = {"hash": run, "code": code, "spec": {**spec, "seed": seed}}
        store.save(folder, table, notes)
    checkpoint.remove()
    return tables


def _digest(data: FederatedDataset) -> str:
    """Hash everything of a dataset that results depend on."""
    tests = () if data.start_test is None else (data.start_test,)
    arrays = (data.x, data.y, data.start, data.p, data.x_test, data.y_test, *tests)
    info = (data.info[name] for name in sorted(data.info))
    return sha256_of(*arrays, np.asarray(data.names or (), np.str_), *info)
