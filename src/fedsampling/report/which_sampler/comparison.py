"""All samplers by the information they need, their cost and their speed-up over MD sampling.

:mod:`.reading` reads the comparison from the artefacts of the cross matrix.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
import pandas as pd

from fedsampling.base.text import listed, show
from fedsampling.experiments.cross_matrix import FULL, REFERENCE
from fedsampling.report.names import Name
from fedsampling.report.which_sampler.advice import Advice, Situation
from fedsampling.report.which_sampler.cells import Cell

# In place of a sampler's information: its settings decide and it has no runs; it needs none.
DEPENDS, NOTHING = "depends on settings", "nothing"
FRONT_SAMPLERS = 4  # of each measure in the plot of the front
PLOT_ENDS = (0.4, 2.5)  # speed-ups at the ends of the plot of an interval
# Information that no practical server has: samplers that need it are not recommended.
IMPRACTICAL = frozenset({"labels", "optimum"})


def position(speed_up: float) -> float:
    """Place a speed-up in the plot of an interval, in per cent of its width, on a log scale."""
    left, right = np.log(PLOT_ENDS)
    share = (np.log(np.clip(speed_up, *PLOT_ENDS)) - left) / (right - left)
    return round(100 * float(share), 1)


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
        """Ends and value in per cent of the plot's width; None without an interval."""
        if not self.interval:
            return None
        return position(self.low), position(self.value), position(self.high)

    @property
    def side(self) -> str:
        """``+`` if the whole interval is above 1, ``−`` if below, else an empty string."""
        return "+" if self.low > 1 else "−" if self.high < 1 else ""


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
    """All samplers, ranked by one measure of cost.

    `by`: the measure, in which `datasets` compares them. `badges`: why these runs are not evidence
    for the datasets' full size. `overall`: the measures over all families of datasets. `sources`:
    the artefacts of `overall` and of `datasets`. `speed_ups`: those of all samplers on all
    datasets, from which :mod:`.advice` follows. `reruns`: the same for the other RUNS_IN, in their
    order; without rows if nothing was run. `gain_from_tuning`: a sentence on the learning rate.
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
            fastest |= {row.name for row in practical[:FRONT_SAMPLERS]}
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
