"""Commands that show finished results, look at runs, or decide what is open."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click import argument, option

from fedsampling import workflow
from fedsampling.cli.group import PATH, Output, command

if TYPE_CHECKING:
    from fedsampling.workflow.project import Project

# Copies of workflow's names, whose imports would slow down ``--help``.
FORMATS = ("csv", "parquet", "tensorboard", "wandb-offline")
KINDS = (
    *("papers", "experiments", "artefacts", "samplers", "schemes", "datasets"),
    *("partitions", "models", "delays", "availabilities", "metrics", "jobs"),
)


@command(latest=True, only_reads=True)
@option("--remove-other-versions", is_flag=True, help="First remove other versions' runs.")
def status(project: "Project", remove_other_versions: bool) -> Iterator[str]:
    """Show finished, running and remaining runs, the time left, and failures.

    Without --config, this is the status of the last Snakemake call without run=NAME; of a named
    run, add --config results/NAME/config.json.
    """
    if remove_other_versions:
        yield workflow.status.remove_other_versions(project)
    yield from workflow.status.status(project)


@command(only_reads=True)
def verdicts(project: "Project") -> None:
    """Print each paper's verdicts, the path of the report, and the next command."""
    workflow.verdicts.print_verdicts(project)


@command()
@argument("claims", metavar="[CLAIM]...", nargs=-1)
@option("--hours", type=click.FloatRange(min=0), help="Run the next looks within this time.")
@option("--dry-run", is_flag=True, help="Only print them, with their price.")
@option("--cores", default="all", show_default=True, help="As for snakemake.")
def decide(
    project: "Project", claims: tuple[str, ...], hours: float | None, dry_run: bool, cores: str
) -> Iterator[str]:
    """Decide open CLAIMs (PAPER, CLAIM or PAPER/CLAIM; default: all) with fresh seeds.

    Looks that decide most for their price come first. The runs stop and resume.
    """
    yield from workflow.decide.decide(project, claims, hours, dry_run, cores)


@command(only_reads=True)
@option("--by", default="rounds", help="Cost: rounds, bits or seconds.")
@option("--delays-known", "delays", is_flag=True, help="Advice: the server knows delays.")
@option("--losses-known", "losses", is_flag=True, help="Advice: the server may request losses.")
@option("--updates-known", "updates", is_flag=True, help="Advice: the server sees each update.")
@option("--away", is_flag=True, help="Advice: clients come and go.")
@option("--unequal", is_flag=True, help="Advice: one client has 3/n of the samples or more.")
@option("--skewed", is_flag=True, help="Advice: each client has only some of the labels.")
def rank(project: "Project", by: str, **answers: bool) -> Output:
    """Rank all samplers by cost, with the information that each of them needs.

    The flags marked "Advice" describe your situation. With any of them, only the advice is printed.
    """
    from fedsampling.experiments.cross_matrix import CROSS_MATRIX
    from fedsampling.report.which_sampler.advice import Situation
    from fedsampling.report.which_sampler.chooser import advice_lines, comparison_lines
    from fedsampling.report.which_sampler.reading import read, read_comparisons

    folder = project.results / "artefacts" / CROSS_MATRIX
    if not any(answers.values()):
        return comparison_lines(read(folder, by))
    known = frozenset(name for name in ("delays", "losses", "updates") if answers[name])
    away, unequal, skewed = (answers[name] for name in ("away", "unequal", "skewed"))
    read(folder, by)  # an error if the artefacts are missing
    return advice_lines(
        read_comparisons(folder), Situation(known, away, unequal or None, skewed or None)
    )


@command("list", only_reads=True)
@argument("kind", metavar="KIND", type=click.Choice(KINDS))
def list_names(project: "Project", kind: str) -> Output:
    """List names with short descriptions: papers, samplers, datasets, jobs and so on.

    KIND is papers, experiments, artefacts, samplers (or schemes), datasets, partitions, models,
    delays, availabilities, metrics or jobs.
    """
    return workflow.listing.listing(kind, project)


@command(latest=True, only_reads=True)
@argument("name", metavar="JOB|HASH")
def show(project: "Project", name: str) -> Iterator[str]:
    """Show the settings, the runs and the origin of a JOB or of the run with a HASH.

    Six digits of a hash suffice. Without --config, the jobs are those of the last Snakemake call
    without run=NAME; of a named run, add --config results/NAME/config.json.
    """
    yield from workflow.show.show(name, project)


@command(latest=True, only_reads=True)
@argument("names", metavar="PAPER[/EXPERIMENT]...", nargs=-1, required=True)
@option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="csv",
    help="A table, or one run per seed for TensorBoard or Weights & Biases.",
)
@option("--out", type=PATH, help="File or folder; default: in RESULTS/export.")
def export(project: "Project", names: tuple[str, ...], form: str, out: Path | None) -> Output:
    """Write finished runs as one tidy table, or for TensorBoard or Weights & Biases.

    The table has a row per value: paper, experiment, case, sampler, seed, at, metric and value, and
    a column for each setting. Without --config, the runs are those of the last Snakemake call
    without run=NAME; of a named run, add --config results/NAME/config.json.
    """
    return workflow.export.export(names, form, out, project)


@command(only_reads=True)
@argument("paper")
@argument("name", metavar="ARTEFACT|CLAIM")
def cite(project: "Project", paper: str, name: str) -> Output:
    """Cite a figure, a table or the verdict on a claim: one line, then BibTeX."""
    return workflow.cite.cite(paper, name, project)


@command(writes=True)
@option("--share", type=click.FloatRange(0, 1), help="Share of all finished runs, with their data.")
@option("--seed", type=int, help="Seed that selects the runs; default: today's date.")
def recheck(project: "Project", share: float | None, seed: int | None) -> Iterator[str]:
    """Rerun some finished runs and compare the results; by default, for about a minute."""
    from fedsampling.evidence.recomputed import recheck_sentence

    outcomes = workflow.recheck.recheck(project, share, seed)
    for run in outcomes:
        yield f"{run.outcome}: {run.job}, seed {run.seed} (difference {run.difference:.2g})"
    yield recheck_sentence(outcomes)
