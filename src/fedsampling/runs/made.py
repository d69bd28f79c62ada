"""Records of what each step read, ``made/<step>.json`` in a results folder.

A step that has parts, such as the summaries and the drawings of a paper, has a record of each: the
inputs that were read (:mod:`fedsampling.base.inputs`), the runs that were looked for in the stores,
and a *generation*, the number of times that these changed.

Snakemake reruns a step if one of its parameters differs from that of the last call.  So the
parameter must be known before the step runs, and be the same at the next call.  The generation is:
if an input has changed since the step ran, the parameter counts one more, and so does the step.
"""

import hashlib
import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from fedsampling.base import input_states, inputs
from fedsampling.base.errors import InputError
from fedsampling.base.files import read_record, write_record
from fedsampling.runs.places import published_runs, stored_names

WHOLE = "step"  # the part of a step that has no parts
DAMAGED = "damaged"  # key of how many times results of a step were damaged
SAVED_EVERY_SECONDS = 20.0  # while a step with many results runs


@dataclass
class Made:
    """The record of a step.

    `stores`: the folders of finished runs that it may read. `folder`: that of its results.
    """

    path: Path
    stores: Collection[Path] = ()
    folder: Path = Path()
    content: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, stores: Collection[Path] = (), folder: Path = Path()) -> "Made":
        """Read a record; a missing or corrupt one is empty, so that everything is rebuilt."""
        content: dict[str, Any] = {}
        if path.is_file():
            with suppress(InputError):
                content = read_record(path)
        return cls(path, stores, folder, content)

    def __post_init__(self) -> None:
        self._generations: dict[str, int] = {}
        self._looked_for: dict[str, set[str]] = {}  # runs of each part since the last save
        self._saved = time.monotonic()

    def generation(self, part: str = WHOLE) -> int:
        """Return how often the inputs of a part have changed, including since the last record."""
        if part not in self._generations:
            self._generations[part] = self._generation(part)
        return self._generations[part]

    @property
    def generations(self) -> dict[str, int]:
        """The generation of each part whose inputs have ever changed, and :attr:`damages`."""
        counts = {part: self.generation(part) for part in self.content.get("parts", {})}
        return {part: count for part, count in {**counts, DAMAGED: self.damages}.items() if count}

    @cached_property
    def damages(self) -> int:
        """The number of times that a result's size differed from its record, including this call.

        Every call compares sizes, so nothing slower is compared. Snakemake notices missing files.
        """
        sizes = [
            (self.folder / name, size)
            for entry in self.content.get("results", {}).values()
            for name, size in entry.get("sizes", {}).items()
        ]
        is_damaged = any(path.is_file() and path.stat().st_size != size for path, size in sizes)
        return int(self.content.get(DAMAGED, 0)) + is_damaged

    def _generation(self, part: str) -> int:
        before = self.content.get("parts", {}).get(part)
        if not before:
            return 0
        is_changed = bool(input_states.changed(before["inputs"]))
        if not is_changed and before["runs"]:
            is_changed = before["state"] != self._state(before["runs"].split())
        return int(before["generation"]) + is_changed

    def note(self, part: str, record: inputs.Recording, *further: dict[str, str]) -> None:
        """Add inputs to the record of a part."""
        parts = self.content.setdefault("parts", {})
        before = parts.get(part, {})
        kept = before if before.get("generation") == self.generation(part) else {}
        read = inputs.merged(kept.get("inputs", {}), record.states(), *further)
        parts[part] = {"generation": self.generation(part), "inputs": read}
        parts[part] |= {name: kept.get(name, "") for name in ("runs", "state")}
        self._looked_for.setdefault(part, set()).update(record.runs)

    @contextmanager
    def making(self) -> Iterator[None]:
        """Record a step that has no parts, from beginning to end."""
        _ = self.generation(), self._names
        with inputs.recording() as record:
            yield
        self.note(WHOLE, record, inputs.loaded_code(), inputs.loaded_libraries())
        self.save()

    def save(self) -> None:
        """Write the record."""
        for part, runs in self._looked_for.items():
            if runs:
                entry = self.content["parts"][part]
                sorted_runs = sorted({*entry["runs"].split(), *runs})
                entry["runs"], entry["state"] = " ".join(sorted_runs), self._state(sorted_runs)
        self._looked_for.clear()
        write_record(self.path, self.content)
        self._saved = time.monotonic()

    def save_at_times(self) -> None:
        """Write the record unless that happened a moment ago; :meth:`save` must follow.

        A record has a megabyte, and a paper two hundred results. What a killed process has not
        recorded is made again.
        """
        if time.monotonic() - self._saved > SAVED_EVERY_SECONDS:
            self.save()

    def _state(self, hashes: Sequence[str]) -> str:
        """Digest which of these sorted runs are finished, and in which versions."""
        present: list[str] = []
        for names in self._names:
            present += chain.from_iterable(names[run] for run in hashes if run in names)
        return hashlib.sha256("\0".join(present).encode()).hexdigest()[:32]

    @cached_property
    def _names(self) -> list[Mapping[str, list[str]]]:
        """The files of each store by run, as of the first use: before the step reads them."""
        published = [{run: [run] for run in published_runs(store)} for store in self.stores]
        stored = [
            {run: sorted(names) for run, names in stored_names(store).items()}
            for store in self.stores
        ]
        return [*published, *stored]


def record_of_job(folder: Path, job: str) -> Path:
    """Return the record of what users' code in a job read; Snakemake deletes its manifest."""
    return folder / "made" / "runs" / f"{job}.json"


def generation_of(record: Path) -> int:
    """Return how often the inputs of a job's users' code changed, including since its record."""
    with suppress(OSError, ValueError):
        content = json.loads(record.read_text(encoding="utf-8"))
        return int(content["generation"]) + bool(input_states.changed(content["read"]))
    return 0
