"""Which sampler? All samplers by the information they need, their cost and their speed-up.

The information that a sampler needs comes from its class, its speed-up over MD sampling from the
cross matrix's CSV files.  The report shows this comparison as a page, ``fedsampling rank`` prints
it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import getattr_static
from pathlib import Path

import numpy as np
import pandas as pd

from fedsampling.base.catalogue import description
from fedsampling.base.errors import InputError, nearest
from fedsampling.base.files import read_record
from fedsampling.evidence.numbers import listed, show
from fedsampling.evidence.statistics import LEVEL
from fedsampling.experiments.cross_matrix import BENCH, LARGER, MEASURES, PAPER, REFERENCE
from fedsampling.report.names import Name
from fedsampling.report.names import name as display_name
from fedsampling.report.schemes import COSTS, said, section
from fedsampling.samplers.scheme import Scheme

DEPENDS = "depends on settings"
NOTHING = "nothing"
STRIP_ENDS = (0.4, 2.5)  # speed-ups at the ends of the interval plot
EVERYBODY = "full"  # full participation: the upper limit in rounds, selects no clients
# Information that no practical server has: samplers that need it are not recommended.
IMPRACTICAL = frozenset({"labels", "optimum"})


@dataclass(frozen=True)
class Gain:
    """Speed-up of a sampler over MD sampling: 2 means half the cost.

    Parameters
    ----------
    value, low, high : float
        Estimate and 95 % interval; NaN if unknown, or if runs missed the target.
    rank : float or None
        Rank among all samplers, over all datasets.
    note : str
        Shown in place of a missing value.
    reached : float
        Share of runs that reached the target, in [0, 1].
    """

    value: float
    low: float
    high: float
    rank: float | None = None
    note: str = "–"
    reached: float = 1.0

    @property
    def number(self) -> str:
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
        return "" if self.reached == 1 else f"{100 * (1 - self.reached):.0f} % of runs missed"

    @property
    def strip(self) -> tuple[float, float, float] | None:
        """Positions of low end, value and high end, in per cent of the plot; None without a value.

        The scale is logarithmic, from STRIP_ENDS[0] to STRIP_ENDS[1], with 1 in the middle.
        """
        if not self.interval:
            return None
        ends = np.log(STRIP_ENDS)
        numbers = np.log(np.maximum([self.low, self.value, self.high], STRIP_ENDS[0]))
        low, value, high = np.clip((numbers - ends[0]) / (ends[1] - ends[0]), 0, 1)
        return round(100 * low, 1), round(100 * value, 1), round(100 * high, 1)

    @property
    def way(self) -> str:
        """Return ``+`` if the whole interval is above 1, ``−`` if below, else an empty string."""
        return "+" if self.low > 1 else "−" if self.high < 1 else ""


UNKNOWN = Gain(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Column:
    """A column of the comparison: a measure over all datasets, or on one dataset.

    Parameters
    ----------
    key, title : str
    differ : str
        How the clients of the dataset differ; empty for a column over all datasets.
    """

    key: str
    title: str
    differ: str = ""


@dataclass(frozen=True)
class Choice:
    """A sampler as a row of the comparison.

    Parameters
    ----------
    name : str
        Key for YAML.
    display : Name
        Name for readers.
    what, source : str
        Description of the sampler in one sentence; the paper and section that define it.
    observes : tuple of str
        Information that it needs, with the settings of its runs: keys of ``COSTS``,
        :data:`NOTHING`, or :data:`DEPENDS` if it has no runs.
    unbiased : str
        ``yes``, ``no``, or a condition.
    comes_and_goes : bool
        Whether clients may come and go.
    needs_delays : bool
        Whether it needs the clients' delays; without runs, in any of its settings.
    own : bool
        Whether a user added it.
    gains : mapping of str to Gain
        By the columns' keys.
    """

    name: str
    display: Name
    what: str
    source: str
    observes: tuple[str, ...]
    unbiased: str
    comes_and_goes: bool
    needs_delays: bool
    own: bool
    gains: Mapping[str, Gain]

    @property
    def needs(self) -> str:
        """The information it needs, in words."""
        words = {
            NOTHING: "no information",
            DEPENDS: "information that depends on its settings",
            "work_losses": "losses that clients send with their updates",
            "batch_losses": "losses on a mini-batch",
            "losses": "losses on all samples",
            "updates": "clients' updates",
        }
        return listed([words.get(name, name.replace("_", " ")) for name in self.observes])

    def gain(self, column: Column) -> Gain:
        """Return the gain in a column."""
        return self.gains.get(column.key, UNKNOWN)


@dataclass(frozen=True)
class Advice:
    """The recommended samplers by one measure.

    Parameters
    ----------
    measure : str
        ``rounds``, ``bits`` or ``seconds``.
    best : tuple of Choice
        Samplers that are significantly better than MD sampling, the best first; may be empty.
    """

    measure: str
    best: tuple[Choice, ...]


@dataclass(frozen=True)
class Choices:
    """All samplers, ranked.

    Parameters
    ----------
    by : str
        The measure that ranks the samplers, and by which `sets` compares them.
    badges : tuple of str
        Why these runs are not evidence for the datasets' full size.
    overall, sets : tuple of Column
        Columns over all datasets, and for each dataset.
    rows : tuple of Choice
    sources : tuple of str
        The artefacts behind the columns of `overall` and of `sets`.
    across : mapping of str to tuple of str, optional
        By cost, the samplers that differ significantly from MD sampling over the datasets, after
        correction for the number of samplers; None if this was not tested.
    """

    by: str
    badges: tuple[str, ...]
    overall: tuple[Column, ...]
    sets: tuple[Column, ...]
    rows: tuple[Choice, ...]
    sources: tuple[str, str]
    across: Mapping[str, tuple[str, ...]] | None = None

    def helps(self, row: Choice) -> list[str]:
        """Say where a sampler is significantly better than MD sampling: costs, then datasets."""
        costs = [f"in {each.title}" for each in self.overall if row.gain(each).way == "+"]
        sets = [
            f"if clients differ in {each.differ}" if each.differ else f"on {each.title}"
            for each in self.sets
            if row.gain(each).way == "+"
        ]
        return [*costs, *sets]

    def advice(self) -> tuple[Advice, ...]:
        """Recommend samplers by each measure.

        A recommended sampler was run on every dataset, reached every target, selects clients, and
        needs no information that is unavailable to servers.  Its whole interval is above 1.
        """
        return tuple(
            Advice(
                column.key,
                tuple(
                    sorted(
                        (row for row in self.rows if _practical(row) and _better(row.gain(column))),
                        key=lambda row: row.gain(column).rank or np.inf,
                    )
                ),
            )
            for column in self.overall
        )

    def leaders(self) -> dict[str, list[Column]]:
        """Return the costs that each recommended sampler saves most, by its name."""
        leaders: dict[str, list[Column]] = {}
        for advice, column in zip(self.advice(), self.overall, strict=True):
            leaders.setdefault(advice.best[0].name if advice.best else REFERENCE, []).append(column)
        return leaders

    @property
    def averaged(self) -> int:
        """Number of datasets in the columns over all datasets: those whose clients stay."""
        return sum("presence" not in column.differ for column in self.sets)

    def best_gains(self) -> list[str]:
        """Return the largest speed-up by each cost, of the samplers that are recommended."""
        pairs = zip(self.advice(), self.overall, strict=True)
        return [advice.best[0].gain(column).number for advice, column in pairs if advice.best]

    def on_other_datasets(self) -> str:
        """Say which samplers are significantly faster over datasets; empty if not tested."""
        if self.across is None:
            return ""
        faster = {
            row.display.title: None
            for column in self.overall
            for row in self.rows
            if row.name in self.across.get(column.key, ())
            and _practical(row)
            and row.gain(column).value > 1
        }
        who = f"only {listed(list(faster))}" if faster else "no sampler"
        return (
            "The evidence is weaker for other datasets: tested across datasets, and corrected for "
            f"the number of samplers, {who} is significantly faster than MD sampling."
        )

    def row(self, name: str) -> Choice:
        """Return the row of a sampler."""
        return next(row for row in self.rows if row.name == name)

    def unreliable(self) -> list[tuple[Choice, Gain]]:
        """Return the samplers with runs that missed a target, the worst first."""
        if not self.overall:
            return []
        pairs = [(row, row.gain(self.overall[0])) for row in self.rows]
        return sorted((pair for pair in pairs if pair[1].missed), key=lambda pair: pair[1].reached)


def choices(folder: Path, by: str = "rounds") -> Choices:
    """Read the comparison of all samplers.

    Parameters
    ----------
    folder : Path
        Holds the cross matrix's artefacts.
    by : str
        One of MEASURES.

    Raises
    ------
    InputError
        If an artefact is missing or `by` is unknown.
    """
    if by not in MEASURES:
        raise InputError(f"--by {by}: unknown measure; {nearest(by, MEASURES)}")
    together, each_set = f"{size(folder)}ranks", f"{size(folder)}matrix_{by}"
    ranks = _table(
        folder,
        together,
        ("measure", "scheme", "speed_up", "low", "high", "rank", "reached", "runs"),
    )
    matrix = _table(folder, each_set, ("set", "title", "differ", "reached", "speed_up"))
    overall = tuple(Column(name, name) for name in MEASURES if name in set(ranks["measure"]))
    sets = tuple(
        Column(f"set {row['set']}", row["title"], "" if pd.isna(row["differ"]) else row["differ"])
        for row in matrix.drop_duplicates("set").to_dict("records")
    )
    gains: dict[str, dict[str, Gain]] = {name: {} for name in Scheme.members()}
    for row in ranks.to_dict("records"):
        place = None if pd.isna(row["rank"]) else row["rank"]
        share = row["reached"] / row["runs"]
        gain = Gain(row["speed_up"], row["low"], row["high"], place, "missed", share)
        if row["scheme"] == REFERENCE:
            gain = replace(gain, value=np.nan, low=np.nan, high=np.nan, note="1 (reference)")
        gains.setdefault(row["scheme"], {})[row["measure"]] = gain
    for row in matrix.to_dict("records"):
        successes = f"{row['reached']} of {row['runs']}" if row["reached"] < row["runs"] else "–"
        share = row["reached"] / row["runs"]
        ends = row["speed_up"], row["speed_up_low"], row["speed_up_high"]
        gain = Gain(*ends, note=successes, reached=share)
        gains.setdefault(row["scheme"], {})[f"set {row['set']}"] = gain
    needs_of_runs = _needs_of_runs(ranks)
    rows = [_choice(name, by_column, needs_of_runs) for name, by_column in gains.items()]
    rows.sort(key=lambda row: (row.gains.get(by, UNKNOWN).rank or np.inf, row.name))
    badges = read_record(folder / together / "artefact.json").get("badges", ())
    across = _across(folder / f"{size(folder)}agreement" / f"{size(folder)}agreement.csv")
    return Choices(by, tuple(badges), overall, sets, tuple(rows), (together, each_set), across)


def holds_choices(folder: Path) -> bool:
    """Whether :func:`choices` can be read; changed settings may leave only plain curves."""
    try:
        choices(folder)
    except InputError:
        return False
    return True


def size(folder: Path) -> str:
    """Return the prefix of the artefacts that compare the most samplers.

    A tie goes to the benchmark of many small datasets, then to the larger of the other two.
    """
    counts = {}
    for prefix in (BENCH, LARGER, ""):
        path = folder / f"{prefix}ranks" / f"{prefix}ranks.csv"
        if path.is_file():
            counts[prefix] = len(set(pd.read_csv(path).get("scheme", ())))
    return max(counts, key=lambda prefix: counts[prefix], default="")


def lines(comparison: Choices, needs: Sequence[str] | None = None) -> Iterator[str]:
    """Write the comparison for a terminal.

    Parameters
    ----------
    needs : sequence of str, optional
        Show only samplers that need nothing but this information.

    Raises
    ------
    InputError
        If an entry of `needs` is unknown.
    """
    known = (*COSTS, NOTHING, DEPENDS)
    if unknown := [name for name in needs or () if name not in known]:
        raise InputError(*(f"--needs {name}: unknown; {nearest(name, known)}" for name in unknown))
    allowed = None if needs is None else {*needs, NOTHING}
    rows = [row for row in comparison.rows if allowed is None or allowed.issuperset(row.observes)]
    columns = (*comparison.overall, *comparison.sets)
    table = [
        ["sampler", "needs", *(column.title for column in columns)],
        ["", "", *(column.differ for column in columns)],
        *(
            [row.name, ", ".join(row.observes), *(_cell(row.gain(each)) for each in columns)]
            for row in rows
        ),
    ]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    for cells in table:
        yield "  ".join(map(str.ljust, cells, widths)).rstrip()
    yield ""
    yield f"Speed-up over {REFERENCE} (2 = half the cost): over all datasets, with the rank;"
    yield f"then in {comparison.by} on each dataset."
    yield "+ or −: the whole 95 % interval lies above or below 1. Intervals are not corrected for"
    yield "multiple comparisons; expect about 1 in 20 to miss."
    yield "'0 of 3': 0 of 3 runs reached the target; '!': some runs missed it."
    if comparison.badges:
        yield f"These runs: {' · '.join(comparison.badges)}."
    for name in sorted({name for row in rows for name in row.observes} & COSTS.keys()):
        yield f"{name}: {COSTS[name]}"


def _table(folder: Path, artefact: str, columns: Sequence[str]) -> pd.DataFrame:
    path = folder / artefact / f"{artefact}.csv"
    if not path.is_file():
        raise InputError(f"{path}: missing; run 'snakemake --cores 2 {PAPER}'")
    table = pd.read_csv(path)
    if missing := [name for name in columns if name not in table]:
        raise InputError(
            f"{path}: has no column '{missing[0]}' (an earlier version wrote it); "
            f"run 'snakemake --cores 2 {PAPER}'"
        )
    return table


def _across(path: Path) -> dict[str, tuple[str, ...]] | None:
    """Read the samplers with a significant corrected test over datasets, by cost."""
    table = pd.read_csv(path) if path.is_file() else pd.DataFrame()
    if not {"measure", "scheme", "holm_p"} <= set(table.columns):
        return None
    significant = table["holm_p"] < 1 - LEVEL
    return {
        str(measure): tuple(part["scheme"])
        for measure, part in table.assign(scheme=table["scheme"].where(significant))
        .dropna(subset="scheme")
        .groupby("measure")
    }


def _needs_of_runs(ranks: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return the information that samplers needed with the settings of their runs, if noted."""
    if "needs" not in ranks:
        return {}
    needs = ranks.drop_duplicates("scheme").set_index("scheme")["needs"].fillna("")
    return {str(name): tuple(text.split()) or (NOTHING,) for name, text in needs.items()}


def _choice(
    name: str, gains: Mapping[str, Gain], needs_of_runs: Mapping[str, tuple[str, ...]]
) -> Choice:
    # The name of an entry with other settings is its sampler's name and these settings.
    member = next(
        (
            each
            for key, each in Scheme.members().items()
            if name == key or name.startswith(f"{key}-")
        ),
        None,
    )
    if member is None:
        return Choice(name, display_name(name), "", "", (DEPENDS,), "", False, True, False, gains)
    needs = getattr_static(member, "needs")
    observes = (
        needs_of_runs.get(name, (DEPENDS,))
        if isinstance(needs, property)
        else tuple(sorted(needs)) or (NOTHING,)
    )
    return Choice(
        name=name,
        display=display_name(name),
        what=description(member),
        source=section(member),
        observes=observes,
        unbiased=said(member, "unbiased"),
        comes_and_goes=member.intermittent,
        needs_delays="delays" in observes
        or (DEPENDS in observes and "delays" in said(member, "needs")),
        own=not member.__module__.startswith("fedsampling."),
        gains=gains,
    )


def _cell(gain: Gain) -> str:
    rank = "" if gain.rank is None else f" ({gain.rank:g})"
    return f"{gain.number}{gain.way}{'!' * bool(gain.missed)}{rank}"


def _practical(row: Choice) -> bool:
    """Whether a server could use the sampler instead of MD sampling."""
    return row.name not in (REFERENCE, EVERYBODY) and not IMPRACTICAL & set(row.observes)


def _better(gain: Gain) -> bool:
    """Whether the sampler beats MD sampling over all datasets and reached every target."""
    return gain.way == "+" and gain.rank is not None and not gain.missed
