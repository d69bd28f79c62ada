"""Summaries: all runs of an experiment in one table, and its curves over seeds.

One Parquet file per experiment contains the rows of every run; curves are computed from them, so
that a summary cannot disagree with its runs.  Reading verifies digests of rows and metadata.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from fedsampling.base.arrays import Ints
from fedsampling.base.errors import CorruptError
from fedsampling.base.files import decoding, read_bytes, remove, write_text
from fedsampling.base.nested import merge
from fedsampling.evidence.selections import are_selections, selections
from fedsampling.evidence.statistics import half_width
from fedsampling.runs import noted_parquet, store

SUMMARY = "fedsampling.summary"  # kind of file
NAMES, NUMBERS = ["case", "sampler", "metric"], ["seed", "at"]  # all columns but ``value``
SELECTIONS = [
    *("case", "sampler", "seed", "round", "client", "weight", "reported", "seconds"),
]  # columns of a file of selections
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

Run = tuple[str, str, store.Result]  # with its case and sampler


@dataclass(frozen=True, eq=False)  # hashed by identity, so that papers can cache by summary
class Summary:
    """All runs of an experiment."""

    rows: pd.DataFrame  # columns ``case``, ``sampler``, ``seed``, ``at``, ``metric``, ``value``
    settings: Mapping[str, Any]  # the resolved experiment
    provenance: Mapping[str, Any]  # joined metadata of the runs; see :func:`provenance`
    # the provenance of each case
    by_case: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def only(self, cases: Collection[str]) -> "Summary":
        """Keep some cases; return the summary itself if it has none of these cases."""
        names = tuple(name for name in self.by_case if name in cases)
        if not names or names == tuple(self.settings["cases"]):
            return self
        if names not in self._parts:
            selected = {name: self.by_case[name] for name in names}
            self._parts[names] = Summary(
                self.rows[self.rows["case"].isin(names)],
                {**self.settings, "cases": {name: self.settings["cases"][name] for name in names}},
                {**self.provenance, **joined(selected.values())},
                selected,
            )
        return self._parts[names]

    @cached_property
    def _parts(self) -> dict[tuple[str, ...], "Summary"]:
        """Results of :meth:`only`: artefacts of the same cases share their curves."""
        return {}

    @cached_property
    def curves(self) -> pd.DataFrame:
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
        return curves.astype(dict.fromkeys(NAMES, "str")).assign(
            low=np.clip(centre - half, bottom, top), high=np.clip(centre + half, bottom, top)
        )

    @cached_property
    def categorised(self) -> pd.DataFrame:
        """The rows with categories in place of names, which pandas groups several times faster."""
        return self.rows.astype(dict.fromkeys(NAMES, "category"))

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
            at = self._at[chosen]
            chosen = chosen[(since <= at) & (at <= until)]
        return self.rows.take(chosen)

    @cached_property
    def _at(self) -> Ints:
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
        chosen = self.select(sampler, metric, case, since)
        if chosen.empty:
            raise KeyError(f"no {metric} of {sampler} in case {case}")
        return chosen.groupby("seed")["value"].mean(skipna=False)


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


def runs_of_manifest(
    manifest: Path, job: str, seeds: Mapping[str, int], stores: Sequence[Path]
) -> list[Run]:
    """Load the runs that a manifest lists, which must be exactly those in `seeds`, by hash."""
    try:
        digests = _digests_in(manifest, job, seeds)
        runs: dict[str, store.Result] = {}
        problems: list[str] = []
        block, case = manifest.with_suffix("").name, manifest.parent.parent.name
        for run, seed in seeds.items():
            others = False
            for result in store.versions(stores, run):
                if result.metadata["digest"] == digests[run]:
                    runs[run] = result
                    break
                others = True
            else:
                fault = "different from the manifest" if others else store.why_absent(stores, run)
                problems.append(
                    f"{block} of {case}/{manifest.parent.name}: run {run} (seed {seed}) is "
                    f"{fault}; run the same command to recompute it"
                )
        if problems:
            raise CorruptError(*problems)
    except CorruptError:
        remove(manifest)
        raise
    case, sampler = manifest.parent.parent.name, manifest.parent.name
    return [(case, sampler, result) for result in runs.values()]


def _digests_in(manifest: Path, job: str, seeds: Mapping[str, int]) -> dict[str, Any]:
    """Return the digests of a manifest's runs, by hash."""
    with decoding(manifest, "missing or corrupt", "run the same command to rebuild it"):
        content = json.loads(read_bytes(manifest))
        listed = [(run["hash"], run["seed"]) for run in content["runs"]]
        digests = {run["hash"]: run["digest"] for run in content["runs"]}
        if (content["job"], listed) == (job, list(seeds.items())):
            return digests
    raise CorruptError(
        f"{manifest}: must list exactly the {len(seeds)} runs of {job}; "
        "run the same command to rebuild it"
    )


def write(
    runs: Sequence[Run],
    settings: Mapping[str, Any],
    facts: Mapping[str, Any],
    out: Path,
    selected: Path | None = None,
) -> None:
    """Gather runs into one file, with the experiment's settings and the configuration's `facts`.

    Runs that recorded who was selected have these rows in the CSV file `selected`, if it is given.
    """
    metadata: dict[str, list[Mapping[str, Any]]] = {}
    for case, _, result in runs:
        metadata.setdefault(case, []).append(result.metadata)
    by_case = {case: provenance(runs) for case, runs in metadata.items()}
    rows = pd.concat([result.table for _, _, result in runs], ignore_index=True)
    lengths = [len(result.table) for _, _, result in runs]
    rows = rows.assign(
        case=pd.Categorical([case for case, _, _ in runs]).repeat(lengths),
        sampler=pd.Categorical([sampler for _, sampler, _ in runs]).repeat(lengths),
        seed=np.repeat([result.metadata["spec"]["seed"] for _, _, result in runs], lengths),
        metric=rows["metric"].astype("category"),
    )
    if (recorded := are_selections(rows)).any():
        if selected is not None:
            write_text(selected, selections(rows[recorded])[SELECTIONS].to_csv(index=False))
        rows = rows[~recorded].reset_index(drop=True)
        rows["metric"] = rows["metric"].cat.remove_unused_categories()
    table = pa.Table.from_pandas(rows, preserve_index=False)
    costs = {
        result.metadata["hash"]: (result.metadata["seconds"], result.metadata["device"])
        for _, _, result in runs
    }
    noted = {"settings": settings, "facts": dict(facts), "by_case": by_case, "costs": costs}
    noted_parquet.write(out, SUMMARY, table, json.dumps({**noted, "digest": digest(rows)}))


def load(path: Path) -> Summary:
    """Open and verify a summary."""
    with decoding(path, "missing or corrupt", "delete it and rerun the command"):
        table = noted_parquet.read(read_bytes(path))
        noted = noted_parquet.verified(table.schema, SUMMARY)
        rows = table.to_pandas()
        if digest(rows) != noted["digest"]:
            raise ValueError("rows differ from their digest")
        for name in NAMES:  # categories; ten times as fast as ``astype(str)``
            codes = rows[name].cat.codes.to_numpy()
            rows[name] = rows[name].cat.categories.array.take(codes)
        rows = rows.astype({**dict.fromkeys(NUMBERS, np.int64), "value": np.float64})
        by_case = noted["by_case"]
        record = {**joined(by_case.values()), **noted["facts"]}
        return Summary(rows, noted["settings"], record, by_case)


def read_notes(path: Path) -> tuple[dict[str, Any], dict[str, tuple[float, str | None]]]:
    """Read a summary's resolved experiment, and the seconds and the device of each run by hash."""
    with decoding(path, "missing or corrupt", "delete it and rerun the command"):
        noted = noted_parquet.verified(pq.read_schema(pa.BufferReader(read_bytes(path))), SUMMARY)
        costs = {name: (seconds, device) for name, (seconds, device) in noted["costs"].items()}
        return noted["settings"], costs


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


def provenance(metadata: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Join the metadata of runs: counts, sums, and every value that occurred."""
    return joined(
        {
            "runs": 1,
            "seeds": [run["spec"]["seed"]],
            "hashes": [run["hash"]],
            **{key: [] if run[key] is None else [str(run[key])] for key in VARYING},
            "versions": run["versions"],
            "seconds": run["seconds"],
            "peak_mb": run["peak_mb"],
            "started": run["started"],
            "finished": run["finished"],
            "inputs": run["inputs"],
            "unverified": run["unverified"] or _unverified_delays(run),
            "run_data": [run["spec"]["data"]],
        }
        for run in metadata
    )


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


def _unverified_delays(run: Mapping[str, Any]) -> bool:
    """Whether only this project has checked a file that a run's delays are drawn from."""
    delays = run["spec"].get("settings", run["spec"]).get("delays") or {}
    if run["spec"]["data"] != "official" or "name" not in delays:
        return False
    return _has_unverified_files(delays["name"])


@cache
def _has_unverified_files(delays: str) -> bool:
    from fedsampling.clients.delays import DelayModel
    from fedsampling.data.sources.sources import SOURCES

    read = DelayModel.member(delays).official
    return any(source.unverified for source in SOURCES.values() if source.dataset in read)
