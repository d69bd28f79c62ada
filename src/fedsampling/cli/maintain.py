"""Commands for those who maintain the project."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from click import argument, option

from fedsampling import workflow
from fedsampling.cli.group import Output, command, main

if TYPE_CHECKING:
    from fedsampling.workflow.project import Project


@command()
def register(project: "Project") -> Iterator[str]:
    """Register the claims' rules, before their fresh runs: digest, time and commit."""
    yield from workflow.register.register(project.papers)


@command()
@argument("names", nargs=-1)
def publish(project: "Project", names: tuple[str, ...]) -> Output:
    """Add finished runs of NAMES (PAPER or PAPER/EXPERIMENT; default: all) to published_runs."""
    return workflow.publish.publish_runs(names, project)


@command()
@option("--check", "only_check", is_flag=True, help="Fail if a file is out of date.")
def findings(project: "Project", only_check: bool) -> Output:
    """Write findings, data and history in docs, and the README's verdicts, from the results."""
    return workflow.findings.write_findings(project, only_check)


@main.command()
def schemes() -> None:
    """Print the table of all samplers (docs/schemes.md)."""
    from fedsampling.report.names import page

    click.echo(page(), nl=False)


@main.command()
@option("--check", "only_check", is_flag=True, help="Fail if a file is out of date.")
def schema(only_check: bool) -> None:
    """Generate config.yaml and the JSON schemas from the typed models."""
    if only_check:
        workflow.schema.check()
        return
    for path in workflow.schema.write():
        click.echo(path)
