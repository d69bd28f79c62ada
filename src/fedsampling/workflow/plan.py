"""The plan of a configuration: papers, jobs, data cards, and their files.

The Snakefile imports this module, so it must stay light: no pandas, matplotlib or torch.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedsampling.base.errors import InputError, check_known, gathering
from fedsampling.base.files import digest
from fedsampling.experiments import config as configuration
from fedsampling.experiments.config import Config
from fedsampling.experiments.dataset_uses import DatasetUse, dataset_uses
from fedsampling.experiments.papers import ArtefactSpec, Paper
from fedsampling.experiments.registration import CONFIRM
from fedsampling.experiments.selecting import load_papers
from fedsampling.experiments.specs import Job
from fedsampling.runs.places import CARDS, PAPERS, PUBLISHED, RESULTS, published_runs
from fedsampling.samplers.users.files import joint_name, load_file
from fedsampling.workflow.best_scale import at_best

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
    users_samplers: Mapping[str, str]  # users' files, by the joint name of their samplers

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

    def jobs_of(self, experiment: str) -> list[Job]:
        """Return the jobs of an experiment, named ``paper/experiment``."""
        return self._by_experiment.get(experiment, [])

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

        At quick scale, a group has the jobs of a paper, except those with overrides, which may make
        them long.
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
                due = [job.name for job in self.jobs_of(name) if job.name in self.due]
                yield name.replace("/", "_"), due, size

    def artefacts(self) -> list[tuple[str, str]]:
        """Return all pairs (paper, artefact)."""
        return [(key, name) for key, paper in self.papers.items() for name in paper.artefacts]

    def report_inputs(self, paper: str) -> list[str]:
        """Return the files of a paper that the report reads, relative to the results."""
        spec = self.papers[paper]
        drawn = [
            f"artefacts/{paper}/{file}"
            for name, artefact in spec.artefacts.items()
            for file in _files_of(name, artefact)
        ]
        summaries = [f"summaries/{paper}/{name}.parquet" for name in spec.experiments]
        explored = [f"explorer/{paper}/{name}/views.json" for name in spec.experiments]
        return [f"claims/{paper}.json", *drawn, *summaries, *explored]

    def final_files(self) -> list[str]:
        """Return the default targets: the report, or summaries of experiments without artefacts."""
        if self.artefacts():
            return ["report/index.html"]
        return [file for paper in self.papers for file in self.drawn(paper)]

    def drawn(self, paper: str) -> list[str]:
        """Return the files of a paper, and the mark that its drawing process finished."""
        return [*self.report_inputs(paper), self.mark(paper)]

    def mark(self, paper: str) -> str:
        """Return the file that exists if the process that last drew a paper finished."""
        return f"made/papers/{paper}.drawn"

    def targets(self) -> Iterator[str]:
        """Yield every Snakemake target except data files, relative to the results."""
        for paper in self.papers:
            yield from self.report_inputs(paper)
        yield from (f"compare/{name}/report/index.html" for name in self.users_samplers)
        yield from (f"runs/{name}.json" for name in self.jobs)
        yield from (f"cards/{name}.json" for name in self.cards)
        yield from ("report/index.html", "recheck.json")

    def datasets(self, *jobs: str) -> list[str]:
        """Return the datasets whose official files these jobs read; published runs need none."""
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
    def _by_experiment(self) -> dict[str, list[Job]]:
        jobs: dict[str, list[Job]] = {}
        for job in self.jobs.values():
            jobs.setdefault(job.experiment_id, []).append(job)
        return jobs


def _files_of(name: str, artefact: ArtefactSpec) -> list[str]:
    """Return the files of an artefact, relative to the artefacts of its paper."""
    kinds = FIGURE_FILES if artefact.kind == "figure" else TABLE_FILES
    return [f"{name}/artefact.json", *(f"{name}/{name}.{kind}" for kind in kinds)]


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
        {joint_name(load_file(Path(file))): file for file in config.schemes},
    )
