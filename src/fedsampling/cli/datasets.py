"""``fedsampling data``: list, fetch, verify and describe datasets."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from click import argument, option

from fedsampling import workflow
from fedsampling.base.progress import reporter
from fedsampling.cli.group import CommandGroup, Output, command, main

if TYPE_CHECKING:
    from fedsampling.workflow.project import Project


@main.group(cls=CommandGroup)
def data() -> None:
    """List, fetch, verify and describe datasets."""


@command("list", group=data)
def list_datasets(project: "Project") -> Output:
    """List all datasets with official files, and whether these are available locally."""
    from fedsampling.report.data_cards import listing, overview

    return listing(overview(project.data, project.config.mirror))


@command("fetch", group=data)
@argument("names", nargs=-1, required=True)
def fetch_datasets(project: "Project", names: tuple[str, ...]) -> Iterator[Path]:
    """Download and verify the official files of datasets NAMES, and record their hashes."""
    with reporter() as progress:
        folders = project.data, project.config.mirror
        yield from workflow.fetch_data.fetch_each(names, *folders, progress)


@command("verify", group=data)
@argument("names", nargs=-1)
def verify_datasets(project: "Project", names: tuple[str, ...]) -> Output:
    """Verify the local files of datasets NAMES (default: all); download nothing."""
    return workflow.verify_data.verify_each(names, project.data, project.config.mirror)


@command("card", group=data)
@argument("names", nargs=-1, required=True)
@option("--json", "as_json", is_flag=True, help="Write it to RESULTS/cards for the report.")
@option("--ship", is_flag=True, help="Write it to published_runs, for users without the data.")
def show_cards(project: "Project", names: tuple[str, ...], as_json: bool, ship: bool) -> Output:
    """Describe datasets NAMES: source, licence, sample counts, clients."""
    return workflow.fetch_data.describe_each(names, project, as_json, ship)
