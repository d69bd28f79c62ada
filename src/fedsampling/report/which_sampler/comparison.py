"""All samplers by the information they need, their cost and their speed-up over MD sampling.

:func:`read` reads the comparison from the artefacts of the cross matrix; information and bias come
from the samplers' classes, so that a new sampler gets its row automatically.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import getattr_static
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedsampling.base.errors import InputError, nearest
from fedsampling.base.families import description
from fedsampling.base.files import read_record
from fedsampling.base.text import listed, show, show_interval
from fedsampling.experiments.papers import BENCH, CROSS_MATRIX, FULL, MEASURES, REFERENCE
from fedsampling.report.names import Name, display_name, in_words, is_shipped, references
from fedsampling.report.which_sampler.advice import RUNS_IN, Advice, Situation
from fedsampling.report.which_sampler.cells import Cell
from fedsampling.samplers.leaks import learned, secure_sums
from fedsampling.samplers.protocol.base import Scheme

# In place of a sampler's information: its settings decide and it has no runs; it needs none.
DEPENDS, NOTHING = "depends on settings", "nothing"
PLOT_ENDS = (0.4, 2.5)  # speed-ups at the ends of the plot of an interval
# Information that no practical server has: samplers that need it are not recommended.
IMPRACTICAL = frozenset({"labels", "optimum"})


@dataclass(frozen=True)
class SpeedUp:
    """Speed-up of a sampler over MD sampling: 2 means half the cost.

    The estimate with its 95 % interval is NaN if unknown, or if runs missed the target; then `note`
    is shown. `reached`: share of runs that reached the target, in [0, 1].
    """

    value: float
    low: float
    high: float
    rank: float | None = None
    note: str = "–"
    reached: float = 1.0

    @property
    def text(self) -> str:
        """The value, or the reason why it is missing."""
        return self.note if np.isnan(self.value) or self.value == 0 else show(self.value)

    @property
    def interval(self) -> str:
        """The 95 % interval; empty without a value."""
        missing = np.isnan(self.low) or self.value == 0
        return "" if missing else f"[{show(self.low)}, {show(self.high)}]"

    @property
    def missed(self) -> str:
        """Share of runs that missed the target, as text; empty if all reached it."""
        if self.reached == 1:
            return ""
        share = round(100 * (1 - self.reached))
        return f"{share or 'under 1'} % of runs missed"

    @property
    def positions(self) -> tuple[float, float, float] | None:
        """Ends and value in per cent of the plot's width, on a log scale with 1 in the middle."""
        if not self.interval:
            return None
        left, right = np.log(PLOT_ENDS)
        logs = np.log(np.maximum([self.low, self.value, self.high], PLOT_ENDS[0]))
        low, value, high = 100 * np.clip((logs - left) / (right - left), 0, 1)
        return round(low, 1), round(value, 1), round(high, 1)

    @property
    def side(self) -> str:
        """``+`` if the whole interval is above 1, ``−`` if below, else an empty string."""
        return "+" if self.low > 1 else "−" if self.high < 1 else ""


FASTEST = 4  # samplers of each measure in the plot of the front
UNKNOWN = SpeedUp(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Column:
    """A column of the comparison: a measure of cost over all datasets, or a dataset."""

    key: str
    title: str
    differ: str = ""  # how the clients of the dataset differ; empty for a column over all datasets


@dataclass(frozen=True)
class SamplerRow:
    """A sampler as a row of the comparison.

    `needs`: information that it needs with the settings of its runs, as in ``INFORMATION_COSTS``,
    :data:`NOTHING`, or :data:`DEPENDS`.
    `learned`, `secure_sums`: as in :mod:`fedsampling.samplers.leaks`.
    `unbiased`: ``yes``, ``no``, or a condition. `allows_absence`: whether clients may come and go.
    """

    name: str
    display: Name
    description: str
    source: str
    needs: tuple[str, ...]
    learned: str
    secure_sums: str
    unbiased: str
    allows_absence: bool
    by_user: bool
    speed_ups: Mapping[str, SpeedUp]

    @property
    def is_practical(self) -> bool:
        """Whether a server could use it instead of MD sampling."""
        return self.name not in (REFERENCE, FULL) and IMPRACTICAL.isdisjoint(self.needs)

    def speed_up(self, column: Column) -> SpeedUp:
        """Return the speed-up in a column."""
        return self.speed_ups.get(column.key, UNKNOWN)


@dataclass(frozen=True)
class Comparison:
    """All samplers, ranked by the measure `by`, in which `datasets` compares them.

    `badges`: why these runs are not evidence for the datasets' full size. `overall` has measures
    over all families. `sources` are the artefacts of the columns. From `speed_ups` of all samplers
    on all datasets :mod:`.advice` follows. `gain_from_tuning` of the learning rate is a sentence.
    `reruns`: the same for the other RUNS_IN, in their order; without rows if nothing was run.
    """

    by: str
    badges: tuple[str, ...]
    overall: tuple[Column, ...]
    datasets: tuple[Column, ...]
    rows: tuple[SamplerRow, ...]
    sources: tuple[str, str]
    speed_ups: pd.DataFrame
    gain_from_tuning: str = ""
    reruns: tuple[pd.DataFrame, ...] = ()

    def row(self, name: str) -> SamplerRow:
        """Return the row of a sampler."""
        return next(row for row in self.rows if row.name == name)

    @property
    def front(self) -> tuple[SamplerRow, ...]:
        """All clients, and for each measure over all families its four fastest samplers."""
        fastest = {FULL}
        for column in self.overall:
            practical = [
                row for row in self.rows if row.is_practical and column.key in row.speed_ups
            ]
            practical.sort(key=lambda row: -row.speed_up(column).value)
            fastest |= {row.name for row in practical[:FASTEST]}
        return tuple(row for row in self.rows if row.name in fastest and row.speed_ups)

    @property
    def by_users(self) -> tuple[SamplerRow, ...]:
        """The samplers that users added and that have runs."""
        return tuple(row for row in self.rows if row.by_user and row.speed_ups)

    def ranked(self, column: Column) -> int:
        """Return the number of samplers that have a rank in a column."""
        return sum(row.speed_up(column).rank is not None for row in self.rows)

    def datasets_on(self, side: str, row: SamplerRow) -> list[str]:
        """Return the datasets on which a sampler is faster (``+``) or slower (``−``) than MD."""
        return [column.title for column in self.datasets if row.speed_up(column).side == side]

    def advice(self, situation: Situation | None = None, unbiased: bool = False) -> Advice:
        """Apply the rule for advice in a situation, by default with everything known."""
        situation = situation or Situation()
        usable = [
            row.name
            for row in self.rows
            if row.is_practical
            and situation.allows(set(row.needs) - {NOTHING})
            and (not situation.away or row.allows_absence)
            and (not unbiased or row.unbiased == "yes")
        ]
        of_data = replace(situation, information=frozenset())
        if of_data not in self._cells:  # the chooser asks for each with 24 kinds of information
            self._cells[of_data] = Cell.of(of_data, self.speed_ups, *self.reruns)
        return self._cells[of_data].advise(usable, self.by)

    @cached_property
    def _cells(self) -> dict[Situation, Cell]:
        """The datasets of a situation with no information."""
        return {}

    @property
    def exceptions(self) -> dict[str, Advice]:
        """The advice on datasets by sizes and labels, where it is not MD, with everything known."""
        situations = [Situation(unequal=u, skewed=s) for u, s in product((False, True), repeat=2)]
        advice = {listed(situation.of_data): self.advice(situation) for situation in situations}
        return {words: each for words, each in advice.items() if each.recommended}

    def better_than_md(self, row: SamplerRow) -> list[str]:
        """Name the measures in which a sampler's interval over families is above 1."""
        return [f"in {c.title}" for c in self.overall if row.speed_up(c).side == "+"]


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
    columns = ("measure", "scheme", "speed_up", "low", "high", "rank", "reached", "runs", "needs")
    ranks = _table(folder, ranks_of, columns)
    columns = (
        "set",
        "title",
        "differ",
        "reached",
        "speed_up",
        "family",
        "away",
        "worlds",
        "runs_in",
    )
    every = _table(folder, matrix_of, columns)
    matrix, *reruns = (every[every["runs_in"] == runs] for runs in RUNS_IN)
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
        tuple(reruns),
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
        return SamplerRow(name, display, "", "", (DEPENDS,), "", "", "", False, False, speed_ups)
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
    is_pilot = "pilot" in str(worst["learning rate"])
    pilot = " (the pilot: the best of a coarse grid, in one run on another seed)" * is_pilot
    return (
        f"Tuning the learning rate can gain {more} than replacing MD sampling. MD needs {gain} "
        f"times the rounds of its best trial with {worst['learning rate']}{pilot}. Of the samplers "
        f"that select clients and ran on all {worst['families']} families of datasets, the fastest "
        f"is {display_name(best['scheme']).short}: {show(best['speed_up'])} times as fast as MD."
    )
