"""Reads the comparison of all samplers from the artefacts of the cross matrix.

Information and bias come from the samplers' classes, so that a new sampler gets its row
automatically.
"""

from collections.abc import Iterable, Mapping, Sequence
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
from fedsampling.evidence.statistics import show, show_interval
from fedsampling.experiments.papers import BENCH, CLIENTS, CROSS_MATRIX, FULL, MEASURES, REFERENCE
from fedsampling.report.content import Chapter
from fedsampling.report.names import display_name, in_words, references
from fedsampling.report.which_sampler.comparison import (
    DEPENDS,
    NOTHING,
    UNKNOWN,
    Column,
    Comparison,
    SamplerRow,
    SpeedUp,
)
from fedsampling.samplers.scheme import Scheme


def comparisons(folder: Path) -> dict[str, Comparison]:
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
    columns = ("measure", "scheme", "speed_up", "low", "high", "rank", "reached", "runs", "needs")
    ranks = _table(folder, ranks_of, columns)
    columns = ("set", "title", "differ", "reached", "speed_up", "family", "away", "worlds", "fresh")
    matrix = _table(folder, matrix_of, columns)
    matrix, fresh = matrix[~matrix["fresh"]], matrix[matrix["fresh"]]
    datasets = matrix.drop_duplicates("set").to_dict("records")
    speed_ups: dict[str, dict[str, SpeedUp]] = {name: {} for name in Scheme.members()}
    for row in ranks.to_dict("records"):
        speed_ups.setdefault(row["scheme"], {})[row["measure"]] = _over_datasets(row)
    for row in matrix.to_dict("records"):
        speed_ups.setdefault(row["scheme"], {})[_column_key(row)] = _on_dataset(row)
    texts = ranks["needs"].astype("string").fillna("")
    needs_of_runs = {
        str(name): tuple(text.split()) or (NOTHING,)
        for name, text in zip(ranks["scheme"], texts, strict=True)
    }
    rows = [_row(name, by_column, needs_of_runs) for name, by_column in speed_ups.items()]
    rows.sort(key=lambda row: (row.speed_ups.get(by, UNKNOWN).rank or np.inf, row.name))
    return Comparison(
        by,
        tuple(read_record(folder / ranks_of / "artefact.json").get("badges", ())),
        tuple(Column(name, name) for name in MEASURES if name in set(ranks["measure"])),
        tuple(
            Column(_column_key(row), row["title"], "" if pd.isna(row["differ"]) else row["differ"])
            for row in datasets
        ),
        tuple(rows),
        sources,
        matrix,
        _gain_from_tuning(_optional(folder, f"{BENCH}defaults"), ranks),
        fresh if len(fresh) else None,
        _optional(folder, f"{BENCH}reruns"),
    )


def _optional(folder: Path, artefact: str) -> pd.DataFrame:
    """Read an artefact's data; an empty table if it was not drawn, or is empty."""
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
        None if pd.isna(row["rank"]) else row["rank"],
        "missed",
        row["reached"] / row["runs"],
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
    # The name of an entry with other settings is its sampler's name and these settings.
    member = next(
        (
            member
            for key, member in Scheme.members().items()
            if name == key or name.startswith(f"{key}-")
        ),
        None,
    )
    if member is None:
        display = display_name(name)
        return SamplerRow(name, display, "", "", (DEPENDS,), "", False, False, speed_ups)
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
        unbiased=in_words(member, "unbiased"),
        allows_absence=member.intermittent,
        by_user=not member.__module__.startswith("fedsampling."),
        speed_ups=speed_ups,
    )


def _gain_from_tuning(table: pd.DataFrame, ranks: pd.DataFrame) -> str:
    """Say what tuning MD's learning rate gains, compared with the best sampler over families."""
    if table.empty:
        return ""
    others = ranks[(ranks["measure"] == "rounds") & ~ranks["scheme"].isin([REFERENCE, FULL])]
    others = others[others["rank"].notna()]  # run on all families
    best = others.sort_values("speed_up").iloc[-1]
    worst = table.sort_values("gain").iloc[-1]
    gain = show_interval(*worst[["gain", "low", "high"]])
    more = "more" if worst["gain"] > best["speed_up"] else "less"
    return (
        f"Tuning the learning rate can gain {more} than replacing MD sampling: with "
        f"{worst['learning rate']}, MD needs {gain} "
        f"times the rounds of its best trial. The fastest sampler that selects clients and ran on "
        f"all {worst['families']} families of datasets, {display_name(best['scheme']).short}, "
        f"is {show(best['speed_up'])} times as fast as MD."
    )


FINDINGS = "left_out"  # artefact whose notes are the findings
CLIENT_MEASURES = ("participation", "relative_weight", "accuracy")
RUN_MEASURES = ("never_selected", "worst_accuracy")
COLUMNS = {"sampler", "client", "samples", "expected", *CLIENT_MEASURES, *RUN_MEASURES}
DIGITS = 3


def read_clients(folder: Path, chapter: Chapter) -> dict[str, list[Any]]:
    """Return the ``datasets`` whose clients were recorded and drawn, and the ``findings``.

    Of a dataset, for the page's script: ``note`` on the samples with which accuracy is measured and
    on clients that are never available; ``names`` of the clients, or their numbers; ``expected``,
    MD's participation rate of each client; ``samplers`` by key, with ``label``, a number for each
    of RUN_MEASURES, and for each of CLIENT_MEASURES one number of each client, or None.
    """
    datasets = []
    for exhibit in chapter.exhibits:
        if not exhibit.artefact.startswith(CLIENTS):
            continue
        table = pd.read_csv(folder / exhibit.artefact / exhibit.files["csv"])
        if table.empty or not set(table.columns) >= COLUMNS:
            continue
        parts = {str(name): part for name, part in table.groupby("sampler", sort=False)}
        first = next(iter(parts.values()))
        datasets.append(
            {
                "key": exhibit.artefact,
                "title": exhibit.title,
                "note": " ".join(exhibit.notes),
                "names": first["client"].tolist(),
                "samples": _rounded(first["samples"]),
                "expected": _rounded(first["expected"]),
                "samplers": {
                    name: {
                        "label": display_name(name).title,
                        **{measure: _rounded(part[measure])[0] for measure in RUN_MEASURES},
                        **{measure: _rounded(part[measure]) for measure in CLIENT_MEASURES},
                    }
                    for name, part in parts.items()
                },
            }
        )
    findings = [
        note
        for exhibit in chapter.exhibits
        if exhibit.artefact == FINDINGS
        for note in exhibit.notes
        if "asterisk" not in note  # of its table, which is not on this page
    ]
    return {"datasets": datasets, "findings": findings}


def _rounded(values: Iterable[float]) -> list[float | None]:
    return [None if pd.isna(value) else float(f"{value:.{DIGITS}g}") for value in values]
