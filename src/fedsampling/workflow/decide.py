"""Decide open claims: what each takes, in which order, and the runs, look by look.

A claim is confirmed with fresh seeds, in the looks that its experiments declare. The order is by
parts that are still open per core-hour, so the cheapest claims come first. Runs go to the store
like all others, so that an interrupted call resumes, and ``fedsampling publish`` can publish them.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

import yaml

from fedsampling.base import machine
from fedsampling.base.errors import InputError, check_known
from fedsampling.base.files import write_text
from fedsampling.base.text import listed, plural, show
from fedsampling.evidence.claims import Confirmation
from fedsampling.experiments.papers import Paper, load_paper
from fedsampling.experiments.selecting import folders_of
from fedsampling.runs import store
from fedsampling.runs.places import PAPERS, RESULTS, run_stores
from fedsampling.workflow.confirm import FreshSeeds, confirmations
from fedsampling.workflow.look_hours import first_seeds, hours_of_look, scale_of_twins
from fedsampling.workflow.project import Project

RESULTS_NAME = "decide"  # subfolder of the results, so that a report's plan stays as it is
NO_LOOK = "no claim has a look left to run"


@dataclass(frozen=True)
class Step:
    """The next look at a claim.

    `open_parts`: parts of the claim that no look has decided. `seeds`: those that the look needs,
    `look` of `looks`. `hours_of`: core-hours of the missing runs of each experiment; empty if some
    experiment has no run that was timed. `so_far`: a line on what fresh seeds say, if any.
    """

    paper: str
    claim: str
    open_parts: tuple[str, ...]
    experiments: tuple[str, ...]
    scale: str
    seeds: int
    look: int
    looks: int
    hours_of: Mapping[str, float]
    so_far: str = ""

    @property
    def hours(self) -> float | None:
        """Core-hours of all missing runs; None if unknown."""
        return sum(self.hours_of.values()) if self.hours_of else None

    @property
    def name(self) -> str:
        """The claim as the command line names it."""
        return f"{self.paper}/{self.claim}"


def decide(
    project: Project, names: Sequence[str], hours: float | None, dry_run: bool, cores: str
) -> Iterator[str]:
    """Print each open claim's next look in the order of its price; run them within `hours`.

    A look runs if its core-hours are at most those that are left on all cores; a look of unknown
    price is tried.
    """
    if not dry_run and hours is None:
        raise InputError("hours: missing; give --hours H, or --dry-run")
    _number_of(cores)
    for option, used, usual in (
        ("--results", project.results, RESULTS),
        ("--papers", project.papers, PAPERS),
    ):
        if not dry_run and used.resolve() != usual.resolve():
            fix = f"its runs are Snakemake's, with {usual}/; leave it out, or add --dry-run"
            raise InputError(f"{option} {used}: {fix}")
    project = _with_all_claims(project, names)
    begin = monotonic()
    tried: set[tuple[str, int]] = set()  # looks by claim and number; no look runs twice
    failed: list[str] = []
    while True:
        steps, others = _steps(project, names)
        steps = [step for step in steps if (step.name, step.look) not in tried]
        if dry_run:
            yield from _table(steps, others)
            return
        left = hours - (monotonic() - begin) / 3600 if hours else 0.0
        affordable = [step for step in steps if (step.hours or 0.0) <= left * _number_of(cores)]
        if not affordable:
            if not tried and not steps:
                yield from others
            yield _what_is_left(steps, _number_of(cores))
            if failed:
                fix = "run the same command again to resume"
                raise InputError(*(f"{name}: runs of its look failed; {fix}" for name in failed))
            return
        step = affordable[0]
        yield _sentence(step) + step.so_far
        tried.add((step.name, step.look))
        if not _run(step, cores, project):
            failed.append(step.name)
        project = replace(project)  # whose plan sees the runs that have finished


def _what_is_left(steps: Sequence[Step], cores: int) -> str:
    """Say why no further look runs: none is left, or the time is too short."""
    if not steps:
        return NO_LOOK
    why = f"{plural(len(steps), 'claim')} left; the time is too short for a next look"
    if known := [step.hours / cores for step in steps if step.hours is not None]:
        why += f"; the shortest takes {show(min(known), 2)} hours on {plural(cores, 'core')}"
    return why


def _number_of(cores: str) -> int:
    """Convert the value of ``--cores``, a number or ``all``."""
    if cores == "all":
        return machine.cores()
    if not cores.isdecimal() or not int(cores):
        raise InputError(f"cores: {cores!r} is invalid; must be a number above 0, or 'all'")
    return int(cores)


def _with_all_claims(project: Project, names: Sequence[str]) -> Project:
    """Return the project with all experiments of the claims' papers and with all finished runs."""
    if project.config.data != "official":
        raise InputError(f"data: {project.config.data}; only runs on official data decide claims")
    changes: dict[str, Any] = {"scale": "best", "experiments": None, "overrides": {}}
    if project.config.papers is not None or project.config.experiments is not None:
        inside = [path.parent.name for path in sorted(project.papers.glob("*/paper.yaml"))]
        elsewhere = [name for name in project.config.papers or () if "/" in name]
        papers = {Path(name).name: name for name in [*inside, *elsewhere]}
        named = {name.partition("/")[0] for name in names}
        of_all = not named or not named <= papers.keys()
        changes["papers"] = [papers[key] for key in (papers if of_all else sorted(named))]
    whole = project.with_config(**changes)
    return project if whole.config == project.config else whole


def _steps(project: Project, names: Sequence[str]) -> tuple[list[Step], list[str]]:
    """Return the next look of each open claim, the cheapest first, and what is not open."""
    papers = {key: load_paper(key, spec.folder.parent) for key, spec in project.plan.papers.items()}
    known = {*papers}
    known |= {name for paper in papers.values() for name in paper.claims}
    known |= {f"{key}/{name}" for key, paper in papers.items() for name in paper.claims}
    check_known(names, known, "claim: '{}' is unknown")
    steps, others = [], []
    for key, paper in papers.items():
        for claim, fresh in confirmations(project, key).items():
            name = f"{key}/{claim}"
            if names and not {name, key, claim} & set(names):
                continue
            spec, confirmation = paper.claims[claim], fresh.confirmation
            if spec.unreachable:
                others.append(f"{name}: {spec.unreachable}")
            elif confirmation and confirmation.answered:
                others.append(f"{name}: confirmed, {confirmation.verdict}")
            elif fresh.looks_left:
                steps.append(_next_look(paper, claim, fresh, project))
            elif confirmation:
                others.append(f"{name}: open after its last look{_so_far(confirmation)}")
            elif fresh.reason:
                others.append(f"{name}: {fresh.reason}")
    return sorted(steps, key=_price), others


def _price(step: Step) -> tuple[bool, float]:
    """Sort by core-hours per open part; claims of unknown price come last."""
    return step.hours is None, (step.hours or 0.0) / max(len(step.open_parts), 1)


def _next_look(paper: Paper, claim: str, fresh: FreshSeeds, project: Project) -> Step:
    """Return the next look at a claim."""
    twins = paper.twins_of(claim)
    looks = len(paper.experiments[next(iter(twins.values()))]["looks"])
    seeds = fresh.looks_left[0]
    # If no sampler reaches the target, the claim cannot be judged, and has no parts.
    judged = fresh.confirmation.parts if fresh.confirmation else {}
    parts = judged or dict.fromkeys(paper.claims[claim].parts, "open")
    target, reused = run_stores(project.results, project.config)

    def seconds_of(run_hash: str) -> float | None:
        result = store.find([target, *reused], run_hash, None)
        return float(result.metadata["seconds"]) if result else None

    return Step(
        paper=paper.key,
        claim=claim,
        open_parts=tuple(name for name, part in parts.items() if part == "open"),
        experiments=tuple(twins.values()),
        scale=scale_of_twins(paper, twins),
        seeds=seeds,
        look=looks - len(fresh.looks_left) + 1,
        looks=looks,
        hours_of=hours_of_look(paper, twins, seeds, project, seconds_of),
        so_far=_so_far(fresh.confirmation),
    )


def _so_far(confirmation: Confirmation | None) -> str:
    """Write a line on what fresh seeds say; nothing before the first look."""
    if not confirmation or not confirmation.look:
        return ""
    decided = [f"{name}: {part}" for name, part in confirmation.parts.items() if part != "open"]
    parts = f"; decided: {', '.join(decided)}" if decided else ""
    return f"\n    {plural(confirmation.seeds, 'fresh seed')}: {confirmation.ours}{parts}"


def _sentence(step: Step) -> str:
    """Describe a look: its seeds, the parts that it may decide, and its price."""
    price = "price unknown" if step.hours is None else f"{show(step.hours, 2)} core-hours"
    return (
        f"{step.name}: look {step.look} of {step.looks}, {plural(step.seeds, 'seed')}, {price}; "
        f"open: {listed(step.open_parts)}"
    )


def _table(steps: Sequence[Step], others: Sequence[str]) -> Iterator[str]:
    """Write all steps with cumulative core-hours, and the claims that need none.

    Claims share experiments, whose runs count once.
    """
    counted: dict[tuple[str, str], float] = {}
    for step in steps:
        for name, hours in step.hours_of.items():
            key = step.paper, name
            counted[key] = max(hours, counted.get(key, 0.0))
        yield f"{_sentence(step)}; {show(sum(counted.values()), 2)} in all{step.so_far}"
    yield from others
    if not steps:
        yield NO_LOOK
        return
    unknown = sum(step.hours is None for step in steps)
    without_price = f", plus {unknown} of unknown price" if unknown else ""
    yield (
        f"{plural(len(steps), 'claim')} to confirm; the next looks take "
        f"{show(sum(counted.values()), 2)} core-hours{without_price}. 'fedsampling decide --hours "
        "H' runs them in this order."
    )


def _run(step: Step, cores: str, project: Project) -> bool:
    """Run a look with Snakemake; return whether all its runs finished."""
    folder = folders_of(project.config, project.papers)[step.paper]
    paper = load_paper(step.paper, folder.parent)
    overrides = {name: {"seeds": first_seeds(paper, name, step.seeds)} for name in step.experiments}
    config: dict[str, Any] = {
        **project.config.model_dump(mode="json"),  # the user's mirror, store, device, cluster
        "scale": step.scale,
        "experiments": [f"{step.paper}/{name}" for name in step.experiments],
        "overrides": {step.paper: overrides},
        "run": RESULTS_NAME,
    }
    path = RESULTS / f"{RESULTS_NAME}.yaml"
    write_text(path, yaml.safe_dump(config))
    # Else the overrides in config.yaml would be added to these.
    only_this = ["--configfile", str(path), "--replace-workflow-config"]
    command = ["snakemake", "--cores", cores, *only_this]
    return subprocess.run(command, stdout=sys.stderr, check=False).returncode == 0
