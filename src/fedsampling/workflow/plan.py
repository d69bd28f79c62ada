"""The plan of a configuration: papers, jobs, data cards, and their files.

The Snakefile imports this module, so it must stay light: no pandas, matplotlib or torch.
"""

import gc
import hashlib
import json
from collections import UserDict
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from fedsampling.base import inputs
from fedsampling.base.errors import InputError, check_known, gathering
from fedsampling.base.files import digest, write_text
from fedsampling.base.records import check
from fedsampling.experiments import config as configuration
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import Paper
from fedsampling.experiments.registration import CONFIRM, with_seeds
from fedsampling.experiments.resolving import (
    Experiment,
    folders_of,
    load_papers,
    resolve_experiments,
    without,
)
from fedsampling.experiments.specs import DatasetUse, Job, RunSpec, dataset_uses, jobs
from fedsampling.runs.places import (
    CARDS,
    PAPERS,
    PUBLISHED,
    RESULTS,
    finished_runs,
    published_runs,
    run_stores,
)
from fedsampling.samplers.users.files import load_file

# Maximum number of quick-scale jobs that share a process.  Starting a process takes two seconds of
# imports, often more than the job; but larger batches would leave cores idle.
QUICK_JOBS_PER_PROCESS = 40
FIGURE_FILES, TABLE_FILES = ("svg", "png", "csv"), ("html", "csv", "tex")


@dataclass(frozen=True)
class Plan:
    """Papers, jobs and files of a configuration."""

    config: Config
    papers: Mapping[str, Paper]  # by key; at scale best, each has the scale of its experiments
    jobs: Mapping[str, Job]  # by name
    due: frozenset[str]  # names of the jobs with runs that are not published; none at scale best
    experiments: Mapping[str, dict[str, Any]]  # every resolved experiment, by ``paper/experiment``
    uses: Mapping[str, tuple[DatasetUse, ...]]  # how the papers use each dataset
    users_samplers: Mapping[str, str]  # files of the user's samplers, by the samplers' names

    def paper(self, key: str) -> Paper:
        """Return a paper."""
        check_known([key], self.papers, "paper: '{}' is not in the configuration")
        return self.papers[key]

    def job(self, name: str) -> Job:
        """Return a job."""
        if name not in self.jobs:
            self.paper(name.partition("/")[0])
        check_known([name], self.jobs, "job: '{}' is unknown")
        return self.jobs[name]

    def jobs_of(self, paper: str, experiment: str) -> list[str]:
        """Return the names of an experiment's jobs."""
        return self._by_experiment.get(f"{paper}/{experiment}", [])

    def jobs_to_run(self, paper: str) -> list[str]:
        """Return the names of a paper's jobs that have to run."""
        if not self.due:
            return []  # without reading any job
        return [name for name, job in self.jobs.items() if job.paper == paper and name in self.due]

    @cached_property
    def batches(self) -> dict[str, list[str]]:
        """Names of the jobs that share a process, by a name for their batch."""
        return {
            f"{group}_{begin // size}": short[begin : begin + size]
            for group, short, size in self._short_jobs()
            for begin in range(0, len(short), size)
            if len(short) > begin + 1
        }

    def _short_jobs(self) -> Iterator[tuple[str, list[str], int]]:
        """Yield groups of short jobs: a name, the jobs, and how many of them may share a process.

        At quick scale, those of a paper, without overrides that may make them long.
        """
        if self.config.scale == "quick":
            for paper in self.papers:
                changed = self.config.overrides.get(paper, {})
                names = self.jobs_to_run(paper)
                short = [name for name in names if name.split("/")[1] not in changed]
                yield f"{paper}_quick", short, QUICK_JOBS_PER_PROCESS
            return
        for name, experiment in self.experiments.items() if self.due else ():
            if (size := experiment["jobs_per_process"]) > 1:
                paper, _, its_name = name.partition("/")
                due = [job for job in self.jobs_of(paper, its_name) if job in self.due]
                yield f"{paper}_{its_name}", due, size

    def artefacts(self) -> list[tuple[str, str]]:
        """Return all pairs (paper, artefact)."""
        return [(key, name) for key, paper in self.papers.items() for name in paper.artefacts]

    def report_inputs(self, paper: str) -> list[str]:
        """Return the files of a paper that the report reads, relative to the results."""
        spec = self.papers[paper]
        drawn = [
            f"artefacts/{paper}/{name}/{file}"
            for name, artefact in spec.artefacts.items()
            for kinds in [FIGURE_FILES if artefact.kind == "figure" else TABLE_FILES]
            for file in ("artefact.json", *(f"{name}.{kind}" for kind in kinds))
        ]
        summaries = [f"summaries/{paper}/{name}.parquet" for name in spec.experiments]
        explored = [f"explorer/{paper}/{name}/views.json" for name in spec.experiments]
        return [f"claims/{paper}.json", *drawn, *summaries, *explored]

    def final_files(self) -> list[str]:
        """Return the default targets: the report, or summaries of experiments without artefacts."""
        if self.artefacts():
            return ["report/index.html"]
        return [file for paper in self.papers for file in self.report_inputs(paper)]

    def targets(self) -> Iterator[str]:
        """Yield every Snakemake target except data files, relative to the results."""
        for paper in self.papers:
            yield from self.report_inputs(paper)
        yield from (f"compare/{name}/report/index.html" for name in self.users_samplers)
        yield from (f"runs/{name}.json" for name in self.jobs)
        yield from (f"cards/{name}.json" for name in self.cards)
        yield from ("report/index.html", "recheck.json")

    def datasets(self, *jobs: str) -> list[str]:
        """Return the datasets whose official files these jobs read; finished jobs read none."""
        due = (self.jobs[job] for job in jobs if job in self.due)
        return list(dict.fromkeys(name for job in due for name in job.files))

    def made_from(self, *jobs: str) -> str:
        """Return a digest of the jobs' specs and of the code that their results depend on."""
        runs = [run.hash for job in jobs for run in self.jobs[job].runs]
        return digest([runs, sorted({self.jobs[job].code for job in jobs})])

    @cached_property
    def cards(self) -> Mapping[str, tuple[DatasetUse, ...]]:
        """How the papers use each dataset that gets a card.

        Scale best downloads nothing, so a dataset with official files needs a published card.
        """
        return {
            name: used
            for name, used in self.uses.items()
            if self.config.computes
            or not any(use.files for use in used)
            or self.published_card(name)
        }

    def published_card(self, dataset: str) -> Path | None:
        """Return the file of a published card, which scale best shows; None if not applicable."""
        path = CARDS / f"{dataset}.json"
        return path if not self.config.computes and path.is_file() else None

    @property
    def cards_without_files(self) -> list[str]:
        """Datasets whose card is published or describes generated data."""
        return [dataset for dataset in self.cards if not self.card_files(dataset)]

    def card_files(self, dataset: str) -> list[str]:
        """Return the datasets whose official files a card describes."""
        if self.published_card(dataset):
            return []
        official = [use.files for use in self.cards[dataset] if use.data == "official"]
        return sorted({name for files in official for name in files})

    @cached_property
    def _by_experiment(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for name, job in self.jobs.items():
            names.setdefault(job.experiment_id, []).append(name)
        return names


def plan(settings: Mapping[str, Any], papers: Path = PAPERS, results: Path = RESULTS) -> Plan:
    """Resolve the plan of a configuration in plain data; see :func:`resolve`."""
    return resolve(configuration.parse(dict(settings)), papers, results)


def resolve(config: Config, papers: Path, results: Path) -> Plan:
    """Resolve and check the plan of a configuration."""
    published = published_runs(PUBLISHED) if config.shipped else {}
    problems: list[str] = []
    chosen: dict[str, Paper] = {}
    by_name: dict[str, Job] = {}
    settings: dict[str, dict[str, Any]] = {}
    for key, paper in load_papers(config, papers).items():
        with gathering(problems):
            chosen[key], listed = at_best(paper, config, results)
            for name, (experiment, its_jobs) in listed.items():
                settings[f"{key}/{name}"] = experiment.model_dump(mode="json")
                by_name |= {job.name: job for job in its_jobs}
    if problems:
        raise InputError(*problems)
    # Fresh seeds use the data of the experiments that they repeat.
    twins = {f"{key}/{CONFIRM}{name}" for key, paper in chosen.items() for name in paper.confirm}
    return Plan(
        config,
        chosen,
        by_name,
        frozenset(
            name
            for name, job in by_name.items()
            if config.computes and not all(run.hash in published for run in job.runs)
        ),
        settings,
        dataset_uses(job for job in by_name.values() if job.experiment_id not in twins),
        {load_file(Path(file))[-1].named: file for file in config.schemes},
    )


# The file format of a plan: ``plan.json``.
#
# Jobs of one case and sampler, which differ only in their seeds, share an entry.  The entries are
# most of the file and JSON themselves, as a text: if no job has to run, as at scale best, most
# commands never read them.  The file begins with a digest of its remaining content, which detects
# corruption.


class Planned(NamedTuple):
    """A plan, the digests of its results, and the states of all that was read to resolve it."""

    plan: Plan
    digests: Mapping[str, str]
    inputs: Mapping[str, str]


def write_plan(path: Path, key: str, planned: Planned) -> None:
    """Write a plan; `key`: a digest of its settings and of the finished runs."""
    plan, digests, read = planned
    content = {
        "key": key,
        "inputs": dict(read),
        "digests": dict(digests),
        "papers": {name: paper.model_dump(mode="json") for name, paper in plan.papers.items()},
        "experiments": dict(plan.experiments),
        "uses": {name: [asdict(use) for use in used] for name, used in plan.uses.items()},
        "users_samplers": dict(plan.users_samplers),
        "some_due": bool(plan.due),
        "jobs": json.dumps(list(_entries(plan)), separators=(",", ":")),
    }
    body = json.dumps(content, separators=(",", ":"))[1:]
    write_text(path, _head(body) + body)


def read_plan(path: Path, key: str | None, config: Config, folder: Path) -> Planned | None:
    """Read a plan; None if it is missing, corrupt, of another key, or if an input has changed.

    `key`: None accepts a plan that is out of date. `folder`: holds the papers. What the file says
    of folders is ignored, as they hold code that jobs run.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    head, body = text[: len(_head(""))], text[len(_head("")) :]
    if head != _head(body):
        return None
    content = json.loads("{" + body)
    inputs.remember(content.get("inputs", {}))  # also of a plan that is out of date
    if key is not None and (content["key"] != key or inputs.changed(content["inputs"])):
        return None
    folders = folders_of(config, folder)
    papers = {
        name: check(Paper, {**fields, "folder": folders.get(name, folder / name)}, "")
        for name, fields in content["papers"].items()
    }
    jobs: Mapping[str, Job] = _LazyJobs(content["jobs"], papers)
    due: frozenset[str] = frozenset()
    if content["some_due"]:
        jobs, due = _jobs(content["jobs"], papers)
    plan = Plan(
        config=config,
        papers=papers,
        jobs=jobs,
        due=due,
        experiments=content["experiments"],
        uses={name: tuple(map(_use, used)) for name, used in content["uses"].items()},
        users_samplers=content["users_samplers"],
    )
    return Planned(plan, content["digests"], content["inputs"])


def _head(body: str) -> str:
    return f'{{"digest":"{hashlib.sha256(body.encode()).hexdigest()}",'


def _entries(plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield an entry for jobs that differ only in their seeds, so that settings are stored once."""
    by_settings = groupby(
        plan.jobs.values(), lambda job: (job.name.split("/")[:-1], job.runs[0].settings)
    )
    for (key, settings), group in by_settings:
        jobs = list(group)
        first, run = jobs[0], jobs[0].runs[0]
        yield {
            "of": key,
            "settings": settings,
            "data": run.data,
            "scheme": run.scheme,
            "code": first.code,
            "files": first.files,
            "uses_gpu": first.uses_gpu,
            "blocks": [
                [job.block, job.name in plan.due, [[run.seed, run.hash] for run in job.runs]]
                for job in jobs
            ],
        }


def _jobs(entries: str, papers: Mapping[str, Paper]) -> tuple[dict[str, Job], frozenset[str]]:
    """Return the jobs of the entries by name, and the names of the jobs that are due."""
    jobs: dict[str, Job] = {}
    due = set()
    with _no_collection():
        for entry in json.loads(entries):
            paper, experiment, case, sampler = entry["of"]
            shared, files = (entry["settings"], entry["data"]), tuple(entry["files"])
            for block, is_due, seeds in entry["blocks"]:
                runs = tuple(RunSpec(*shared, seed, entry["scheme"], key) for seed, key in seeds)
                place = paper, experiment, case, sampler, block
                more = papers[paper].folder, entry["code"], files, entry["uses_gpu"]
                job = Job(*place, runs, *more)
                jobs[job.name] = job
                if is_due:
                    due.add(job.name)
    return jobs, frozenset(due)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Suspend garbage collection, which would search ten thousands of new objects in vain."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _LazyJobs(UserDict[str, Job]):
    """Jobs of a plan, read from their entries at first use."""

    def __init__(self, entries: str, papers: Mapping[str, Paper]) -> None:
        self._entries, self._papers = entries, papers

    @cached_property
    def data(self) -> dict[str, Job]:  # type: ignore[override]
        """All jobs by name, in which UserDict looks; read at the first use."""
        return _jobs(self._entries, self._papers)[0]


def _use(fields: dict[str, Any]) -> DatasetUse:
    lists = {key: tuple(fields[key]) for key in ("cases", "files", "code")}
    return DatasetUse(**{**fields, **lists})


# Scale ``best``: for each experiment, the largest scale at which all its runs are finished.
#
# Experiments without finished runs are left out of the paper, with the reason and a command.


LARGEST_FIRST = ("paper", "reduced")


class Listed(NamedTuple):
    """A resolved experiment with its jobs."""

    experiment: Experiment
    jobs: list[Job]


def at_best(paper: Paper, config: Config, results: Path) -> tuple[Paper, dict[str, Listed]]:
    """Choose the scale of each experiment of a paper, if the configuration does not name one.

    Returns the paper, with ``scales``, and its jobs by experiment.  An experiment over all
    registered samplers keeps the samplers with finished runs.
    """
    if config.computes:
        return paper, _listed(paper, config)
    finished = finished_runs(run_stores(results, config)[1])
    scales: dict[str, str] = {}
    listed: dict[str, Listed] = {}
    jobs_at: dict[str, dict[str, list[Job]]] = {}  # by experiment and scale
    for scale in LARGEST_FIRST:
        undecided = without(paper, dict.fromkeys(scales, ""))
        for name, at_scale in _listed_at(undecided, config, scale).items():
            jobs_at.setdefault(name, {})[scale] = at_scale.jobs
            if not _missing(at_scale.jobs, finished):
                scales[name], listed[name] = scale, at_scale
    reasons = {}
    parts: dict[str, dict[str, Any]] = {}
    for name, experiment in paper.experiments.items():
        if name in scales:
            continue
        part = _finished_look(experiment, jobs_at[name], finished) or _finished_part(
            experiment, jobs_at[name], finished
        )
        if part:
            scales[name], parts[name] = part
        else:
            smallest = [*jobs_at[name]][-1]
            reasons[name] = _reason(paper, smallest, jobs_at[name][smallest], finished)
    remaining = without(paper, reasons)
    experiments = remaining.experiments | parts
    remaining = remaining.model_copy(update={"experiments": experiments, "scales": scales})
    listed |= _listed(without(remaining, dict.fromkeys(experiments.keys() - parts, "")), config)
    return remaining, {name: listed[name] for name in experiments}


def _finished_look(
    experiment: dict[str, Any], jobs_at: Mapping[str, list[Job]], finished: Set[str]
) -> tuple[str, dict[str, Any]] | None:
    """Return an experiment with the seeds of its largest finished look, and its scale; or None."""
    for scale, its_jobs in jobs_at.items():
        for n in sorted(experiment.get("looks", ()), reverse=True):
            seeds = {*experiment["seeds"][:n]}
            runs = [run for job in its_jobs for run in job.runs if run.seed in seeds]
            if all(run.hash in finished for run in runs):
                return scale, with_seeds(experiment, n)
    return None


def _finished_part(
    experiment: dict[str, Any], jobs_at: Mapping[str, list[Job]], finished: Set[str]
) -> tuple[str, dict[str, Any]] | None:
    """Return an experiment on all samplers without the unfinished ones, and its scale.

    A new sampler then does not change the scale of the others.  None if no sampler is finished, or
    if the experiment names its samplers.
    """
    if "*" not in experiment.get("samplers", ()):
        return None
    unfinished = {
        scale: sorted({job.sampler for job in _missing(its_jobs, finished)})
        for scale, its_jobs in jobs_at.items()
    }
    scale = min(unfinished, key=lambda scale: len(unfinished[scale]))
    if len(unfinished[scale]) == len({job.sampler for job in jobs_at[scale]}):
        return None
    samplers = {**experiment["samplers"], **dict.fromkeys(unfinished[scale])}
    return scale, {**experiment, "samplers": samplers}


def _listed_at(paper: Paper, config: Config, scale: str) -> dict[str, Listed]:
    """List the jobs of each experiment that exists at a scale."""
    absent = [name for name, spec in paper.experiments.items() if spec.get(scale, {}) is None]
    present = without(paper, dict.fromkeys(absent, ""))
    scales = dict.fromkeys(present.experiments, scale)
    return _listed(present.model_copy(update={"scales": scales}), config)


def _listed(paper: Paper, config: Config) -> dict[str, Listed]:
    resolved = resolve_experiments(paper, config)
    listed = {name: Listed(experiment, []) for name, (experiment, _) in resolved.items()}
    for job in jobs(paper, config, resolved):
        listed[job.experiment].jobs.append(job)
    return listed


def left_to_run(paper: Paper, config: Config, results: Path) -> dict[str, list[Job]]:
    """List the unfinished jobs of the paper's size, by experiment."""
    at_paper_size = config.model_copy(
        update={"scale": "paper", "data": "official", "overrides": {}}
    )
    target, shared = run_stores(results, at_paper_size)
    finished = finished_runs([target, *shared])
    listed = _listed_at(paper, at_paper_size, "paper")
    jobs_of = (job for experiment in listed.values() for job in experiment.jobs)
    inputs.note_runs(run.hash for job in jobs_of for run in job.runs)
    return {name: _missing(experiment.jobs, finished) for name, experiment in listed.items()}


def jobs_at(
    paper: Paper, config: Config, scale: str, experiments: Set[str]
) -> dict[str, list[Job]]:
    """List the jobs of some experiments of a paper at a scale, by experiment."""
    others = dict.fromkeys(paper.experiments.keys() - experiments, "")
    at_scale = config.model_copy(update={"scale": scale, "data": "official", "overrides": {}})
    listed = _listed_at(without(paper, others), at_scale, scale)
    return {name: entry.jobs for name, entry in listed.items()}


def _missing(all_jobs: list[Job], finished: Set[str]) -> list[Job]:
    return [job for job in all_jobs if not all(run.hash in finished for run in job.runs)]


def _reason(paper: Paper, scale: str, all_jobs: list[Job], finished: Set[str]) -> str:
    runs = sum(len(job.runs) for job in all_jobs)
    missing = sum(len(job.runs) for job in _missing(all_jobs, finished))
    state = "none" if missing == runs else f"{runs - missing:,}"
    # The paper's folder may have any name; the workflow's target is its key.
    command = f"snakemake --cores all {paper.key} --config scale={scale}"
    return f"{state} of {runs:,} runs finished; '{command}' computes {missing:,}"
