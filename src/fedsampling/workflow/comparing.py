"""Comparison of users' samplers with all others: check, run in the cross matrix, and rank.

The comparison is the cross matrix (``papers/crossmatrix``) with additional samplers.  If the runs
of the other samplers are published, only the new samplers are run.  Runs go to the store;
summaries, artefacts and a report of the comparison go to ``<results>/compare/<sampler>/``.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedsampling.base.errors import InputError, check_known, naming
from fedsampling.base.nested import merge
from fedsampling.base.records import check
from fedsampling.base.text import align
from fedsampling.base.yaml_reading import parse_yaml
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.data.federated import FederatedDataset
from fedsampling.evidence.scores import is_at_edge
from fedsampling.experiments.papers import BENCH, CROSS_MATRIX, REFERENCE
from fedsampling.experiments.shorthand import TUNING
from fedsampling.experiments.simulations.network import (
    OPAQUE,
    Network,
    build_learner,
    build_sampler,
    load_problem,
)
from fedsampling.experiments.simulations.simulation import Where
from fedsampling.learning.models.settings import ModelFile
from fedsampling.runs.execute import locate
from fedsampling.runs.places import run_stores
from fedsampling.samplers.checks.check import check_sampler
from fedsampling.samplers.checks.rounds import N
from fedsampling.samplers.protocol.base import Scheme, scheme
from fedsampling.samplers.users.files import load_file
from fedsampling.workflow.draw import draw
from fedsampling.workflow.project import Project
from fedsampling.workflow.report import build_report
from fedsampling.workflow.run import execute_all

REPLACED_EXPERIMENT = "digit"  # whose data are replaced
CLIENTS_PER_SELECTED, MAX_SELECTED = 5, 10  # one client in five is selected, at most ten


@dataclass(frozen=True)
class OwnProblem:
    """A user's own samples and model for a comparison, as given by the options.

    They replace those of the cross matrix.  No finished run matches, so all samplers are trained.

    `target`, `client` and `test` are columns of the file `data`; `test` marks test samples. `model`
    is ``my_model.py:Net``, or the name of a model of the package; `loss` a function in the model's
    file. `learning_rates` is the grid of tuning, such as ``0.1,0.3``.
    """

    data: Path | None = None
    target: str = "y"
    client: str = "client"
    test: str | None = None
    client_info: Path | None = None
    model: str | None = None
    loss: str | None = None
    rounds: int | None = None
    seeds: int | None = None
    learning_rates: str | None = None

    def __post_init__(self) -> None:
        if self.loss is not None and ":" not in (self.model or ""):
            raise InputError(
                "--loss: no effect without --model FILE:NAME; add it, or remove --loss"
            )
        for option in ("rounds", "seeds", "learning_rates", "test", "client_info"):
            if getattr(self, option) and self.data is None:
                name = f"--{option.replace('_', '-')}"
                raise InputError(f"{name}: no effect without --data; add it, or remove {name}")

    def __bool__(self) -> bool:
        return self.data is not None or self.model is not None

    @property
    def name(self) -> str:
        """The names of the data file and the model, such as ``clients-my_model-Net``."""
        data = "" if self.data is None else self.data.stem
        model = (self.model or "").replace(".py:", "-").rpartition("/")[2]
        return "-".join(filter(None, [data, model]))

    def settings(self, experiment: str, resolved: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings that replace those of an experiment, which is `resolved`."""
        changes: dict[str, Any] = {}
        if self.data is not None:
            holdout = ", learning rates on a holdout" if experiment.startswith(TUNING) else ""
            changes = {
                "title": f"{self.data.name}{holdout}",
                "dataset": self._dataset,
                "inputs": self.clients.input_type,
                "model": {"name": "mlp" if self.clients.classes else "linear"},
            }
            if self.rounds:
                interval = resolved["settings"]["evaluation"]["every"]
                changes["rounds"] = self.rounds
                changes["evaluation"] = {"every": min(interval, max(self.rounds // 10, 1))}
            if self.seeds and not experiment.startswith(TUNING):
                changes["seeds"] = self.seeds
            if rates := self._rates():
                cases = {f"step-{rate:g}": {"work": {"step": rate}} for rate in rates}
                changes["cases"] = dict.fromkeys(resolved["cases"]) | cases
        if self.model is not None:
            changes["model"] = self._model
        return changes

    def sampler_settings(self) -> dict[str, int]:
        """Return the samplers' settings that follow from the number of clients."""
        if self.data is None:
            return {}
        m = min(MAX_SELECTED, max(self.clients.n_clients // CLIENTS_PER_SELECTED, 1))
        return {"m": m, "first": m, "d": 2 * m, "available": 3 * m}

    def untrainable(self, samplers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
        """Return the reasons why samplers, by label, cannot train a user's module."""
        if self.model is None or ":" not in self.model:
            return {}
        return {
            label: OPAQUE.removeprefix("model: {} ")
            for label, record in samplers.items()
            if "heterogeneity" in check(Scheme, dict(record), "").needs
        }

    def _rates(self) -> list[float]:
        try:
            rates = [float(word) for word in (self.learning_rates or "").split(",") if word.strip()]
        except ValueError:
            rates = [-1.0]
        if any(not 0 < rate < np.inf for rate in rates):
            raise InputError(
                f"--learning-rates {self.learning_rates}: invalid; must be positive numbers, "
                "such as 0.1,0.3,1"
            )
        return rates

    def check_model(self) -> None:
        """Report an error in the model's file before samplers are checked."""
        if self.model is not None and ":" in self.model:
            from fedsampling.learning.models.own_files import check_file

            with naming("--model"):
                check_file(check(ModelFile, self._model, ""))

    @property
    def _model(self) -> dict[str, str]:
        file, colon, name = (self.model or "").rpartition(":")
        loss = {} if self.loss is None else {"loss": self.loss}
        return {"file": file, "name": name, **loss} if colon else {"name": name}

    @cached_property
    def clients(self) -> FederatedDataset:
        """The clients of the file."""
        with naming("--data"):
            return check(Dataset, self._dataset, "").load("official", 0, Path(), None)

    @property
    def _dataset(self) -> dict[str, Any]:
        columns = {"target": self.target, "client": self.client}
        if self.test is not None:
            columns["test"] = self.test
        if self.client_info is not None:
            columns["client_info"] = str(self.client_info)
        return {"name": "files", "path": str(self.data), **columns}


def compare(
    files: Sequence[Path],
    project: Project,
    echo: Callable[[str], None],
    scale: str | None,
    problem: OwnProblem,
    settings: Sequence[str],
    datasets: Sequence[str],
    against: Sequence[str],
) -> int:
    """Compare the samplers that some files define with each other and with all others.

    All samplers of a file are compared.  `settings`: see :func:`all_entries`;
    `datasets`, of the cross matrix: see :func:`chosen_datasets`; `scale`: see :func:`usual_scale`;
    `against`: the other samplers, besides md, or all.  Prints lines with `echo`.  Returns the exit
    status: 0, or that of an interrupted job; the same command resumes it.
    """
    echo(f"reading {', '.join(map(str, files))} and the cross matrix")
    members = list(dict.fromkeys(member for file in files for member in load_file(file)))
    is_step = all(str(file) in project.config.schemes for file in files)
    made = project.made(f"compare/{members[-1].named}")
    with made.making() if is_step else nullcontext():
        scale = scale or usual_scale(datasets, problem)
        return _compare(members, files, project, echo, scale, problem, settings, datasets, against)


def _compare(
    members: Sequence[type[Scheme]],
    files: Sequence[Path],
    project: Project,
    echo: Callable[[str], None],
    scale: str,
    problem: OwnProblem,
    settings: Sequence[str],
    datasets: Sequence[str],
    against: Sequence[str],
) -> int:
    entries = all_entries(members, settings)
    matrix = _cross_matrix(project, files, scale)
    quick = matrix.with_config(scale="quick", data="embedded").plan.experiments
    common: Mapping[str, Any] = next(iter(quick.values()))["samplers"]  # quick scale runs them all
    check_known(against, common, "--against {}: unknown")
    chosen = chosen_datasets(matrix, datasets, scale, problem)
    problem.check_model()
    for label, entry in entries.items():
        echo(f"{label}: checking")
        with naming(label) if len(entries) > 1 else nullcontext():
            check_entry(entry, common.get(entry["name"], {}))
        echo(f"{label}: passes the check (slots, bias, reproducibility, observations, memory)")
    comparison = Comparison(matrix, entries, chosen, problem, against)
    if problem:
        overrides = comparison.with_fitting_samplers(common, echo)
    else:
        is_benchmark = not datasets and all(name.startswith(BENCH) for name in chosen)
        overrides = comparison.with_finished_samplers(is_benchmark, echo)
        chosen = [name for name in chosen if overrides[name]]
    names = [member.named for member in members]
    subfolder = "compare/" + "-".join(filter(None, [*names, problem.name]))
    compared = matrix.with_config(overrides={CROSS_MATRIX: overrides}).in_subfolder(subfolder)
    compared.write()
    plan = compared.plan
    titles = [problem.data.name] if problem.data else chosen
    jobs = [plan.jobs[job] for job in plan.jobs_to_run(CROSS_MATRIX)]
    runs = sum(len(job.runs) for job in plan.jobs.values() if job.sampler in entries)
    echo(f"{len(jobs)} jobs, {runs} runs of {', '.join(names)}, on {', '.join(titles)}")
    if status := execute_all(jobs, compared, lambda manifest: None):
        return status
    if status := draw(CROSS_MATRIX, compared):
        return status
    report = build_report(compared)
    artefacts = compared.folder / "artefacts" / CROSS_MATRIX
    by_experiment = dict(zip(chosen, titles, strict=True))
    for line in result_lines(artefacts, entries, by_experiment, own_data=problem.data is not None):
        echo(line)
    if scale == "quick":
        echo("Quick scale only shows that the sampler runs; it is not evidence.")
    echo(f"page: {report.with_name('schemes.html')}")
    return 0


def usual_scale(datasets: Sequence[str], problem: OwnProblem) -> str:
    """Return the scale at which the other samplers' runs on these datasets are finished."""
    finished = all(name.startswith(BENCH) for name in datasets)
    return "paper" if finished and not problem else "reduced"


def chosen_datasets(
    matrix: Project, names: Sequence[str], scale: str, problem: OwnProblem
) -> list[str]:
    """Return the experiments to compare on.

    By default, all at this scale; at paper scale, those that two processor cores can finish.
    """
    experiments = [key.partition("/")[2] for key in matrix.plan.experiments]
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


# The cross matrix of ``fedsampling compare``: which samplers and datasets it keeps.
#
# A comparison overrides the experiments of ``papers/crossmatrix``: it adds the user's samplers, and
# leaves out other datasets, and samplers that cannot be compared.


Entry = dict[str, Any]  # one competitor of a comparison: a sampler's name, and settings of --set


def all_entries(members: Sequence[type[Scheme]], words: Sequence[str]) -> dict[str, Entry]:
    """Return the entries of some samplers by label: a name, and the values that differ.

    `words`: settings, ``key=value`` or ``key=value,value``; several values give several entries.  A
    setting applies to all samplers that have it.
    """
    values: dict[str, list[str]] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"--set {word}: not a setting; write it as key=value")
        parts = [value] if value[:1] in ("[", "{") else value.split(",")
        values.setdefault(key, []).extend(part.strip() for part in parts)
    entries = {}
    fields = {key for member in members for key in member.model_fields}
    for member in members:
        # A setting that no sampler has goes to all of them, which reject it.
        keys = [key for key in values if key in member.model_fields or key not in fields]
        if varied := [key for key in keys if key in member.grid]:
            raise InputError(
                f"--set {varied[0]}: tuning chooses it, because the grid of {member.named} has it; "
                "remove one of the two"
            )
        for combination in product(*(values[key] for key in keys)):
            texts = dict(zip(keys, combination, strict=True))
            differing = [f"{key}-{text}" for key, text in texts.items() if len(values[key]) > 1]
            settings = {key: parse_yaml(text, f"--set {key}") for key, text in texts.items()}
            entries["-".join([member.named, *differing])] = {"name": member.named, **settings}
    return entries


def check_entry(entry: Entry, common: Mapping[str, Any]) -> None:
    """Check that an entry, with the settings `common` to its sampler, works as it declares."""
    settings = {**common, **entry}
    if isinstance(m := settings.get("m"), int):
        settings["m"] = min(m, N)  # the check uses small populations
    try:
        sampler = scheme(**settings)
    except InputError as error:
        raise InputError(*(line.replace("scheme.", "--set ", 1) for line in error.lines)) from None
    check_sampler(sampler)


def misfits(project: Project) -> dict[str, str]:
    """Return the reasons why samplers, by label, do not fit the clients or the model."""
    where = Where(project.data, project.config.mirror)
    reasons: dict[str, str] = {}
    for _, jobs in groupby(project.plan.jobs.values(), lambda job: job.experiment):
        networks: dict[str, Network] = {}
        for job in jobs:
            if isinstance(job.simulation, Network):
                networks[job.sampler] = job.simulation
        first, data = next(iter(networks.values())), job.runs[0].data
        learner = build_learner(first, load_problem(first, data, where), data, where)
        for label, network in networks.items():
            try:
                build_sampler(network, learner, [0])
            except (InputError, ValueError) as error:
                reasons.setdefault(label, str(error).splitlines()[0])
    return reasons


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
        if refused := [f"{label}: {reason}" for label, reason in of_entries.items() if reason]:
            raise InputError(*refused)
        for label, reason in reasons.items():
            echo(f"left out: {label}: {reason}")
        return self._overrides(reasons)

    def with_finished_samplers(self, is_benchmark: bool, echo: Echo) -> Overrides:
        """Return overrides with the samplers whose runs are finished; at quick scale, with all.

        Datasets on which the reference's runs are not finished are an error, or left out if
        `is_benchmark`: if the comparison is on the whole benchmark.
        """
        scale = self.matrix.config.scale
        overrides = self._overrides()
        if scale == "quick":
            return overrides
        missing = self._unfinished(overrides)
        unusable = [name for name, samplers in missing.items() if REFERENCE in samplers]
        if unusable and (not is_benchmark or {*self.datasets} <= {*unusable}):
            raise InputError(
                f"--on {unusable[0]}: the runs of {REFERENCE}, which sets the "
                f"target, are not finished at {scale} scale; use another dataset or scale"
            )
        for name in unusable:  # a rank does not need all datasets
            overrides |= {name: None, TUNING + name: None}
            del missing[name]
        for name, samplers in missing.items():
            for experiment in (name, TUNING + name):
                overrides[experiment]["samplers"] |= dict.fromkeys(samplers)
        left_out = unusable + sorted({name for samplers in missing.values() for name in samplers})
        if left_out:
            echo(f"left out because their runs are not finished: {', '.join(left_out)}")
        return overrides

    def _overrides(self, left_out: Collection[str] = ()) -> Overrides:
        """Return overrides that add the entries to the datasets and remove all others."""
        plan = self.matrix.plan
        paper = plan.papers[CROSS_MATRIX]
        overrides: Overrides = dict.fromkeys([*paper.experiments, *paper.left_out])
        for experiment in (prefix + name for name in self.datasets for prefix in ("", TUNING)):
            resolved = plan.experiments[f"{CROSS_MATRIX}/{experiment}"]
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
        written = self.matrix.plan.papers[CROSS_MATRIX].experiments[experiment]
        labels = merge(written, written.get(self.matrix.config.scale) or {})["samplers"]
        return samplers | {label: None for label in labels if label not in samplers}

    def _unfinished(self, overrides: Overrides) -> dict[str, list[str]]:
        """Return, by dataset, the other samplers with missing runs, tuning included."""
        project = self.matrix.with_config(overrides={CROSS_MATRIX: overrides})
        target, shared = run_stores(project.results, project.config)
        missing: dict[str, list[str]] = {}
        for job in project.plan.jobs.values():
            samplers = missing.setdefault(job.experiment.removeprefix(TUNING), [])
            if job.sampler in self.entries or job.sampler in samplers:
                continue
            if not all(locate(run.hash, target, shared, job.code) for run in job.runs):
                samplers.append(job.sampler)
        return {name: samplers for name, samplers in missing.items() if samplers}


# The results of ``fedsampling compare`` as lines, from the artefacts of the cross matrix.


INDENT = "  "
AT_EDGE = "; at the edge of the grid"
WIDEN = ", which --learning-rates extends"


def result_lines(
    artefacts: Path, labels: Iterable[str], titles: Mapping[str, str], own_data: bool
) -> Iterator[str]:
    """Yield the results of each entry: ranks, learning rates, and datasets won and lost.

    `artefacts`: folder of the cross matrix's artefacts. `titles`: names of the datasets to show, by
    experiment. `own_data`: whether ``--learning-rates`` can extend the grid.
    """
    names = ("ranks", "tuning", "matrix_rounds")
    files = [artefacts / f"{BENCH}{name}" / f"{BENCH}{name}.csv" for name in names]
    ranks, grid = map(pd.read_csv, files[:2])
    matrix = pd.read_csv(files[2]) if files[2].is_file() else None
    grid["experiment"] = grid["experiment"].replace(dict(titles))
    for label in labels:
        yield f"{label}, with speed-ups over MD and 95 % intervals over families of datasets:"
        yield from ranking(ranks, label)
        if matrix is not None:
            yield from wins_and_losses(matrix, label)
        yield from chosen_steps(grid, label, AT_EDGE + WIDEN * own_data)


def ranking(ranks: pd.DataFrame, label: str) -> list[str]:
    """Tabulate a sampler's ranks and speed-ups, one line per measure below a header.

    `ranks`: the artefact ``bench_ranks``.  Intervals are shown if there are several families.
    """
    by_measure = ranks.groupby("measure", sort=False)
    ranked = f"rank of {by_measure['rank'].count().max()}"
    rows = [("cost", ranked, "speed-up", "worst family", "reached target")]
    for measure, table in by_measure:
        (row,) = table[table["scheme"] == label].to_dict("records")
        rank = "none" if pd.isna(row["rank"]) else f"{row['rank']:g}"
        interval = f" [{row['low']:.2f}, {row['high']:.2f}]" if row["families"] > 1 else ""
        speed_up, worst = f"{row['speed_up']:.2f}{interval}", f"{row['worst']:.2f}"
        rows.append((str(measure), rank, speed_up, worst, f"{row['reached']} of {row['runs']}"))
    return align(rows, INDENT)


def wins_and_losses(matrix: pd.DataFrame, label: str) -> list[str]:
    """Name the datasets on which the whole interval of the speed-up is above or below 1."""
    rows = matrix[matrix["scheme"] == label]
    wins, losses = rows[rows["speed_up_low"] > 1], rows[rows["speed_up_high"] < 1]
    sides = {"faster": wins, "slower": losses}
    return [
        f"  {side} than MD in rounds: {'; '.join(part['title']) or 'on no dataset'}"
        for side, part in sides.items()
    ]


def chosen_steps(grid: pd.DataFrame, label: str, at_edge: str = AT_EDGE) -> list[str]:
    """Tabulate the learning rates that tuning chose for a sampler, one line per dataset.

    `grid`: the artefact ``tuning``; at quick scale it has only md.  `at_edge`: text after a
    learning rate that is the smallest or largest of its grid.
    """
    rows = []
    for name, table in grid[grid["sampler"] == label].groupby("experiment", sort=False):
        steps = sorted(table["step"].unique())
        tried = ", ".join(f"{step:g}" for step in steps)
        for step in table.loc[table["chosen"], "step"]:
            rows.append((str(name), f"{step:g}", tried + at_edge * is_at_edge(step, steps)))
    return align([("tuned on", "learning rate", "tried"), *rows], INDENT) if rows else []
