"""Compare two results folders: the tables and runs of every artefact, and every claim.

    python benchmarks/compare_results.py BEFORE AFTER [--tolerance 1e-9] [--except reason,ours]

Prints one line for each difference, and exits with 1 if there is any.  Figures are compared by
their tables.
"""

import argparse
import json
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def differences(
    before: Path, after: Path, tolerance: float = 0.0, ignored: Collection[str] = ()
) -> Iterator[str]:
    """Yield one line for each difference between two results folders.

    Parameters
    ----------
    tolerance : float
        Relative, of numbers in tables.
    ignored : collection of str
        Fields of claims that may differ, such as ``reason``.
    """

    def table(path: Path, new_path: Path) -> Iterator[str]:
        yield from table_differences(pd.read_csv(path), pd.read_csv(new_path), tolerance)

    def runs(path: Path, new_path: Path) -> Iterator[str]:
        for key in ("runs", "spec_digest"):
            old, new = (_read(file)["provenance"][key] for file in (path, new_path))
            if old != new:
                yield f"{key}: {old} → {new}"

    def claims(path: Path, new_path: Path) -> Iterator[str]:
        old, new = (
            {claim["id"]: claim for claim in _read(file)["claims"]} for file in (path, new_path)
        )
        for key in sorted(old.keys() | new.keys()):
            first, second = old.get(key, {}), new.get(key, {})
            for field in sorted((first.keys() | second.keys()) - set(ignored)):
                if first.get(field) != second.get(field):
                    yield f"{key}.{field}: {first.get(field)} → {second.get(field)}"

    kinds: dict[str, Callable[[Path, Path], Iterator[str]]] = {
        "artefacts/*/*/*.csv": table,
        "artefacts/*/*/artefact.json": runs,
        "claims/*.json": claims,
    }
    for pattern, compare in kinds.items():
        old, new = (
            {path.relative_to(root) for path in root.glob(pattern)} for root in (before, after)
        )
        for name in sorted(old | new):
            if name not in old & new:
                yield f"{name}: only in {before if name in old else after}"
            else:
                yield from (f"{name}: {line}" for line in compare(before / name, after / name))


def table_differences(old: pd.DataFrame, new: pd.DataFrame, tolerance: float) -> Iterator[str]:
    """Yield one line for each column of two tables that differs; NaN equals NaN."""
    if list(old.columns) != list(new.columns) or len(old) != len(new):
        yield f"{len(old)} rows of {[*old.columns]} → {len(new)} rows of {[*new.columns]}"
        return
    for name in old.columns:
        first, second = old[name], new[name]
        if all(pd.api.types.is_numeric_dtype(column) for column in (first, second)):
            equal = np.isclose(first, second, rtol=tolerance, atol=0, equal_nan=True)
        else:
            equal = (first == second) | (first.isna() & second.isna())
        if not np.all(equal):
            row = int(np.flatnonzero(~np.asarray(equal))[0])
            yield f"{name}, row {row}: {first[row]} → {second[row]} ({(~equal).sum()} in all)"


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--tolerance", type=float, default=0.0, help="relative, of numbers")
    parser.add_argument("--except", dest="ignored", default="", help="fields of claims, by comma")
    arguments = parser.parse_args()
    names = [name for name in arguments.ignored.split(",") if name]
    lines = [*differences(arguments.before, arguments.after, arguments.tolerance, names)]
    print(*lines or ["equal: tables, runs and claims"], sep="\n")
    sys.exit(bool(lines))
