"""Applying the rule for advice: from speed-ups on datasets to the candidates and the regret.

:mod:`.advice` states the rule.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from fedsampling.base.arrays import Array
from fedsampling.evidence.statistics import Estimate, half_width
from fedsampling.experiments.cross_matrix import FULL, REFERENCE
from fedsampling.report.which_sampler.advice import RUNS_IN, Advice, Candidate, Situation


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
    """The evidence on the datasets of a situation, whatever the server knows about clients.

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
        """Keep the datasets of a situation; the tables are those of :func:`advise`."""
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
            tested=_over_several([log for family, log in new.items() if family not in families]),
            tested_varying=_over_several(
                [log for family, log in varying.items() if family not in families]
            ),
        )

    @cached_property
    def _candidates(self) -> dict[tuple[str, str | None], Candidate | None]:
        return {}

    @cached_property
    def _columns(self) -> Mapping[str, tuple[Array, Array, Array]]:
        """Each sampler's families, logarithms and misses, as arrays because columns are slow."""
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
