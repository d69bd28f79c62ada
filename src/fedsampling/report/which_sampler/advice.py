"""The rule for advice: which sampler to use in a situation, from speed-ups on families of datasets.

A sampler is recommended only if, over the families of datasets with the situation's answers,

- its speed-up over MD sampling has a 95 % interval above 1, over at least :data:`MIN_FAMILIES`;
- it misses no target;
- its speed-up is at least :data:`MIN_SPEED_UP` on every family;
- it was run again on all these families, in fresh worlds with fresh trials, and that interval is
  above 1, too; and
- if it was tested on families that are new to the situation, that interval is above 1, too.

Otherwise the advice is MD sampling.  The home page, the page "Which sampler?", its chooser,
``fedsampling rank`` and the artefact ``bench_advice`` of the cross matrix show it;
:mod:`.cells` applies it to runs.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from fedsampling.base.text import listed, plural, show
from fedsampling.evidence.statistics import LEVEL, Estimate, half_width
from fedsampling.experiments.cross_matrix import REFERENCE
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

    @property
    def name(self) -> str:
        """The sampler's short name."""
        return display_name(self.sampler).short

    def in_words(self, measure: str) -> str:
        """Write the numbers as short sentences, after the first of which come fresh runs."""
        return " ".join([self.first_sentence(measure), *self._again_in_words(measure)])

    def first_sentence(self, measure: str) -> str:
        """Write the result of the benchmark, such as ``1 % faster on average (−3 to +6 %), …``."""
        mean = self.speed_up
        parts = [
            f"{_change(mean, measure)} on average{_range(mean, measure)}",
            f"at worst {_in_percent(self.worst, measure)} on {self.worst_family}",
        ]
        if self.missed:
            parts.append(f"{plural(self.missed, 'run')} missed the target")
        if mean.n < self.of_families:
            parts.append(f"run on {mean.n} of {self.of_families} families")
        return f"{', '.join(parts)}."

    def _again_in_words(self, measure: str) -> Iterator[str]:
        """Write the numbers of fresh worlds and of new families: a sentence each."""
        if fresh := self.again:
            on = f" ({fresh.n} families)" if fresh.n < self.speed_up.n else ""
            yield f"Fresh worlds{on}: {_change(fresh, measure)}{_range(fresh, measure)}."
        elif self.speed_up.low > 1:
            yield "Not run in fresh worlds."
        if test := self.tested:
            yield f"{test.n} new families: {_change(test, measure)}{_range(test, measure)}."
        if (varying := self.tested_varying) and measure == "seconds":
            change = f"{_change(varying, measure)}{_range(varying, measure)}"
            yield f"New families, delays vary: {change}."


def _change(speed_up: Estimate, measure: str) -> str:
    return _in_percent(speed_up.value, measure)


def _in_percent(speed_up: float, measure: str) -> str:
    """Write a speed-up in words: ``1 % faster``, ``13 % slower``."""
    more, less = ("cheaper", "dearer") if measure == "bits" else ("faster", "slower")
    change = round(100 * _gain(speed_up, measure))
    if not change:
        return f"as {'cheap' if measure == 'bits' else 'fast'}"
    return f"{abs(change)} % {more if change > 0 else less}"


def _gain(speed_up: float, measure: str) -> float:
    """Return how much faster a sampler is, or which part of the bits it saves."""
    return 1 - 1 / speed_up if measure == "bits" else speed_up - 1


def _range(speed_up: Estimate, measure: str) -> str:
    """Write an interval of gains in per cent; nothing without an interval."""
    if np.isnan(speed_up.low):
        return ""
    ends = (round(100 * _gain(end, measure)) for end in (speed_up.low, speed_up.high))
    low, high = (f"{end:+d}" if end else "0" for end in ends)
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

    def answer(self, candidates: int = MAX_CANDIDATES) -> tuple[str, ...]:
        """Return the advice, the best candidates, and the correction: a line each."""
        if not self.families:
            return (f"{NOTHING_BETTER} (no dataset has these answers).",)
        texts = [f"{each.name}: {each.in_words(self.measure)}" for each in self.recommended]
        texts += [f"Candidate {each.name}: {each.in_words(self.measure)}" for each in self.others]
        if not self.recommended:
            return (f"{NOTHING_BETTER} ({self.evidence}).", *texts[:candidates])
        advice = f"Use {self.recommended[0].name} ({self.evidence})."
        return (advice, *texts[:candidates], self.correction)

    @property
    def correction(self) -> str:
        """The first recommended sampler's interval, corrected for the choice among all."""
        low, high = self.recommended[0].corrected(self.samplers)
        return (
            f"Corrected for the choice among {self.samplers} samplers, the speed-up's interval "
            f"{'is above' if low > 1 else 'includes'} 1: [{show(low)}, {show(high)}]."
            + " The test on new families needs no correction: it was declared for this sampler."
            * (self.recommended[0].tested is not None)
        )

    def lines(self, candidates: int = MAX_CANDIDATES) -> tuple[str, ...]:
        """Return the answer and the regret."""
        if not self.regret:
            return self.answer(candidates)
        excess, of_md = (
            [f"{100 * (ratio - 1):.0f} %" for ratio in self.regret[rule]]
            for rule in ("advice", "md")
        )
        always_md = f"; with MD always, {of_md[0]} (worst case {of_md[1]})"
        regret = (
            f"On a new family of datasets, expect {excess[0]} more cost than with the best "
            f"sampler (worst case {excess[1]}){always_md if of_md != excess else ''}."
        )
        return (*self.answer(candidates), regret)
