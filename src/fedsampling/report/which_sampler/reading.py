"""Reads the comparison of all samplers from the artefacts of the cross matrix.

Information and bias come from the samplers' classes, so that a new sampler gets its row
automatically.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import getattr_static
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedsampling.base.errors import InputError, nearest
from fedsampling.base.families import description
from fedsampling.base.files import read_record
from fedsampling.base.text import show, show_interval
from fedsampling.experiments.cross_matrix import BENCH, CROSS_MATRIX, FULL, MEASURES, REFERENCE
from fedsampling.report.names import display_name, in_words, is_shipped, references
from fedsampling.report.which_sampler.advice import RUNS_IN
from fedsampling.report.which_sampler.comparison import (
    DEPENDS,
    NOTHING,
    UNKNOWN,
    Column,
    Comparison,
    SamplerRow,
    SpeedUp,
)
from fedsampling.samplers.leaks import learned, secure_sums
from fedsampling.samplers.protocol.base import Scheme

RANK_COLUMNS = (
    "measure", "scheme", "speed_up", "low", "high", "rank", "reached", "runs", "needs",
)  # fmt: skip
MATRIX_COLUMNS = (
    "set", "title", "differ", "reached", "speed_up", "family", "away", "worlds", "runs_in",
)  # fmt: skip


def read_comparisons(folder: Path) -> dict[str, Comparison]:
    """Read the comparison in each measure; leave out measures that were not drawn."""
    by_measure = {}
    for measure in MEASURES:
        with suppress(InputError):
            comparison = read(folder, measure)
            if measure in {column.key for column in comparison.overall}:
                by_measure[measure] = comparison
    return by_measure


def read(folder: Path, by: str = "rounds") -> Comparison:
    """Read the comparison of all samplers by one of MEASURES."""
    if by not in MEASURES:
        raise InputError(f"--by {by}: unknown measure; {nearest(by, MEASURES)}")
    ranks_of, matrix_of = sources = f"{BENCH}ranks", f"{BENCH}matrix_{by}"
    ranks = _table(folder, ranks_of, RANK_COLUMNS)
    all_runs = _table(folder, matrix_of, MATRIX_COLUMNS)
    matrix, *reruns = (all_runs[all_runs["runs_in"] == runs] for runs in RUNS_IN)
    datasets = matrix.drop_duplicates("set").to_dict("records")
    speed_ups: dict[str, dict[str, SpeedUp]] = {name: {} for name in Scheme.members()}
    for row in ranks.to_dict("records"):
        speed_ups.setdefault(row["scheme"], {})[row["measure"]] = _over_datasets(row)
    for row in matrix.to_dict("records"):
        speed_ups.setdefault(row["scheme"], {})[_column_key(row)] = _on_dataset(row)
    needs = ranks["needs"].astype("string").fillna("")
    needs_of_runs = {
        str(name): tuple(information.split()) or (NOTHING,)
        for name, information in zip(ranks["scheme"], needs, strict=True)
    }
    rows = [_row(name, by_column, needs_of_runs) for name, by_column in speed_ups.items()]
    rows.sort(key=lambda row: (row.speed_ups.get(by, UNKNOWN).rank or np.inf, row.name))
    return Comparison(
        by=by,
        badges=tuple(read_record(folder / ranks_of / "artefact.json").get("badges", ())),
        overall=tuple(Column(name, name) for name in MEASURES if name in set(ranks["measure"])),
        datasets=tuple(
            Column(_column_key(row), row["title"], "" if pd.isna(row["differ"]) else row["differ"])
            for row in datasets
        ),
        rows=tuple(rows),
        sources=sources,
        speed_ups=matrix,
        gain_from_tuning=_gain_from_tuning(_optional(folder, f"{BENCH}defaults"), ranks),
        reruns=tuple(reruns),
    )


def _optional(folder: Path, artefact: str) -> pd.DataFrame:
    """Read an artefact's data; the table is empty if nothing was drawn."""
    path = folder / artefact / f"{artefact}.csv"
    with suppress(pd.errors.EmptyDataError):
        return pd.read_csv(path) if path.is_file() else pd.DataFrame()
    return pd.DataFrame()


def _table(folder: Path, artefact: str, columns: Sequence[str]) -> pd.DataFrame:
    path = folder / artefact / f"{artefact}.csv"
    if not path.is_file():
        raise InputError(f"{path}: missing; run 'snakemake --cores 2 {CROSS_MATRIX}'")
    table = pd.read_csv(path)
    if missing := [name for name in columns if name not in table]:
        raise InputError(
            f"{path}: has no column '{missing[0]}' (an earlier version wrote it); "
            f"run 'snakemake --cores 2 {CROSS_MATRIX}'"
        )
    return table


def _column_key(row: Mapping[Any, Any]) -> str:
    return f"set {row['set']}"


def _over_datasets(row: Mapping[Any, Any]) -> SpeedUp:
    """Return the speed-up in a row of ``ranks``."""
    speed_up = SpeedUp(
        row["speed_up"],
        row["low"],
        row["high"],
        rank=None if pd.isna(row["rank"]) else row["rank"],
        note="missed",
        reached=row["reached"] / row["runs"],
    )
    if row["scheme"] != REFERENCE:
        return speed_up
    return replace(speed_up, value=np.nan, low=np.nan, high=np.nan, note="1 (reference)")


def _on_dataset(row: Mapping[Any, Any]) -> SpeedUp:
    """Return the speed-up in a row of a matrix."""
    return SpeedUp(
        row["speed_up"],
        row["speed_up_low"],
        row["speed_up_high"],
        note=f"{row['reached']} of {row['runs']}" if row["reached"] < row["runs"] else "–",
        reached=row["reached"] / row["runs"],
    )


def _row(
    name: str, speed_ups: Mapping[str, SpeedUp], needs_of_runs: Mapping[str, tuple[str, ...]]
) -> SamplerRow:
    member = _sampler_of(name)
    if member is None:
        return SamplerRow(
            name=name,
            display=display_name(name),
            description="",
            source="",
            needs=(DEPENDS,),
            learned="",
            secure_sums="",
            unbiased="",
            allows_absence=False,
            by_user=False,
            speed_ups=speed_ups,
        )
    declared = getattr_static(member, "needs")
    if isinstance(declared, property):
        needs = needs_of_runs.get(name, (DEPENDS,))
    else:
        needs = tuple(sorted(declared)) or (NOTHING,)
    return SamplerRow(
        name=name,
        display=display_name(name),
        description=description(member),
        source=references(member),
        needs=needs,
        learned=learned(member),
        secure_sums=secure_sums(member),
        unbiased=in_words(member, "unbiased"),
        allows_absence=member.intermittent,
        by_user=not is_shipped(name),
        speed_ups=speed_ups,
    )


def _sampler_of(entry: str) -> type[Scheme] | None:
    """Return the sampler of an entry: its name, or its name and settings; None if it is unknown."""
    for name, sampler in Scheme.members().items():
        if entry == name or entry.startswith(f"{name}-"):
            return sampler
    return None


def _gain_from_tuning(table: pd.DataFrame, ranks: pd.DataFrame) -> str:
    """Say what tuning MD's learning rate gains, compared with the best sampler over families."""
    others = ranks[(ranks["measure"] == "rounds") & ~ranks["scheme"].isin([REFERENCE, FULL])]
    others = others[others["rank"].notna()]  # run on all families
    if table.empty or others.empty:
        return ""
    best = others.sort_values("speed_up").iloc[-1]
    worst = table.sort_values("gain").iloc[-1]
    gain = show_interval(*worst[["gain", "low", "high"]])
    more = "more" if worst["gain"] > best["speed_up"] else "less"
    pilot = ""
    if "pilot" in str(worst["learning rate"]):
        pilot = " (the pilot: the best of a coarse grid, in one run on another seed)"
    fastest = display_name(best["scheme"]).short
    return (
        f"Tuning the learning rate can gain {more} than replacing MD sampling. MD costs {gain} "
        f"times the rounds of its best trial with {worst['learning rate']}{pilot}; "
        f"{worst['missed']} of {worst['runs']} runs miss the target and cost twice their rounds. "
        f"Of the samplers that select clients and ran on all {worst['families']} families of "
        f"datasets, the fastest is {fastest}: {show(best['speed_up'])} times as fast as MD."
    )
