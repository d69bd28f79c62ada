"""A comparison on the benchmark: one dataset after another, with an early ranking."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedsampling.base.errors import InputError
from fedsampling.base.text import listed, plural
from fedsampling.experiments.cross_matrix import CROSS_MATRIX
from fedsampling.workflow.comparing.early import early_lines
from fedsampling.workflow.comparing.own_problem import ABSENT
from fedsampling.workflow.comparing.processes import TaskOutcome, run_each
from fedsampling.workflow.comparing.results import show_results
from fedsampling.workflow.comparing.schedule import (
    EARLY_WORLDS,
    DatasetWork,
    first_sets,
    schedule,
)
from fedsampling.workflow.comparing.selection import FIXES, Competition, Echo, Overrides
from fedsampling.workflow.comparing.training import train_on
from fedsampling.workflow.project import Project

MIN_SETS_FOR_EARLY = 8  # a comparison on fewer datasets answers soon enough
Best = Mapping[str, Mapping[str, str]]  # the best trials of the entries, by dataset


@dataclass(frozen=True)
class ByDataset:
    """A comparison whose datasets train in processes of their own.

    Training plans the entries and the reference only.  The other samplers' runs, which are
    finished, are looked for when the entries are ranked.
    """

    comparison: Competition
    run: str  # subfolder of the results
    cores: int  # datasets at the same time
    end: float | None  # time of ``time.monotonic`` after which the finished datasets are ranked
    echo: Echo

    def train_and_rank(self, is_benchmark: bool) -> int:
        """Train the entries, rank early and at the end, and return the exit status.

        `is_benchmark`: see :meth:`Competition.training`.
        """
        trained = self.comparison.training(self.run, is_benchmark, self.echo)
        planned = trained.plan.experiments
        names = [name for name in self.comparison.datasets if f"{CROSS_MATRIX}/{name}" in planned]
        works = schedule(trained, self.comparison.entries, names)
        if not works:
            entries, datasets = listed([*self.comparison.entries]), listed(names)
            raise InputError(f"{entries}: cannot run on {datasets}{FIXES[ABSENT]}")
        self._announce(works)
        best: dict[str, Mapping[str, str]] = {}
        if len(works) >= MIN_SETS_FOR_EARLY:
            early = [work.name for work in first_sets(works)]
            best = self._best(self._outcomes(trained, early, {}, EARLY_WORLDS))
            if best:
                self._rank_early(best)
        outcomes = self._outcomes(trained, [work.name for work in works], best, None)
        finished = self._best(outcomes)
        unfinished = [work.name for work in works if work.name not in finished]
        if not finished:
            raise InputError("no dataset is finished; run the same command again to resume")
        # Other samplers also ran on datasets on which the entries do not.
        ranked: Best = {name: finished.get(name, {}) for name in names if name not in unfinished}
        compared = self.comparison.project(self._chosen(ranked, self.echo), self.run)
        compared.write()
        note = (
            f"Ranked on {len(finished)} of {plural(len(works), 'dataset')}. The same command "
            f"resumes with {', '.join(unfinished)}."
        )
        return show_results(
            compared,
            self.comparison.entries,
            {name: name for name in finished},
            note if unfinished else "",
            self.echo,
        )

    def _announce(self, works: Sequence[DatasetWork]) -> None:
        """Say what is going to run, and how long it may take."""
        runs, seconds = sum(work.runs for work in works), sum(work.seconds for work in works)
        minutes = seconds / 60 / min(self.cores, len(works))
        self.echo(
            f"{plural(runs, 'run')} of {', '.join(self.comparison.entries)} on "
            f"{plural(len(works), 'dataset')}; at MD's speed, {max(minutes, 1):.0f} min on "
            f"{plural(self.cores, 'core')}; finished runs are reused"
        )
        if away := [work.name for work in works if not work.is_on_hand]:
            self.echo(f"data to download, at the end: {', '.join(away)}")

    def _rank_early(self, best: Best) -> None:
        chosen = self._chosen(best, lambda line: None)
        for line in early_lines(self.comparison, chosen, self.run):
            self.echo(line)

    def _outcomes(
        self, trained: Project, names: Sequence[str], best: Best, worlds: int | None
    ) -> dict[str, TaskOutcome]:
        """Train on some datasets, in the first worlds or in all, and say when each has ended."""
        began, count = time.monotonic(), iter(range(1, len(names) + 1))
        scope = f"{worlds} worlds" if worlds else "all worlds"

        def tell(name: str, outcome: TaskOutcome) -> None:
            place = f"{next(count)} of {len(names)}"
            what = "stopped" if outcome.is_stopped else outcome.reason or f"{scope} finished"
            self.echo(f"{name}: {what} ({place}, {time.monotonic() - began:.0f} s)")

        def work(name: str) -> dict[str, str]:
            return train_on(name, trained, [*self.comparison.entries], best.get(name), worlds)

        return run_each(names, work, self.cores, tell, self.end)

    @staticmethod
    def _best(outcomes: Mapping[str, TaskOutcome]) -> dict[str, Mapping[str, str]]:
        """Return the best trials on the datasets that are finished."""
        return {name: outcome.value for name, outcome in outcomes.items() if outcome.value}

    def _chosen(self, best: Best, echo: Echo) -> Overrides:
        """Return the overrides of datasets, with all finished samplers and the best trials."""
        overrides = self.comparison.with_finished_samplers([*best], echo)
        return overrides | {
            name: {**overrides[name], "chosen": dict(cases)} for name, cases in best.items()
        }
