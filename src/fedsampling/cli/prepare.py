"""Commands before a run: a working folder, the configuration, the work, the machine."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click import argument

from fedsampling import workflow
from fedsampling.cli.group import PATH, Output, command, main

if TYPE_CHECKING:
    from fedsampling.workflow.project import Project


@main.command()
@argument("folder", type=PATH)
def init(folder: Path) -> None:
    """Create a working FOLDER with papers, workflow, configuration and published runs."""
    workflow.init.create_working_folder(folder)
    click.echo(f"{folder}: ready; next: cd {folder} && snakemake --cores all")


@command()
def check(project: "Project") -> Output:
    """Check the configuration and all papers' files; report every error."""
    return workflow.check.check_all(project)


@command()
def plan(project: "Project") -> Output:
    """Estimate the work: jobs, runs, CPU time and downloads.

    Jobs on a cluster then request the estimated time and memory.
    """
    return workflow.estimate.cost_table(workflow.estimate.estimate(project))


@command()
def doctor(project: "Project") -> Output:
    """Check that this machine and its GPU compute correctly."""
    return 0 if workflow.doctor.examine(project.config, click.echo) else 1
