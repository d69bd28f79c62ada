"""Checkpoints: a job that is stopped at any moment resumes as if it had never stopped.

A checkpoint contains everything that later rounds depend on, and all measurements so far, in one
NPZ file that is replaced atomically.  Random numbers are keyed by round, so they need no state
(:mod:`fedsampling.base.streams`).  The file has a key for its runs and code, and a digest of its
content.  If its digest or its decoding fails, the job warns and starts from the beginning.  If it
cannot be read, the job ends and leaves it as it is.
"""

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.errors import CorruptError
from fedsampling.base.files import checked, decoding, remove, replacing
from fedsampling.base.stopping import Stopped
from fedsampling.learning.training.history import JobHistory, Rows


@dataclass(frozen=True)
class Snapshot:
    """The state of a job before a round, with the states of learner and sampler."""

    round: int
    history: JobHistory
    learner: Mapping[str, NDArray[Any]]
    sampler: Mapping[str, NDArray[Any]]


@dataclass(eq=False)
class Checkpoint:
    """Where and how often a job's progress is saved, and how long the job has taken so far."""

    path: Path | None  # the file; None saves nothing
    key: str = ""  # identifies the runs and the code
    seconds: float = 60.0  # time between two checkpoints
    stop: Callable[[], bool] = lambda: False  # returns whether the job should save and stop
    # When the job started for the first time: the file of a stopped job has it.
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    _seconds_before: float = 0.0  # that the job took before it was resumed
    _begin: float = field(default_factory=time.monotonic)
    _last: float = field(default_factory=time.monotonic)

    def seconds_so_far(self) -> float:
        """Return how long the job has run, with the time before it was resumed."""
        return self._seconds_before + time.monotonic() - self._begin

    def due(self) -> bool:
        """Return whether it is time to save."""
        if self.path is None:
            return False
        return self.stop() or time.monotonic() - self._last >= self.seconds

    def save(self, progress: Snapshot) -> None:
        """Replace the file."""
        assert self.path is not None
        checked(self.path).parent.mkdir(parents=True, exist_ok=True)
        arrays = {
            "diverged_at": progress.history.diverged_at,
            **_pack("measured", progress.history.measured),
            **_pack("charged", progress.history.charged),
            **{f"learner/{name}": value for name, value in progress.learner.items()},
            **{f"sampler/{name}": value for name, value in progress.sampler.items()},
        }
        header = {
            "key": self.key,
            "round": progress.round,
            "started": self.started.isoformat(),
            "seconds": self.seconds_so_far(),
        }
        header["digest"] = _digest(header, arrays)
        arrays["header"] = np.array(json.dumps(header))
        with replacing(self.path) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        self._last = time.monotonic()
        if self.stop():
            raise Stopped(f"stopped before round {progress.round}")

    def load(self) -> Snapshot | None:
        """Return the job's progress, or None to start from the beginning."""
        if self.path is None or not os.path.lexists(self.path):
            return None
        try:
            return self._load(self.path)
        except CorruptError as error:
            print(error, file=sys.stderr, flush=True)
            return None

    def _load(self, path: Path) -> Snapshot:
        with decoding(path, "corrupt checkpoint", "the job starts from the beginning"):
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = json.loads(str(arrays.pop("header")))
            if header.pop("digest") != _digest(header, arrays) or header["key"] != self.key:
                raise ValueError("its digest does not match")
            if "started" in header:  # an older version did not save it
                self.started = datetime.fromisoformat(header["started"])
                self._seconds_before = float(header["seconds"])
            return Snapshot(
                int(header["round"]),
                JobHistory(
                    _unpack("measured", arrays), _unpack("charged", arrays), arrays["diverged_at"]
                ),
                _below("learner/", arrays),
                _below("sampler/", arrays),
            )

    def remove(self) -> None:
        """Delete the file of a finished job, and temporary files of interrupted writes."""
        if self.path is not None:
            for path in (self.path, *self.path.parent.glob(f".{self.path.name}.*")):
                remove(path)


NEVER = Checkpoint(None)


def _digest(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of a checkpoint's content: names, types, shapes and values."""
    content = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        content.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        content.update(array.tobytes())
    return content.hexdigest()


def _pack(name: str, rows: Rows) -> dict[str, NDArray[Any]]:
    return {
        f"{name}/at": np.array([at for at, _, _ in rows], np.int64),
        f"{name}/metric": np.array([metric for _, metric, _ in rows], np.str_),
        f"{name}/value": np.array([value for _, _, value in rows], np.float64),
    }


def _unpack(name: str, arrays: Mapping[str, NDArray[Any]]) -> Rows:
    columns = (arrays[f"{name}/{column}"] for column in ("at", "metric", "value"))
    return [(int(at), str(metric), value) for at, metric, value in zip(*columns, strict=True)]


def _below(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {
        name.removeprefix(prefix): value
        for name, value in arrays.items()
        if name.startswith(prefix)
    }
