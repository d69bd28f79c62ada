"""``fedsampling compare``: check users' samplers, run them in the cross matrix, and rank them."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from fedsampling.base.errors import InputError, check_known, naming
from fedsampling.experiments.papers import CROSS_MATRIX
from fedsampling.experiments.resolving import resolved_settings
from fedsampling.samplers.users.files import load_file
from fedsampling.workflow.comparing.by_dataset import ByDataset
from fedsampling.workflow.comparing.entries import Entry, all_entries, check_entry
from fedsampling.workflow.comparing.own_problem import OwnProblem
<<<<<<< HEAD
from fedsampling.workflow.comparing.results import show_results
=======
from fedsampling.workflow.comparing.processes import TaskOutcome, run_each
from fedsampling.workflow.comparing.results import result_lines
from fedsampling.workflow.comparing.schedule import (
    EARLY_WORLDS,
    DatasetWork,
    first_sets,
    schedule,
)
>>>>>>> 0af98d42d66ce9dc65f25d8ce247442f45f5574d
from fedsampling.workflow.comparing.selection import (
    Competition,
    Echo,
    Overrides,
    chosen_datasets,
    cross_matrix,
    usual_scale,
)
from fedsampling.workflow.project import Project
from fedsampling.workflow.run import execute_all


def compare(
    files: Sequence[Path],
    project: Project,
    echo: Callable[[str], None],
    scale: str | None,
    problem: OwnProblem,
    settings: Sequence[str],
    datasets: Sequence[str],
    against: Sequence[str],
    cores: int = 1,
    minutes: float | None = None,
) -> int:
    """Compare the samplers that some files define with each other and with all others.

    All samplers of a file are compared.  `settings`: see :func:`all_entries`;
    `datasets`, of the cross matrix: see :func:`chosen_datasets`; `scale`: see :func:`usual_scale`;
    `against`: the other samplers, besides md, or all; `cores`: datasets that train at the same
    time; `minutes`: after these, the finished datasets are ranked.  Prints lines with `echo`.
    Returns the exit status: 0, or that of an interrupted job; the same command resumes it.
    """
    end = None if minutes is None else time.monotonic() + 60 * minutes
    members = list(dict.fromkeys(member for file in files for member in load_file(file)))
    is_step = all(str(file) in project.config.schemes for file in files)
    made = project.made(f"compare/{members[-1].named}")
    with made.making() if is_step else nullcontext():
        scale = scale or usual_scale(datasets, problem)
        if minutes is not None and (scale != "paper" or problem):
            raise InputError("--minutes: no effect at this scale or with your data; remove it")
        entries = all_entries(members, settings)
        matrix = _cross_matrix(project, files, scale)
        common = _at_quick_scale(matrix)
        check_known(against, common, "--against {}: unknown")
        chosen = chosen_datasets(matrix, datasets, scale, problem)
        problem.check_model()
        problem.check_clients()
        _check(entries, common, echo)
<<<<<<< HEAD
        comparison = Comparison(matrix, entries, chosen, problem, against)
        names = [member.named for member in members]
        run = "compare/" + "-".join(filter(None, [*names, problem.name]))
        if scale == "paper" and not problem:
            by_dataset = ByDataset(comparison, run, cores, end, echo)
            return by_dataset.train_and_rank(is_benchmark=not datasets)
=======
        comparison = Competition(matrix, entries, chosen, problem, against)
>>>>>>> 0af98d42d66ce9dc65f25d8ce247442f45f5574d
        if problem:
            overrides = comparison.with_fitting_samplers(common, echo)
        else:
            overrides = comparison.with_finished_samplers(chosen, echo)
        return _run_together(comparison, overrides, run, echo)


def _check(entries: Mapping[str, Entry], common: Mapping[str, Any], echo: Echo) -> None:
    for label, entry in entries.items():
        echo(f"{label}: checking")
        with naming(label) if len(entries) > 1 else nullcontext():
            check_entry(entry, common.get(entry["name"], {}))
        echo(f"{label}: passes the check (slots, bias, reproducibility, observations, memory)")


def _run_together(comparison: Comparison, overrides: Overrides, run: str, echo: Echo) -> int:
    """Run all jobs in this process, and show the results; return the exit status."""
    compared = comparison.project(overrides, run)
    compared.write()
    plan, problem = compared.plan, comparison.problem
    chosen = [name for name in comparison.datasets if overrides[name]]
    jobs = [plan.jobs[job] for job in plan.jobs_to_run(CROSS_MATRIX)]
    runs = sum(len(job.runs) for job in plan.jobs.values() if job.sampler in comparison.entries)
    titles = [problem.data.name] if problem.data else chosen
    names = ", ".join(comparison.entries)
    echo(f"{len(jobs)} jobs, {runs} runs of {names}, on {', '.join(titles)}")
    if status := execute_all(jobs, compared, lambda manifest: None):
        return status
    quick = "Quick scale only shows that the sampler runs; it is not evidence."
    return show_results(
        compared,
        comparison.entries,
        dict(zip(chosen, titles, strict=True)),
        quick if comparison.matrix.config.scale == "quick" else "",
        echo,
        own_data=problem.data is not None,
    )


<<<<<<< HEAD
def _at_quick_scale(matrix: Project) -> Mapping[str, Any]:
    """Return the samplers of the experiment that runs them all, with their settings."""
    quick = matrix.with_config(scale="quick", data="embedded")
    experiments = resolved_settings(cross_matrix(quick), quick.config)
    samplers: Mapping[str, Any] = next(iter(experiments.values()))["samplers"]
    return samplers
=======
    def run_together(self, chosen: Sequence[str], scale: str) -> int:
        """Run all jobs in this process, and show the results."""
        compared = self._project(self.overrides)
        plan = compared.plan
        chosen = [name for name in chosen if self.overrides[name]]
        jobs = [plan.jobs[job] for job in plan.jobs_to_run(CROSS_MATRIX)]
        runs = sum(len(job.runs) for job in plan.jobs.values() if job.sampler in self.entries)
        titles = [self.problem.data.name] if self.problem.data else chosen
        names = ", ".join(self.entries)
        self.echo(f"{len(jobs)} jobs, {runs} runs of {names}, on {', '.join(titles)}")
        if status := execute_all(jobs, compared, lambda manifest: None):
            return status
        quick = "Quick scale only shows that the sampler runs; it is not evidence."
        note = quick if scale == "quick" else ""
        return self._show(compared, dict(zip(chosen, titles, strict=True)), note)

    def run_by_dataset(self, cores: int, end: float | None) -> int:
        """Train on one dataset after another, each in a process; rank early, and at the end."""
        compared = self._project(self.overrides)
        names = [
            name for name in self.overrides if self.overrides[name] and not name.startswith(TUNING)
        ]
        works = schedule(compared, self.entries, names)
        elsewhere: dict[str, Mapping[str, str]] = {
            name: {} for name in names if name not in {work.name for work in works}
        }
        self._announce(works, cores)
        best: dict[str, Mapping[str, str]] = {}
        if len(works) >= MIN_SETS_FOR_EARLY:
            early = [work.name for work in first_sets(works)]
            best |= self._train(compared, early, cores, end, best, EARLY_WORLDS)
            if best:
                for line in early_lines(self.matrix, self._chosen(best), self.run, self.entries):
                    self.echo(line)
        outcomes = self._outcomes(compared, [w.name for w in works], cores, end, best, None)
        finished = {name: each.value for name, each in outcomes.items() if each.value}
        unfinished = [work.name for work in works if work.name not in finished]
        if not finished:
            raise InputError("no dataset is finished; run the same command again to resume")
        note = (
            f"Ranked on {len(finished)} of {plural(len(works), 'dataset')}. The same command "
            f"resumes with {', '.join(unfinished)}."
        )
        # Other samplers also ran on datasets on which the entries do not.
        ranked = self._project(self._chosen(elsewhere | finished))
        return self._show(ranked, {name: name for name in finished}, note if unfinished else "")

    def _announce(self, works: Sequence[DatasetWork], cores: int) -> None:
        """Say what is going to run, and how long it may take."""
        runs, seconds = sum(work.runs for work in works), sum(work.seconds for work in works)
        minutes = seconds / 60 / min(cores, len(works))
        self.echo(
            f"{plural(runs, 'run')} of {', '.join(self.entries)} on "
            f"{plural(len(works), 'dataset')}; at MD's speed, {max(minutes, 1):.0f} min on "
            f"{plural(cores, 'core')}; finished runs are reused"
        )
        if away := [work.name for work in works if not work.is_on_hand]:
            self.echo(f"data to download, at the end: {', '.join(away)}")

    def _train(
        self,
        compared: Project,
        names: Sequence[str],
        cores: int,
        end: float | None,
        best: Mapping[str, Mapping[str, str]],
        worlds: int | None,
    ) -> dict[str, Mapping[str, str]]:
        """Return the best trials on the datasets that are finished."""
        outcomes = self._outcomes(compared, names, cores, end, best, worlds)
        return {name: each.value for name, each in outcomes.items() if each.value}

    def _outcomes(
        self,
        compared: Project,
        names: Sequence[str],
        cores: int,
        end: float | None,
        best: Mapping[str, Mapping[str, str]],
        worlds: int | None,
    ) -> dict[str, TaskOutcome]:
        began, count = time.monotonic(), iter(range(1, len(names) + 1))
        scope = f"{worlds} worlds" if worlds else "all worlds"

        def tell(name: str, outcome: TaskOutcome) -> None:
            place = f"{next(count)} of {len(names)}"
            what = "stopped" if outcome.is_stopped else outcome.reason or f"{scope} finished"
            self.echo(f"{name}: {what} ({place}, {time.monotonic() - began:.0f} s)")

        def work(name: str) -> dict[str, str]:
            return train_on(name, compared, [*self.entries], best.get(name), worlds)

        return run_each(names, work, cores, tell, end)

    def _chosen(self, best: Mapping[str, Mapping[str, str]]) -> Overrides:
        """Return the overrides of finished datasets, with the best trials of the entries."""
        overrides = dict.fromkeys(self.overrides)
        for name, cases in best.items():
            overrides[name] = {**self.overrides[name], "chosen": dict(cases)}
            overrides[TUNING + name] = self.overrides[TUNING + name]
        return overrides

    def _project(self, overrides: Overrides) -> Project:
        compared = self.matrix.with_config(overrides={CROSS_MATRIX: overrides})
        compared = compared.in_subfolder(self.run)
        compared.write()
        return compared

    def _show(self, compared: Project, titles: Mapping[str, str], note: str) -> int:
        """Draw the results, print them with a note, and return the exit status."""
        if status := draw(CROSS_MATRIX, compared):
            return status
        report = build_report(compared)
        artefacts = compared.folder / "artefacts" / CROSS_MATRIX
        own_data = self.problem.data is not None
        for line in result_lines(artefacts, self.entries, titles, own_data):
            self.echo(line)
        if note:
            self.echo(note)
        self.echo(f"page: {report.with_name('schemes.html')}")
        return 0
>>>>>>> 0af98d42d66ce9dc65f25d8ce247442f45f5574d


def _cross_matrix(project: Project, files: Sequence[Path], scale: str) -> Project:
    """Return the cross matrix at a scale, with the samplers of some files."""
    return project.with_config(
        scale=scale,
        data="embedded" if scale == "quick" else "official",
        papers=[CROSS_MATRIX],
        experiments=None,
        schemes=list(dict.fromkeys([*project.config.schemes, *map(str, files)])),
        overrides={},
    )
