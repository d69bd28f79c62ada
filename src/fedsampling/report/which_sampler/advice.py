"""The rule for advice: which sampler to use in a situation, from speed-ups on families of datasets.

A sampler is recommended only if, over the families of datasets with the situation's answers,

- its speed-up over MD sampling has a 95 % interval above 1, over at least :data:`MIN_FAMILIES`;
- it misses no target;
- its speed-up is at least :data:`MIN_SPEED_UP` on every family; and
- it was run again on all these families, in fresh worlds with fresh trials, and that interval is
  above 1, too; and
- if it was tested on families that are new to the situation, that interval is above 1, too.

Otherwise the advice is MD sampling.  The home page, the page "Which sampler?", its chooser,
``fedsampling rank`` and the artefact ``bench_advice`` of the cross matrix read this module.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from fedsampling.base.arrays import Array
from fedsampling.base.text import listed, plural, show
from fedsampling.evidence.statistics import LEVEL, Estimate, half_width
from fedsampling.experiments.papers import FULL, REFERENCE
from fedsampling.report.names import display_name

MIN_FAMILIES = 3
MIN_SPEED_UP = 0.9  # on every family
MAX_CANDIDATES = 2  # shown after the advice
# The runs that the rule reads, as the matrices' column `runs_in` names them.
RUNS_IN = ("benchmark", "fresh worlds", "new families", "new families, delays vary")
NOTHING_BETTER = "MD sampling: no sampler that selects clients is reliably better here"

# Information that a server may have, and the samplers' needs that it satisfies.
INFORMATION: Mapping[str, frozenset[str]] = {
    "delays": frozenset({"delays"}),
    "losses": frozenset({"losses", "batch_losses", "work_losses"}),
    "updates": frozenset({"updates", "update_norms", "bias_updates", "gradients", "heterogeneity"}),
}


@dataclass(frozen=True)
class Situation:
    """A reader's situation; None for unequal sizes or skewed labels includes both kinds."""

    information: frozenset[str] = frozenset(INFORMATION)
    away: bool = False
    unequal: bool | None = None
    skewed: bool | None = None

    @property
    def in_words(self) -> str:
        """The answers in words."""
        words = [f"{name} known" for name in INFORMATION if name in self.information]
        words += ["clients come and go"] if self.away else []
        return listed([*words, *self.of_data]) or "nothing known"

    @property
    def of_data(self) -> tuple[str, ...]:
        """The answers about sizes and labels in words."""
        sizes = {None: (), False: ("similar sizes",), True: ("unequal sizes",)}
        labels = {None: (), False: ("mixed labels",), True: ("skewed labels",)}
        return (*sizes[self.unequal], *labels[self.skewed])

    def select(self, speed_ups: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of the datasets that the answers describe."""
        rows = speed_ups[speed_ups["away"] == self.away]
        for answer in ("unequal", "skewed"):
            if (value := getattr(self, answer)) is not None:
                rows = rows[rows[answer] == value]
        return rows

    def allows(self, needs: Collection[str]) -> bool:
        """Whether the server has the information that a sampler needs."""
        return set(needs) <= set().union(*(INFORMATION[name] for name in self.information))


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A sampler's speed-up over MD over the families of datasets in a situation.

    `speed_up`: over the families on which it was run; `again`: in fresh worlds, None if it was run
    there on fewer than two; `tested`: on families that are new to the situation, None likewise;
    `tested_varying`: there with delays that vary, which decides nothing.
    `missed`: runs that missed the target. `worst`: smallest speed-up on a family. `of_families`:
    number of all families there.
    """

    sampler: str
    speed_up: Estimate
    missed: int
    worst: float
    worst_family: str
    of_families: int
    again: Estimate | None
    tested: Estimate | None = None
    tested_varying: Estimate | None = None

    @property
    def is_recommended(self) -> bool:
        """Whether the rule recommends it."""
        return bool(
            self.speed_up.n >= MIN_FAMILIES
            and self.speed_up.low > 1
            and not self.missed
            and self.worst >= MIN_SPEED_UP
            and self.again is not None
            and self.again.low > 1
            and self.again.n == self.speed_up.n
            and (self.tested is None or self.tested.low > 1)
        )

    def corrected(self, samplers: int) -> tuple[float, float]:
        """Return the interval with Bonferroni's correction for a choice among `samplers`."""
        level = 1 - (1 - LEVEL) / samplers
        value, low, high = self.speed_up.value, self.speed_up.low, self.speed_up.high
        wider = half_width(1, self.speed_up.n, level) / half_width(1, self.speed_up.n)
        half = np.log(high / low) / 2 * wider
        return float(value / np.exp(half)), float(value * np.exp(half))

    def sentence(self, measure: str) -> str:
        """Name and numbers in words."""
        return f"{display_name(self.sampler).short}, {self.in_words(measure)}"

    def in_words(self, measure: str) -> str:
        """Write the numbers as prose, such as ``1 % faster on average (−3 to +6 %), …``."""
        mean, fresh = self.speed_up, self.again
        parts = [f"{_change(mean.value, measure)} on average{_range(mean)}"]
        parts.append(f"at worst {_change(self.worst, measure)} on {self.worst_family}")
        if self.missed:
            parts.append(f"{plural(self.missed, 'run')} missed the target")
        if mean.n < self.of_families:
            parts.append(f"run on {mean.n} of {self.of_families} families")
        if fresh:
            on = f" on {fresh.n} families" if fresh.n < mean.n else ""
            parts.append(f"in fresh worlds {_change(fresh.value, measure)}{_range(fresh)}{on}")
        elif mean.low > 1:
            parts.append("not run in fresh worlds")
        if test := self.tested:
            change = f"{_change(test.value, measure)}{_range(test)}"
            parts.append(f"in a test on {test.n} new families {change}")
        if (varying := self.tested_varying) and measure == "seconds":
            change = f"{_change(varying.value, measure)}{_range(varying)}"
            parts.append(f"there {change} if delays vary")
        return ", ".join(parts)


def _change(speed_up: float, measure: str) -> str:
    """Write a speed-up in words: ``1 % faster``, ``13 % slower``."""
    more, less = ("cheaper", "dearer") if measure == "bits" else ("faster", "slower")
    percent = round(100 * abs(speed_up - 1))
    if not percent:
        return f"as {'cheap' if measure == 'bits' else 'fast'}"
    return f"{percent} % {more if speed_up > 1 else less}"


def _range(speed_up: Estimate) -> str:
    """Write an interval of speed-ups in per cent; nothing without an interval."""
    if np.isnan(speed_up.low):
        return ""
    low, high = (f"{100 * (end - 1):+.0f}" for end in (speed_up.low, speed_up.high))
    return f" ({low} to {high} %)".replace("-", "−")


@dataclass(frozen=True)
class Advice:
    """The advice in a situation for one measure of cost.

    `others` are faster than MD on average; the fastest is first. `samplers`: number of those
    compared with MD. `worlds`: smallest and largest number of a dataset. `regret`: mean and largest
    regret of ``advice`` and ``md`` on a family that the advice was not learned from: the cost
    divided by that of the best sampler there.
    """

    measure: str
    recommended: tuple[Candidate, ...]
    others: tuple[Candidate, ...]
    samplers: int
    families: int
    datasets: int
    worlds: tuple[int, int]
    regret: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def sampler(self) -> str:
        """The advised sampler."""
        return self.recommended[0].sampler if self.recommended else REFERENCE

    @property
    def evidence(self) -> str:
        """The number of families, datasets and worlds."""
        low, high = self.worlds
        worlds = f"{low}" if low == high else f"{low}–{high}"
        return (
            f"{self.datasets} dataset{'s' * (self.datasets != 1)} of {self.families} "
            f"famil{'y' if self.families == 1 else 'ies'}, {worlds} world{'s' * (high != 1)}"
        )

    @property
    def answer(self) -> tuple[str, ...]:
        """The advice, the best candidates, and the correction: one short sentence each."""
        if not self.families:
            return (f"{NOTHING_BETTER} (no dataset has these answers).",)
        shown = (*self.recommended, *self.others)[:MAX_CANDIDATES]
        texts = "; ".join(candidate.sentence(self.measure) for candidate in shown)
        if not self.recommended:
            candidates = [f"Candidates: {texts}."] if shown else []
            return (f"{NOTHING_BETTER} ({self.evidence}).", *candidates)
        first = display_name(self.sampler).short
        return (
            f"{first} ({self.evidence}).",
            f"Compared with MD sampling: {texts}.",
            self.correction,
        )

    @property
    def correction(self) -> str:
        """The first recommended sampler's interval, corrected for the choice among all."""
        low, high = self.recommended[0].corrected(self.samplers)
        return (
            f"Corrected for the choice among {self.samplers} samplers, the interval "
            f"{'is above' if low > 1 else 'includes'} 1: [{show(low)}, {show(high)}]."
            + " The test was declared for this sampler alone and needs no correction."
            * (self.recommended[0].tested is not None)
        )

    @property
    def lines(self) -> tuple[str, ...]:
        """The answer and the regret."""
        if not self.regret:
            return self.answer
        excess, of_md = (
            [f"{100 * (ratio - 1):.0f} %" for ratio in self.regret[rule]]
            for rule in ("advice", "md")
        )
        always_md = f"; with MD always, {of_md[0]} (worst case {of_md[1]})"
        regret = (
            f"On a new family of datasets, expect {excess[0]} more cost than with the best "
            f"sampler (worst case {excess[1]}){always_md if of_md != excess else ''}."
        )
        return (*self.answer, regret)


def advise(
    speed_ups: pd.DataFrame,
    usable: Collection[str],
    situation: Situation,
    measure: str,
    *reruns: pd.DataFrame,
) -> Advice:
    """Apply the rule to speed-ups in one measure, for the samplers that the situation allows.

    `reruns`: the same table for each of the other :data:`RUNS_IN`, possibly without rows; those
    that are not given count as not run.
    """
    return Cell.of(situation, speed_ups, *reruns).advise(usable, measure)


@dataclass(frozen=True, eq=False)
class Cell:
    """The datasets that the answers about the data describe, for the advice with any information.

    Rows are families, columns samplers: `logs` of speed-ups, NaN if not run; runs that `missed` the
    target; logs in the `reruns`, one table for each of the other :data:`RUNS_IN`.
    `datasets`: their number. `worlds`: smallest and largest number of a dataset.
    """

    logs: pd.DataFrame
    missed: pd.DataFrame
    reruns: tuple[pd.DataFrame, ...]
    datasets: int
    worlds: tuple[int, int]

    @classmethod
    def of(cls, situation: Situation, speed_ups: pd.DataFrame, *reruns: pd.DataFrame) -> "Cell":
        """Select the datasets of a situation from speed-ups in one measure, as :func:`advise`."""
        rows = situation.select(speed_ups)
        samplers = sorted({*map(str, rows["scheme"])} - {FULL, REFERENCE})
        unreached = rows["runs"] - rows["reached"]
        missed = unreached.groupby([rows["family"], rows["scheme"]]).sum().unstack()
        worlds = rows["worlds"]
        not_run = [speed_ups[:0]] * (len(RUNS_IN) - 1 - len(reruns))
        tables = (situation.select(table if len(table) else speed_ups[:0]) for table in reruns)
        return cls(
            by_family(rows, samplers),
            missed.reindex(columns=samplers),
            tuple(by_family(table, samplers) for table in (*tables, *not_run)),
            datasets=rows["set"].nunique(),
            worlds=(int(worlds.min()), int(worlds.max())) if len(rows) else (0, 0),
        )

    def advise(self, usable: Collection[str], measure: str) -> Advice:
        """Apply the rule to the usable samplers."""
        allowed = [name for name in self.logs if name in {*usable}]
        candidates = self._ranked(allowed)
        faster = [each for each in candidates if each.speed_up.value > 1]
        return Advice(
            measure=measure,
            recommended=tuple(each for each in candidates if each.is_recommended),
            others=tuple(each for each in faster if not each.is_recommended),
            samplers=len(candidates),
            families=len(self.logs),
            datasets=self.datasets,
            worlds=self.worlds,
            regret=self._regret(allowed) if len(self.logs) > 1 and allowed else {},
        )

    def _regret(self, allowed: Sequence[str]) -> dict[str, tuple[float, float]]:
        """Leave out one family after the other: apply the rule to the rest, compare costs on it."""
        advised, best = [], []
        for family, row in self.logs[allowed].iterrows():
            on_it = row.to_dict()
            others = self._ranked(allowed, without=str(family))
            recommended = [on_it[each.sampler] for each in others if each.is_recommended]
            advised.append(next((log for log in recommended if not np.isnan(log)), 0.0))
            best.append(max(0.0, row.max()))
        regrets = {"advice": np.exp(np.subtract(best, advised)), "md": np.exp(best)}
        return {
            name: (float(regret.mean()), float(regret.max())) for name, regret in regrets.items()
        }

    def _ranked(self, samplers: Iterable[str], without: str | None = None) -> list[Candidate]:
        """Return the samplers that were run, the fastest first, with a family left out."""
        candidates = [self._candidate(name, without) for name in samplers]
        run = [candidate for candidate in candidates if candidate]
        return sorted(run, key=lambda candidate: -candidate.speed_up.value)

    def _candidate(self, sampler: str, without: str | None) -> Candidate | None:
        """Return a sampler's speed-ups with a family left out; None if it was run on no other."""
        if (sampler, without) not in self._candidates:
            self._candidates[sampler, without] = self._computed(sampler, without)
        return self._candidates[sampler, without]

    def _computed(self, sampler: str, without: str | None) -> Candidate | None:
        families, logs, missed = self._columns[sampler]
        fresh, new, varying = self._logs_again[sampler]
        kept = families != without
        is_known = kept & ~np.isnan(logs)
        known = logs[is_known]
        if not len(known):
            return None
        return Candidate(
            sampler=sampler,
            speed_up=over_families(known),
            missed=int(np.nansum(missed[kept])),
            worst=float(np.exp(known.min())),
            worst_family=str(families[is_known][known.argmin()]),
            of_families=int(kept.sum()),
            again=_over_several([log for family, log in fresh.items() if family != without]),
            tested=_over_several([*new.values()]),
            tested_varying=_over_several([*varying.values()]),
        )

    @cached_property
    def _candidates(self) -> dict[tuple[str, str | None], Candidate | None]:
        return {}

    @cached_property
    def _columns(self) -> Mapping[str, tuple[Array, Array, Array]]:
        """Families, logarithms and misses of each sampler: columns of a frame are slow."""
        families, names = self.logs.index.to_numpy(object), list(self.logs)
        parts = (table.to_numpy(np.float64).T for table in (self.logs, self.missed))
        return {name: (families, *columns) for name, *columns in zip(names, *parts, strict=True)}

    @cached_property
    def _logs_again(self) -> Mapping[str, list[dict[str, float]]]:
        """Logarithms of each sampler in the reruns, by the families on which it was run."""
        return {
            str(name): [
                {str(family): log for family, log in table[name].dropna().items()}
                for table in self.reruns
            ]
            for name in self.logs
        }


def by_family(speed_ups: pd.DataFrame, samplers: Collection[str]) -> pd.DataFrame:
    """Return logarithms of speed-ups: rows are families, columns samplers; NaN if not run."""
    logs = np.log(speed_ups["speed_up"]).groupby([speed_ups["family"], speed_ups["scheme"]]).mean()
    table: pd.DataFrame = logs.unstack().reindex(columns=[*samplers])
    return table


def over_families(logs: Array) -> Estimate:
    """Return the geometric mean over families, from logarithms.

    Its interval is Student's, NaN for a single family.
    """
    n, centre = len(logs), float(logs.mean())
    half = float(half_width(logs.std(ddof=1), n)) if n > 1 else np.nan
    value, low, high = (float(np.exp(x)) for x in (centre, centre - half, centre + half))
    return Estimate(value, low, high, n)


def _over_several(logs: Sequence[float]) -> Estimate | None:
    """Return :func:`over_families`; None for fewer than two."""
    return over_families(np.array(logs)) if len(logs) > 1 else None
