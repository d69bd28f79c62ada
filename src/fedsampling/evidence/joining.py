"""Join the runs of an experiment into the file of its summary."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from fedsampling.base.errors import CorruptError
from fedsampling.base.files import decoding, read_bytes, remove, write_text
from fedsampling.evidence.selections import are_selections, selections
from fedsampling.evidence.summaries import SUMMARY, VARYING, digest, joined
from fedsampling.runs import noted_parquet, store
from fedsampling.runs.rows import joined_rows

SELECTIONS = [
    *("case", "sampler", "seed", "round", "client", "weight", "reported", "seconds"),
]  # columns of a file of selections
Run = tuple[str, str, store.Result]  # with its case and sampler


def runs_of_manifest(
    manifest: Path, job: str, seeds: Mapping[str, int], stores: Sequence[Path]
) -> list[Run]:
    """Load the runs that a manifest lists, which must be exactly those in `seeds`, by hash."""
    case, sampler = manifest.parent.parent.name, manifest.parent.name
    place = f"{manifest.with_suffix('').name} of {case}/{sampler}"
    results: list[store.Result] = []
    problems: list[str] = []
    try:
        digests = _digests_in(manifest, job, seeds)
        for run, seed in seeds.items():
            try:
                results.append(_listed_version(run, digests[run], stores))
            except CorruptError as fault:
                problems.append(
                    f"{place}: run {run} (seed {seed}) is {fault}; run the same command to "
                    "recompute it"
                )
        if problems:
            raise CorruptError(*problems)
    except CorruptError:
        remove(manifest)
        raise
    return [(case, sampler, result) for result in results]


def _listed_version(run: str, digest: str, stores: Sequence[Path]) -> store.Result:
    """Return a run as the manifest lists it; the error says why there is none."""
    fault = ""
    for result in store.versions(stores, run):
        if result.metadata["digest"] == digest:
            return result
        fault = "different from the manifest"
    raise CorruptError(fault or store.why_absent(stores, run))


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
    every = joined_rows([result.rows for _, _, result in runs])
    lengths = [len(result.rows) for _, _, result in runs]
    metrics = pd.Index(every.names, dtype="str")
    rows = pd.DataFrame(
        {
            "at": every.at,
            "metric": pd.Categorical.from_codes(every.metric, metrics),
            "value": every.value,
            "case": pd.Categorical([case for case, _, _ in runs]).repeat(lengths),
            "sampler": pd.Categorical([sampler for _, sampler, _ in runs]).repeat(lengths),
            "seed": np.repeat([result.metadata["spec"]["seed"] for _, _, result in runs], lengths),
        }
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
