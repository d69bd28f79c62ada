"""The datasets and samplers of a comparison, as overrides of ``papers/crossmatrix``.

A comparison adds the user's samplers, and leaves out other datasets, and samplers that cannot be
compared.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby
from typing import Any

from fedsampling.base.errors import InputError, check_known
from fedsampling.base.nested import merge
from fedsampling.experiments.cross_matrix import BENCH, CROSS_MATRIX, REFERENCE
from fedsampling.experiments.networks.training import build_learner, build_sampler
from fedsampling.experiments.papers import Paper
from fedsampling.experiments.resolving import resolved_settings
from fedsampling.experiments.selecting import load_papers
from fedsampling.experiments.shorthand import TUNING
from fedsampling.experiments.simulations.network import NetworkSimulation, load_problem
from fedsampling.experiments.simulations.simulation import RunContext
from fedsampling.runs.places import file_name, file_names, finished_runs, run_stores
from fedsampling.workflow.comparing.entries import Entry
from fedsampling.workflow.comparing.own_problem import ABSENT, REPLACED_EXPERIMENT, OwnProblem
from fedsampling.workflow.project import Project

# What users can do if their own sampler does not fit.
FIXES = {ABSENT: "; set intermittent = True in its class if it selects only from view.offered"}
Overrides = dict[str, Any]  # of the cross matrix, by experiment; see Config.overrides
Echo = Callable[[str], None]


@dataclass(frozen=True)
class Competition:
    """The entries, datasets and other samplers of a comparison."""

    matrix: Project  # the cross matrix at the scale of the comparison
    entries: Mapping[str, Entry]  # by label
    datasets: Sequence[str]  # experiments of the cross matrix
    problem: OwnProblem
    against: Sequence[str]  # the other samplers; if empty, all

    def with_fitting_samplers(self, common: Mapping[str, Any], echo: Echo) -> Overrides:
        """Return overrides with all samplers that can train the model; echo the others."""
        names = {REFERENCE, *self.against, *(entry["name"] for entry in self.entries.values())}
        compared = [name for name in common if name in names or not self.against]
        reasons = self.problem.untrainable({name: common[name] for name in compared})
        overrides = self._overrides(reasons)
        reasons |= misfits(self.matrix.with_config(overrides={CROSS_MATRIX: overrides}))
        of_entries = {
            label: reasons.get(label, reasons.get(entry["name"]))
            for label, entry in self.entries.items()
        }
        if refused := [
            f"{label}: {reason}{FIXES.get(reason, '')}"
            for label, reason in of_entries.items()
            if reason
        ]:
            raise InputError(*refused)
        for label, reason in reasons.items():
            echo(f"left out: {label}: {reason}")
        return self._overrides(reasons)

    def training(self, run: str, is_benchmark: bool, echo: Echo) -> Project:
        """Return the project that trains the entries; of the others, it has only the reference.

        Datasets on which the reference's runs are not finished are an error, or left out if
        `is_benchmark`: if the comparison is on the whole benchmark.
        """
        overrides = replace(self, against=[REFERENCE])._overrides()
        project = self.project(overrides, run)
        missing = self._unfinished(project)[1]
        unusable = [name for name in self.datasets if name in missing]
        if unusable and (not is_benchmark or {*self.datasets} <= {*unusable}):
            raise InputError(
                f"--on {unusable[0]}: the runs of {REFERENCE}, which sets the "
                f"target, are not finished at {self.matrix.config.scale} scale; use another "
                "dataset or scale"
            )
        if unusable:  # a rank does not need all datasets
            echo(
                f"without {', '.join(unusable)}: nobody has published runs of {REFERENCE} there, "
                "which set the target"
            )
            left_out = {prefix + name: None for name in unusable for prefix in ("", TUNING)}
            project = self.project(overrides | left_out, run)
        project.write()
        return project

    def with_finished_samplers(self, datasets: Collection[str], echo: Echo) -> Overrides:
        """Return overrides with the samplers whose runs on `datasets` are finished.

        At quick scale, these are all.
        """
        overrides = replace(self, datasets=[*datasets])._overrides()
        if self.matrix.config.scale == "quick":
            return overrides
        planned, missing = self._unfinished(
            self.matrix.with_config(overrides={CROSS_MATRIX: overrides})
        )
        for name, samplers in missing.items():
            for experiment in (name, TUNING + name):
                overrides[experiment]["samplers"] |= dict.fromkeys(samplers)
        finished = {name: planned[name] - {*missing.get(name, ())} for name in planned}
        count = Counter(chain.from_iterable(finished.values()))
        partly = sorted({name for samplers in missing.values() for name in samplers})
        if never := [name for name in partly if not count[name]]:
            echo(f"left out, because nobody has published runs of them here: {', '.join(never)}")
        if parts := [f"{name} (on {count[name]})" for name in partly if count[name]]:
            echo(
                f"compared on fewer of the {len(finished)} datasets, where their runs are "
                f"published: {', '.join(parts)}"
            )
        return overrides

    def project(self, overrides: Overrides, run: str) -> Project:
        """Return the comparison's project with these overrides, in a subfolder of the results."""
        changed = self.matrix.with_config(overrides={CROSS_MATRIX: overrides})
        return changed.in_subfolder(run)

    @cached_property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The resolved experiments of the cross matrix."""
        return resolved_settings(self._paper, self.matrix.config)

    @cached_property
    def _paper(self) -> Paper:
        return cross_matrix(self.matrix)

    def _overrides(self, left_out: Collection[str] = ()) -> Overrides:
        """Return overrides that add the entries to the datasets and remove all others."""
        overrides: Overrides = dict.fromkeys([*self._paper.experiments, *self._paper.left_out])
        for experiment in (prefix + name for name in self.datasets for prefix in ("", TUNING)):
            resolved = self.settings[experiment]
            overrides[experiment] = {
                "samplers": self._samplers(experiment, resolved["samplers"], left_out),
                **self.problem.settings(experiment, resolved),
            }
        return overrides

    def _samplers(
        self, experiment: str, matrix_samplers: Mapping[str, Any], left_out: Collection[str]
    ) -> dict[str, Any]:
        """Return an experiment's samplers: the entries, and the samplers to compare them with."""
        shared = self.problem.sampler_settings()
        common = {
            name: record | {key: value for key, value in shared.items() if key in record}
            for name, record in matrix_samplers.items()
        }
        samplers = {
            label: common[entry["name"]] | entry
            for label, entry in self.entries.items()
            if entry["name"] in common and entry["name"] not in left_out
        }
        if not self.problem and not self.against:
            return samplers  # in addition to the paper's "*"
        compared = {entry["name"] for entry in self.entries.values()}
        names = [name for name in common if name not in compared and name not in left_out]
        if self.against:
            names = [name for name in names if name in (REFERENCE, *self.against)]
        samplers |= {name: common[name] for name in names}
        written = self._paper.experiments[experiment]
        labels = merge(written, written.get(self.matrix.config.scale) or {})["samplers"]
        return samplers | {label: None for label in labels if label not in samplers}

    def _unfinished(self, project: Project) -> tuple[dict[str, set[str]], dict[str, list[str]]]:
        """Return, by dataset, the other samplers, and those with missing runs, tuning included."""
        target, shared = run_stores(project.results, project.config)
        finished, stored = finished_runs(shared), file_names(target)
        planned: dict[str, set[str]] = {}
        missing: dict[str, list[str]] = {}
        for job in project.plan.jobs.values():
            dataset = job.experiment.removeprefix(TUNING)
            planned.setdefault(dataset, set())
            samplers = missing.setdefault(dataset, [])
            if job.sampler in self.entries or job.sampler in samplers:
                continue
            planned[dataset].add(job.sampler)
            if not all(
                run.hash in finished or file_name(run.hash, job.code) in stored for run in job.runs
            ):
                samplers.append(job.sampler)
        return planned, {name: samplers for name, samplers in missing.items() if samplers}


def misfits(project: Project) -> dict[str, str]:
    """Return the reasons why samplers, by label, do not fit the clients or the model."""
    context = RunContext(project.data, project.config.mirror)
    reasons: dict[str, str] = {}
    for _, jobs in groupby(project.plan.jobs.values(), lambda job: job.experiment):
        networks: dict[str, NetworkSimulation] = {}
        for job in jobs:
            if isinstance(job.simulation, NetworkSimulation):
                networks[job.sampler] = job.simulation
        first, data = next(iter(networks.values())), job.runs[0].data
        learner = build_learner(first, load_problem(first, data, context), data, context)
        for label, network in networks.items():
            try:
                build_sampler(network, learner, [0])
            except (InputError, ValueError) as error:
                reasons.setdefault(label, str(error).splitlines()[0])
    return reasons


def usual_scale(datasets: Sequence[str], problem: OwnProblem) -> str:
    """Return the scale at which the other samplers' runs on these datasets are finished."""
    finished = all(name.startswith(BENCH) for name in datasets)
    return "paper" if finished and not problem else "reduced"


def cross_matrix(matrix: Project) -> Paper:
    """Return the paper ``crossmatrix`` at a project's scale."""
    return load_papers(matrix.config, matrix.papers)[CROSS_MATRIX]


def chosen_datasets(
    matrix: Project, names: Sequence[str], scale: str, problem: OwnProblem
) -> list[str]:
    """Return the experiments to compare on.

    By default, all at this scale; at paper scale, those that two processor cores can finish.
    """
    experiments = cross_matrix(matrix).experiments
    tuned = [name for name in experiments if TUNING + name in experiments]
    if problem.data is not None:
        if names:
            raise InputError("--on: no effect with --data; remove one of the two")
        if scale == "quick" and problem.learning_rates:
            raise InputError("--learning-rates: no effect at quick scale; use --scale reduced")
        problem.clients  # noqa: B018 -- an invalid file is reported before anything is checked
        return [REPLACED_EXPERIMENT]
    if problem.model is not None and not names:
        raise InputError("--model: needs datasets; name them with --on, or use --data")
    check_known(names, tuned, f"--on {{}}: no dataset at {scale} scale")
    benchmark = [name for name in tuned if name.startswith(BENCH)]
    return list(dict.fromkeys(names)) or benchmark or tuned
