"""Lookup of many finished runs: each folder of runs is listed once.

:func:`fedsampling.runs.execute.locate` looks into every folder at every call, which processes that
still compute runs need.  After the runs, a paper has ten thousands of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from fedsampling.base import input_states
from fedsampling.runs import store
from fedsampling.runs.places import files_by_run, published_runs


class Finished:
    """The finished runs of this code in a store, and those of any code in shared folders."""

    def __init__(self, target: Path, shared: Sequence[Path]) -> None:
        self._target, self._shared = target, shared

    def find(self, run_hash: str, code: str) -> store.Result | None:
        """Return a run as :func:`fedsampling.runs.execute.locate` does; None if there is none."""
        for run in self._versions(self._target, code, run_hash):
            if not input_states.changed(run.metadata.get("read", {})):
                return run
        places = [(folder, key) for folder in self._shared for key in (code, "")]
        runs = (run for place in places for run in self._versions(*place, run_hash))
        return next(runs, None)

    def _versions(self, folder: Path, code: str, run_hash: str) -> Iterator[store.Result]:
        """Yield a run of a folder, as one version of the code computed it, or as any ("") did."""
        files, published = self._listed[folder]
        paths = [path for path in files.get(run_hash, ()) if path.stem.endswith(code)]
        for run in store.intact(paths, published.get(run_hash), run_hash):
            if not code or run.metadata["code"] == code:
                yield run

    @cached_property
    def _listed(self) -> Mapping[Path, tuple[Mapping[str, list[Path]], Mapping[str, Path]]]:
        folders = {self._target, *self._shared}
        return {folder: (files_by_run(folder), published_runs(folder)) for folder in folders}
