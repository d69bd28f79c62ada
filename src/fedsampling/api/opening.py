"""Open the project of this repository, or that of a results folder."""

from pathlib import Path

from fedsampling.base.errors import InputError
from fedsampling.workflow.init import project_folder
from fedsampling.workflow.project import CONFIG, Project


def project_root() -> Path:
    """Return the working folder if it has papers; otherwise the folder of the project's files."""
    return Path() if Path("papers").is_dir() else project_folder()


def open_results(results: str | Path, only_reads: bool = False) -> Project:
    """Open the project whose results are in a folder; `only_reads`: it loads no users' code."""
    results = Path(results)
    if not (results / CONFIG).is_file():
        raise InputError(
            f"results: {str(results)!r} is invalid; must be a folder with the results of a call "
            "of snakemake"
        )
    return Project.open(results / CONFIG, results, project_root() / "papers", only_reads=only_reads)
