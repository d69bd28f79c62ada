"""The summary of verdicts in the terminal."""

import sys
from collections.abc import Sequence
from itertools import chain
from textwrap import shorten

from fedsampling.base.errors import WARNING, InputError
from fedsampling.evidence import recomputed
from fedsampling.evidence.claims import Claim
from fedsampling.report import content
from fedsampling.report.overview import tallies
from fedsampling.report.standing import sentences
from fedsampling.workflow.draw import is_outdated
from fedsampling.workflow.project import Project
from fedsampling.workflow.report import is_usual, recheck_of


def print_verdicts(project: Project) -> None:
    """Summarise the verdicts; print the path of the report and the commands to run next."""
    results, computes = project.folder, project.config.computes
    judged: dict[str, tuple[Claim, ...]] = {}
    for key, paper in project.plan.papers.items():
        path = results / "claims" / f"{key}.json"
        if not path.is_file():
            call = snakemake_command(project, key)
            raise InputError(f"{path}: no verdicts yet; run '{call}' first")
        if is_outdated(key, project):
            fix = f"run '{snakemake_command(project, key)} --forcerun draw_{key}'"
            print(f"{WARNING}{key}: drawn from other runs or settings; {fix}", file=sys.stderr)
        claims = judged[key] = content.claims(path)
        print(f"{key}: {_tally(claims) or f'{len(paper.artefacts)} artefacts, no claims'}")
        if paper.left_out:
            print(f"    not run: {shorten(', '.join(paper.left_out), 90, placeholder=' …')}")
    for sentence in sentences([*chain(*judged.values())], sum(map(bool, judged.values()))):
        print(sentence)
    if not computes:
        print(recomputed.recheck_sentence(recheck_of(project)))
    print(f"Report: {results / 'report' / 'index.html'}")
    recheck = "fedsampling recheck --share 0.05    # compares more, with the official data"
    finished = f"{snakemake_command(project, scale='best')}    # shows the results of finished runs"
    print(f"Next: {finished if computes else recheck}")
    print(f"      {snakemake_command(project, scale='paper')}    # computes missing runs")


def snakemake_command(project: Project, target: str = "", **settings: str) -> str:
    """Write the snakemake command with the project's configuration file and run name."""
    # Alone, as this command read it: else Snakemake would add the overrides in config.yaml.
    only_this = f"--configfile {project.file} --replace-workflow-config"
    file = "" if is_usual(project) else only_this
    run = {"run": project.config.run} if project.config.run else {}
    words = " ".join(f"{key}={value}" for key, value in {**run, **settings}.items())
    config = f"--config {words}" if words else ""
    return " ".join(filter(None, ["snakemake --cores all", target, file, config]))


def _tally(claims: Sequence[Claim]) -> str:
    """Count the verdicts of empirical claims by grade; count other kinds separately."""
    empirical = [claim for claim in claims if claim.kind == "empirical"]
    parts = []
    for grade, by_verdict in tallies(empirical).items():
        counts = ", ".join(f"{count} {verdict}" for verdict, count in by_verdict.items())
        parts.append(f"{grade}: {counts}" if grade != "not run" else counts)
    kinds = {"text against tables": "sentences agree with tables", "code check": "code checks pass"}
    for kind, words in kinds.items():
        passed = [claim.passes for claim in claims if claim.kind == kind]
        if passed:
            parts.append(f"{sum(passed)} of {len(passed)} {words}")
    return "; ".join(parts)
