"""The cross matrix of ``fedsampling compare``: which samplers and datasets it keeps.

A comparison overrides the experiments of ``papers/crossmatrix``: it adds the user's samplers, and
leaves out other datasets, and samplers that cannot be compared.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedsampling.base.errors import InputError
from fedsampling.base.records import merge
from fedsampling.experiments.cross_matrix import PAPER, REFERENCE, TUNING
from fedsampling.experiments.papers import load_paper
from fedsampling.runs.execute import locate
from fedsampling.runs.places import run_stores
from fedsampling.workflow.comparing.entries import Entry
from fedsampling.workflow.comparing.own_problem import OwnProblem, misfits
from fedsampling.workflow.project import Project

Overrides = dict[str, Any]  # of the cross matrix, by experiment; see Config.overrides
Echo = Callable[[str], None]


@dataclass(frozen=True)
class Comparison:
    """The entries, datasets and other samplers of a comparison."""

    matrix: Project  # the cross matrix at the scale of the comparison
    entries: Mapping[str, Entry]  # by label
    datasets: Sequence[str]  # experiments of the cross matrix
    problem: OwnProblem
    against: Sequence[str]  # the other samplers; if empty, all

    def with_fitting_samplers(self, common: Mapping[str, Any], echo: Echo) -> Overrides:
        """Return overrides with all samplers that can train the user's model on the user's data.

        `common`: settings of all samplers of the cross matrix. `echo`: prints a line, for each
        sampler that is left out.
        """
        samplers = {entry.sampler for entry in self.entries.values()}
        compared = {REFERENCE, *self.against, *samplers} if self.against else {*common}
        reasons = self.problem.untrainable(
            {name: settings for name, settings in common.items() if name in compared}
        )
        overrides = self._overrides(self.datasets, reasons)
        reasons |= misfits(self.matrix.with_config(overrides={PAPER: overrides}))
        of_entries = {
            label: reasons.get(label, reasons.get(entry.sampler))
            for label, entry in self.entries.items()
        }
        if refused := [f"{label}: {reason}" for label, reason in of_entries.items() if reason]:
            raise InputError(*refused)
        for label, reason in reasons.items():
            echo(f"left out: {label}: {reason}")
        return self._overrides(self.datasets, reasons)

    def with_finished_samplers(self, is_benchmark: bool, echo: Echo) -> Overrides:
        """Return overrides with the samplers whose runs are finished; at quick scale, with all.

        Datasets of the benchmark on which the reference's runs are not finished are left out.

        `is_benchmark`: whether to compare on the whole benchmark. `echo`: prints a line, with the
        datasets and samplers that are left out.
        """
        scale = self.matrix.config.scale
        overrides = self._overrides(self.datasets, ())
        if scale == "quick":
            return overrides
        missing = self._unfinished(overrides)
        unusable = [name for name, samplers in missing.items() if REFERENCE in samplers]
        if unusable and (not is_benchmark or {*self.datasets} <= {*unusable}):
            raise InputError(
                f"--on {unusable[0].removeprefix(TUNING)}: the runs of {REFERENCE}, which sets the "
                f"target, are not finished at {scale} scale; use another dataset or scale"
            )
        for experiment in unusable:  # a rank does not need all datasets
            overrides[experiment] = None
            del missing[experiment]
        for experiment, samplers in missing.items():
            overrides[experiment]["samplers"] |= dict.fromkeys(samplers)
        left_out = [name for name in unusable if not name.startswith(TUNING)]
        left_out += sorted({name for samplers in missing.values() for name in samplers})
        if left_out:
            echo(f"left out because their runs are not finished: {', '.join(left_out)}")
        return overrides

    def _overrides(self, experiments: Sequence[str], left_out: Collection[str]) -> Overrides:
        """Return overrides that add the entries to some experiments and remove all others.

        `left_out`: samplers to remove.
        """
        plan = self.matrix.plan
        compared = {*experiments, *(TUNING + name for name in experiments)}
        overrides: Overrides = {}
        for experiment in load_paper(PAPER, plan.papers[PAPER].folder.parent).experiments:
            if experiment in compared:
                resolved = plan.experiments[f"{PAPER}/{experiment}"]
                overrides[experiment] = {
                    "samplers": self._samplers(experiment, resolved["samplers"], left_out),
                    **self.problem.settings(experiment, resolved),
                }
            else:
                overrides[experiment] = None
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
            label: common[entry.sampler] | entry.settings
            for label, entry in self.entries.items()
            if entry.sampler in common and entry.sampler not in left_out
        }
        if not self.problem and not self.against:
            return samplers  # in addition to the paper's "*"
        compared = {entry.sampler for entry in self.entries.values()}
        names = [name for name in common if name not in compared and name not in left_out]
        if self.against:
            names = [name for name in names if name in (REFERENCE, *self.against)]
        samplers |= {name: common[name] for name in names}
        written = self.matrix.plan.papers[PAPER].experiments[experiment]
        labels = merge(written, written.get(self.matrix.config.scale) or {})["samplers"]
        return samplers | {label: None for label in labels if label not in samplers}

    def _unfinished(self, overrides: Overrides) -> dict[str, list[str]]:
        """Return, by experiment, the other samplers with missing runs, tuning included."""
        project = self.matrix.with_config(overrides={PAPER: overrides})
        target, shared = run_stores(project.results, project.config)
        missing: dict[str, dict[str, None]] = {}  # by dataset; the inner dict is an ordered set
        for job in project.plan.jobs.values():
            samplers = missing.setdefault(job.experiment.removeprefix(TUNING), {})
            if job.sampler in self.entries or job.sampler in samplers:
                continue
            if not all(locate(run.hash, target, shared, job.code) for run in job.runs):
                samplers[job.sampler] = None
        return {
            experiment: [*samplers]
            for name, samplers in missing.items()
            for experiment in (name, TUNING + name)
            if samplers and f"{PAPER}/{experiment}" in project.plan.experiments
        }
