"""All samplers by the information they need, their cost and their speed-up over MD sampling."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import pandas as pd

from fedsampling.evidence.statistics import listed, show, show_interval
from fedsampling.experiments.papers import FULL, REFERENCE
from fedsampling.report.names import Name
from fedsampling.report.which_sampler.advice import Advice, Situation, advise

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
        return "" if self.reached == 1 else f"{100 * (1 - self.reached):.0f} % of runs missed"

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

    `needs`: information that it needs with the settings of its runs: keys of
    :data:`~fedsampling.report.names.INFORMATION_COSTS`, :data:`NOTHING`, or :data:`DEPENDS`.
    `unbiased`: ``yes``, ``no``, or a condition. `allows_absence`: whether clients may come and go.
    """

    name: str
    display: Name
    description: str
    source: str
    needs: tuple[str, ...]
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
    `fresh`: the same for fresh worlds with fresh trials. `reruns`: aggregated speed-ups with other
    models of delays.
    """

    by: str
    badges: tuple[str, ...]
    overall: tuple[Column, ...]
    datasets: tuple[Column, ...]
    rows: tuple[SamplerRow, ...]
    sources: tuple[str, str]
    speed_ups: pd.DataFrame
    gain_from_tuning: str = ""
    fresh: pd.DataFrame | None = None
    reruns: pd.DataFrame = field(default_factory=pd.DataFrame)

    def row(self, name: str) -> SamplerRow:
        """Return the row of a sampler."""
        return next(row for row in self.rows if row.name == name)

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
        advice = advise(self.speed_ups, usable, situation, self.by, self.fresh)
        if self.by != "seconds" or not advice.recommended or self.reruns.empty:
            return advice
        rows = self.reruns[(self.reruns["scheme"] == advice.sampler) & self.reruns["delays"]]
        texts = [
            f"{show_interval(row['again'], row['again_low'], row['again_high'])} ({row['change']})"
            for row in rows.to_dict("records")
        ]
        return replace(advice, notes=(f"With other delays: {'; '.join(texts) or 'not run'}.",))

    @property
    def exceptions(self) -> dict[str, Advice]:
        """The advice on datasets by sizes and labels, where it is not MD, with everything known."""
        situations = [Situation(unequal=u, skewed=s) for u, s in product((False, True), repeat=2)]
        advice = {listed(situation.of_data): self.advice(situation) for situation in situations}
        return {words: each for words, each in advice.items() if each.recommended}

    def better_than_md(self, row: SamplerRow) -> list[str]:
        """Name the measures in which a sampler's interval over families is above 1."""
        return [f"in {c.title}" for c in self.overall if row.speed_up(c).side == "+"]
