"""Summaries: all runs of an experiment in one table, and its curves over seeds.

One Parquet file per experiment contains the rows of every run; curves are computed from them, so
that a summary cannot disagree with its runs.  Reading verifies digests of rows and metadata.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from fedsampling.base.arrays import Ints
from fedsampling.base.files import decoding, read_bytes
from fedsampling.base.nested import merge
from fedsampling.evidence.statistics import half_width
from fedsampling.runs import noted_parquet

SUMMARY = "fedsampling.summary"  # kind of file
NAMES, NUMBERS = ["case", "sampler", "metric"], ["seed", "at"]  # all columns but ``value``
KEYS = ["case", "sampler", "metric", "at"]
# Intervals of fewer seeds are useless: Student's factor is 13 for two seeds and 4 for three.
FEWEST_SEEDS = 3
# Metadata that may differ between runs: a summary keeps every value.
VARYING = ("code", "package", "commit", "python", "device")
# Bounds of each metric, on the package's scale.
BOUNDS = {
    "accuracy": (0.0, 1.0),
    **dict.fromkeys(("loss", "test_loss"), (0.0, np.inf)),
    **dict.fromkeys(("msd", "agent_distance", "data_distance"), (0.0, np.inf)),
}


@dataclass(frozen=True, eq=False)  # hashed by identity, so that papers can cache by summary
class Summary:
    """All runs of an experiment."""

    rows: pd.DataFrame  # columns ``case``, ``sampler``, ``seed``, ``at``, ``metric``, ``value``
    settings: Mapping[str, Any]  # the resolved experiment
    provenance: Mapping[str, Any]  # joined metadata of the runs; see :func:`provenance`
    # the provenance of each case
    by_case: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # columns of names as a file has them; a copy with other rows has none
    categories: dict[str, pd.Categorical] = field(default_factory=dict, init=False)

    def only(self, cases: Collection[str]) -> "Summary":
        """Keep some cases; return the summary itself if it has none of these cases."""
        names = tuple(name for name in self.by_case if name in cases)
        if not names or names == tuple(self.settings["cases"]):
            return self
        if names not in self._parts:
            selected = {name: self.by_case[name] for name in names}
            kept = self.categorised["case"].isin(names).to_numpy()
            part = Summary(
                self.rows[kept],
                {**self.settings, "cases": {name: self.settings["cases"][name] for name in names}},
                {**self.provenance, **joined(selected.values())},
                selected,
            )
            part.categories.update({key: self.categorised[key].array[kept] for key in NAMES})
            self._parts[names] = part
        return self._parts[names]

    def first_seeds(self, n: int) -> "Summary":
        """Keep the first `n` seeds; the provenance remains that of all runs."""
        seeds = self.settings["seeds"][:n]
        if len(seeds) == len(self.settings["seeds"]):
            return self
        kept = self.rows["seed"].isin(seeds).to_numpy()
        settings = {**self.settings, "seeds": seeds}
        part = Summary(self.rows[kept], settings, self.provenance, self.by_case)
        part.categories.update({key: self.categorised[key].array[kept] for key in NAMES})
        return part

    @cached_property
    def _parts(self) -> dict[tuple[str, ...], "Summary"]:
        """Results of :meth:`only`: artefacts of the same cases share their curves."""
        return {}

    @cached_property
    def curves(self) -> pd.DataFrame:
        """:attr:`categorised_curves` with names in place of categories."""
        return self.categorised_curves.astype(dict.fromkeys(NAMES, "str"))

    @cached_property
    def categorised_curves(self) -> pd.DataFrame:
        """Means over seeds with 95 % t-intervals: columns KEYS, ``mean``, ``low``, ``high``, ``n``.

        After a run diverges, the mean is NaN: the run is not dropped.  Fewer than
        :data:`FEWEST_SEEDS` seeds have no interval.  ``least`` and ``most`` are the smallest and
        the largest value of a seed.  Intervals are clipped to :func:`bounds_of` the metric.
        """
        grouped = self.categorised.groupby(KEYS, observed=True, sort=True)["value"]
        curves = pd.DataFrame(
            {
                "mean": grouped.mean(skipna=False),
                "sd": grouped.std(skipna=False),
                "n": grouped.size(),
                "least": grouped.min(),
                "most": grouped.max(),
            }
        ).reset_index()
        half = half_width(curves.pop("sd").where(curves["n"] >= FEWEST_SEEDS), curves["n"])
        bounds = [
            bounds_of(str(metric), part.to_numpy())
            for metric, part in curves.groupby("metric", observed=True)[["least", "most"]]
        ]
        bottom, top = np.reshape(bounds, (-1, 2))[curves["metric"].cat.codes].T
        centre = curves["mean"].to_numpy()
        return curves.assign(
            low=np.clip(centre - half, bottom, top), high=np.clip(centre + half, bottom, top)
        )

    @cached_property
    def categorised(self) -> pd.DataFrame:
        """The rows with categories in place of names, which pandas groups several times faster."""
        return self.rows.assign(**{name: self._categories(name) for name in NAMES})

    def _categories(self, column: str) -> pd.Categorical:
        """Return a column of names as categories, from those of the file if they are known."""
        if column not in self.categories:
            return pd.Categorical(self.rows[column])
        read = self.categories[column]
        return read.set_categories(sorted(read.remove_unused_categories().categories))

    @cached_property
    def metrics(self) -> frozenset[str]:
        """The metrics that were recorded."""
        return frozenset(metric for _, _, metric in self._positions)

    def select(
        self,
        sampler: str | Sequence[str] | None = None,
        metric: str | Sequence[str] | None = None,
        case: str | Sequence[str] | None = None,
        since: float = -np.inf,
        until: float = np.inf,
    ) -> pd.DataFrame:
        """Select rows by samplers, metrics and cases, with ``since ≤ at ≤ until``."""
        return self.rows.take(self._chosen(case, sampler, metric, since, until))

    def _chosen(
        self,
        case: str | Sequence[str] | None,
        sampler: str | Sequence[str] | None,
        metric: str | Sequence[str] | None,
        since: float,
        until: float,
    ) -> NDArray[np.intp]:
        """Return the positions of the rows of :meth:`select`."""
        if isinstance(case, str) and isinstance(sampler, str) and isinstance(metric, str):
            positions = self._positions.get((case, sampler, metric))
            parts = [] if positions is None else [positions]
        else:
            parts = [
                positions
                for key, positions in self._positions.items()
                if all(map(_matches, key, (case, sampler, metric)))
            ]
        chosen = np.sort(np.concatenate(parts)) if parts else np.array([], np.intp)
        if since > -np.inf or until < np.inf:
            at = self._rounds[chosen]
            chosen = chosen[(since <= at) & (at <= until)]
        return chosen

    @cached_property
    def _rounds(self) -> Ints:
        return self.rows["at"].to_numpy()

    @cached_property
    def _positions(self) -> Mapping[tuple[str, str, str], NDArray[np.intp]]:
        """Positions of the rows of each case, sampler and metric; a scan of all rows is slow."""
        if self.rows.empty:
            return {}
        groups = self.categorised.groupby(["case", "sampler", "metric"], observed=True, sort=False)
        return cast("Mapping[tuple[str, str, str], NDArray[np.intp]]", groups.indices)

    def setting(self, path: str, case: str = "base", sampler: str | None = None) -> Any:
        """Return a setting of a case, such as ``work.steps``, or of a sampler."""
        if sampler is not None:
            value = self.settings["samplers"][sampler]
        else:
            value = merge(self.settings["settings"], self.settings["cases"][case])
        for key in path.split("."):
            value = value[key]
        return value

    def per_seed(
        self, sampler: str, metric: str, case: str = "base", since: float = -np.inf
    ) -> pd.Series:
        """Average a metric over ``at >= since``: one value per seed, indexed by seed."""
        values = self.values(sampler, metric, case, since)
        if values.empty:
            raise KeyError(f"no {metric} of {sampler} in case {case}")
        return values.groupby(level="seed").mean(skipna=False)

    def values(
        self,
        sampler: str,
        metric: str,
        case: str = "base",
        since: float = -np.inf,
        until: float = np.inf,
    ) -> pd.Series:
        """Return a metric, ``value`` by ``seed``: as :meth:`select` without other columns."""
        chosen = self._chosen(case, sampler, metric, since, until)
        seeds = pd.Index(self.rows["seed"].to_numpy()[chosen], name="seed")
        return pd.Series(self.rows["value"].to_numpy()[chosen], seeds, name="value")


def bounds_of(metric: str, values: ArrayLike) -> tuple[float, float]:
    """Return the bounds of a metric; none if some values are beyond, as accuracies in per cent."""
    bottom, top = BOUNDS.get(metric, (-np.inf, np.inf))
    finite = np.asarray(values, np.float64)
    finite = finite[np.isfinite(finite)]
    is_within = not finite.size or (bottom <= finite.min() and finite.max() <= top)
    return (bottom, top) if is_within else (-np.inf, np.inf)


def _matches(value: str, options: str | Sequence[str] | None) -> bool:
    if options is None or isinstance(options, str):
        return options in (None, value)
    return value in options


def load(path: Path) -> Summary:
    """Open and verify a summary."""
    with _decoding(path):
        table = noted_parquet.read(read_bytes(path))
        noted = noted_parquet.verified(table.schema, SUMMARY)
        rows = table.to_pandas()
        if digest(rows) != noted["digest"]:
            raise ValueError("rows differ from their digest")
        categories = {name: rows[name].array for name in NAMES}
        for name, column in categories.items():  # ten times as fast as ``astype(str)``
            rows[name] = column.categories.array.take(column.codes)
        rows = rows.astype({**dict.fromkeys(NUMBERS, np.int64), "value": np.float64})
        by_case = noted["by_case"]
        record = {**joined(by_case.values()), **noted["facts"]}
        summary = Summary(rows, noted["settings"], record, by_case)
        summary.categories.update(categories)
        return summary


def read_notes(path: Path) -> tuple[dict[str, Any], dict[str, tuple[float, str | None]]]:
    """Read a summary's resolved experiment, and the seconds and the device of each run by hash."""
    with _decoding(path):
        noted = noted_parquet.verified(pq.read_schema(pa.BufferReader(read_bytes(path))), SUMMARY)
        costs = {name: (seconds, device) for name, (seconds, device) in noted["costs"].items()}
        return noted["settings"], costs


def _decoding(path: Path) -> AbstractContextManager[None]:
    draw_first = f"run 'fedsampling draw {path.parent.name}' first"
    return decoding(path, "corrupt", "delete it and rerun the command", draw_first)


def load_summaries(paper: str, experiments: Iterable[str], results: Path) -> dict[str, Summary]:
    """Load the summaries of some of a paper's experiments from a results folder."""
    folder = results / "summaries" / paper
    return {name: load(folder / f"{name}.parquet") for name in experiments}


def digest(rows: pd.DataFrame) -> str:
    """Return the SHA-256 of a summary's rows, for any order of columns and categories."""
    content = hashlib.sha256()
    for column in NAMES:
        codes, names = pd.factorize(rows[column])
        content.update(json.dumps([str(name) for name in names]).encode())
        content.update(codes.astype(np.int64).tobytes())
    for column in NUMBERS:
        content.update(rows[column].to_numpy(np.int64).tobytes())
    content.update(noted_parquet.as_written(rows["value"]))
    return content.hexdigest()


def joined(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Join the provenance of several groups of runs."""
    parts = list(parts)
    lists = ("seeds", "hashes", *VARYING, "run_data")
    return {
        "runs": sum(part["runs"] for part in parts),
        **{key: sorted({value for part in parts for value in part[key]}) for key in lists},
        "versions": {name: version for part in parts for name, version in part["versions"].items()},
        "seconds": round(sum(part["seconds"] for part in parts), 2),
        "peak_mb": max(part["peak_mb"] for part in parts),
        "started": min(part["started"] for part in parts),
        "finished": max(part["finished"] for part in parts),
        "inputs": {name: digest for part in parts for name, digest in part["inputs"].items()},
        "unverified": any(part["unverified"] for part in parts),
    }
