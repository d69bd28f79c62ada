"""The plan of a configuration: papers, jobs, data cards, and their files.

The Snakefile imports this module, so it must stay light: no pandas, matplotlib or torch.
:mod:`fedsampling.workflow.project` caches the plan on disk.  :mod:`fedsampling.workflow.digests`
computes digests of each step's inputs, :mod:`fedsampling.runs.cluster.rule_resources` the resources
that jobs request from a cluster.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedsampling.base.errors import InputError, gathering, nearest
from fedsampling.base.files import digest
from fedsampling.experiments import config as configuration
from fedsampling.experiments.config import UNNAMED_RUN, Config
from fedsampling.experiments.dataset_uses import DatasetUse, dataset_uses
from fedsampling.experiments.paper_selection import load_papers
from fedsampling.experiments.papers import Paper
from fedsampling.experiments.resolving import resolve_experiments
from fedsampling.experiments.specs import Job, jobs
from fedsampling.runs.places import CARDS, PUBLISHED, published_runs
from fedsampling.samplers.interface.own_files import load_file
from fedsampling.workflow.best import at_best

PAPERS, RESULTS = Path("papers"), Path("results")
# Maximum number of quick-scale jobs that share a process.  Starting a process takes two seconds of
# imports, often more than the job; but larger batches would leave cores idle.
MAX_BATCH_JOBS = 40
FIGURE_FILES, TABLE_FILES = ("svg", "png", "csv"), ("html", "csv", "tex")


@dataclass(frozen=True)
class Plan:
    """Papers, jobs and files of a configuration."""

    config: Config
    papers: Mapping[str, Paper]  # by key; at scale best, each has the scale of its experiments
    jobs: Mapping[str, Job]  # by name
    # names of the jobs that have to run because some of their runs are not published.  Empty at
    # scale best
    due: frozenset[str]
    experiments: Mapping[str, dict[str, Any]]  # every resolved experiment, by ``paper/experiment``
    uses: Mapping[str, tuple[DatasetUse, ...]]  # how the papers use each dataset
    users_samplers: Mapping[str, str]  # files of the user's samplers, by the samplers' names
    other_run: Path | None = None  # results folder of the run to compare with

    def paper(self, key: str) -> Paper:
        """Return a paper."""
        if key not in self.papers:
            fix = nearest(key, self.papers)
            raise InputError(f"paper: '{key}' is not in the configuration; {fix}")
        return self.papers[key]

    def job(self, name: str) -> Job:
        """Return a job."""
        if name not in self.jobs:
            self.paper(name.partition("/")[0])
            raise InputError(f"job: '{name}' is unknown; {nearest(name, self.jobs)}")
        return self.jobs[name]

    def jobs_of(self, paper: str, experiment: str) -> list[str]:
        """Return the names of an experiment's jobs."""
        return self._by_experiment.get(f"{paper}/{experiment}", [])

    def jobs_to_run(self, paper: str) -> list[str]:
        """Return the names of a paper's jobs that have to run."""
        if not self.due:
            return []
        names = (
            name for key in self.papers[paper].experiments for name in self.jobs_of(paper, key)
        )
        return [name for name in names if name in self.due]

    @cached_property
    def batches(self) -> dict[str, list[str]]:
        """Names of the quick-scale jobs that share a process, to save its start-up time.

        Each job of a batch still writes its own manifest and runs.

        Returns at least two jobs, by the batch's name, such as ``rizk2022importance_quick_0``.
        Jobs with overrides may be long and are in no batch.
        """
        if self.config.scale != "quick":
            return {}
        batches = {}
        for paper in self.papers:
            changed = self.config.overrides.get(paper, {})
            small = [name for name in self.jobs_to_run(paper) if name.split("/")[1] not in changed]
            for begin in range(0, len(small), MAX_BATCH_JOBS):
                if len(small) > begin + 1:
                    name = f"{paper}_quick_{begin // MAX_BATCH_JOBS}"
                    batches[name] = small[begin : begin + MAX_BATCH_JOBS]
        return batches

    def artefacts(self) -> list[tuple[str, str]]:
        """Return all pairs (paper, artefact)."""
        return [(key, name) for key, paper in self.papers.items() for name in paper.artefacts]

    def report_inputs(self, paper: str) -> list[str]:
        """Return the files of a paper that the report reads, relative to the results."""
        spec = self.papers[paper]
        drawn = [f"artefacts/{paper}/{name}/artefact.json" for name in spec.artefacts]
        summaries = [f"summaries/{paper}/{name}.parquet" for name in spec.experiments]
        explored = [f"explorer/{paper}/{name}/views.json" for name in spec.experiments]
        return [f"claims/{paper}.json", *drawn, *summaries, *explored]

    def final_files(self) -> list[str]:
        """Return the default targets of the workflow, relative to the results folder.

        This is the report, or the summaries if the chosen experiments have no artefact.
        """
        if self.artefacts():
            return ["report/index.html"]
        return [file for paper in self.papers for file in self.report_inputs(paper)]

    def drawn_files(self, paper: str) -> dict[str, list[str]]:
        """Return the files of each artefact, relative to the results; the main one comes first."""
        return {
            name: [
                f"artefacts/{paper}/{name}/{name}.{kind}"
                for kind in (FIGURE_FILES if spec.kind == "figure" else TABLE_FILES)
            ]
            for name, spec in self.papers[paper].artefacts.items()
        }

    def targets(self) -> Iterator[str]:
        """Yield every Snakemake target except data files, relative to the results."""
        for paper in self.papers:
            yield from self.report_inputs(paper)
            for files in self.drawn_files(paper).values():
                yield from files
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
            names.setdefault(f"{job.paper}/{job.experiment}", []).append(name)
        return names


def plan(settings: Mapping[str, Any], papers: Path = PAPERS, results: Path = RESULTS) -> Plan:
    """Resolve the plan of a configuration in plain data; see :func:`resolve`."""
    return resolve(configuration.parse(dict(settings)), papers, results)


def resolve(config: Config, papers: Path, results: Path) -> Plan:
    """Resolve and check the plan of a configuration.

    `papers`: folder that holds one folder per paper. `results`: folder searched for finished runs
    at scale best.
    """
    chosen = {
        key: at_best(paper, config, results) for key, paper in load_papers(config, papers).items()
    }
    other_run = config.other_run(results)
    if other_run and not (other_run / "summaries").is_dir():
        named = {path.parent.name for path in results.glob("*/summaries")}
        runs = named | {UNNAMED_RUN for _ in results.glob("summaries")}
        fix = nearest(str(config.beside), runs) if runs else "run it first; no run has any"
        raise InputError(f"beside: '{config.beside}' has no results in {other_run}; {fix}")
    published = published_runs(PUBLISHED) if config.shipped else {}
    problems: list[str] = []
    by_name: dict[str, Job] = {}
    settings: dict[str, dict[str, Any]] = {}
    for key, paper in chosen.items():
        with gathering(problems):
            experiments = resolve_experiments(paper, config)
            by_name |= {job.name: job for job in jobs(paper, config, experiments)}
            settings |= {
                f"{key}/{name}": resolved.experiment.model_dump(mode="json")
                for name, resolved in experiments.items()
            }
    if problems:
        raise InputError(*problems)
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
        dataset_uses(by_name.values()),
        {load_file(Path(file))[-1].named: file for file in config.schemes},
        other_run,
    )
