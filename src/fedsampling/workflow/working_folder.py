"""Creation of working folders: copies of the project's files in which `snakemake` runs."""

import re
import shutil
from pathlib import Path

from fedsampling.base.errors import InputError
from fedsampling.base.files import write_record
from fedsampling.runs.places import INDEX, PUBLISHED, index

# Content of a new working folder; `setup.py` adds it to the wheel.
PROJECT = (
    "Snakefile", "config.yaml", "workflow", "profiles", "envs", "papers", "published_runs",
    "CITATION.cff", "LICENSE", "README.md", "docs",
)  # fmt: skip
LEFT_OUT = ("__pycache__", "docstrings.py", "hooks.py")  # the latter two build the site
# Parts of pages that apply only to the repository, and commands that replace the Makefile's.
REPOSITORY_ONLY = re.compile(r"<!-- repository -->\n.*?<!-- /repository -->\n\n?", re.DOTALL)
WITHOUT_MAKE = {
    "make reproduce": "snakemake --cores all",
    "make smoke": "snakemake --cores all --config scale=quick data=embedded",
    "make clean": "rm -rf results logs .snakemake",
}


def create_working_folder(folder: Path) -> None:
    """Create a working folder with everything that `snakemake` needs."""
    try:
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder}: is not empty; name a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        for name in PROJECT:
            origin = project_folder() / name
            if origin.is_dir():
                shutil.copytree(origin, folder / name, ignore=shutil.ignore_patterns(*LEFT_OUT))
            else:
                shutil.copy(origin, folder / name)
        if not (folder / PUBLISHED / INDEX).is_file():
            write_record(folder / PUBLISHED / INDEX, index(folder / PUBLISHED))
        for page in (folder / "README.md", *(folder / "docs").glob("*.md")):
            page.write_text(
                _without_repository_parts(page.read_text(encoding="utf-8")), encoding="utf-8"
            )
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{folder}: cannot be written ({reason}); name another folder") from None


def project_folder() -> Path:
    """Return the folder with the project's files: inside the installed package, or the checkout."""
    package = Path(__file__).parents[1]
    within = package / "project"
    return within if within.is_dir() else package.parents[1]


def _without_repository_parts(page: str) -> str:
    """Remove the parts of a page that apply only to the repository."""
    text = REPOSITORY_ONLY.sub("", page)
    for command, replacement in WITHOUT_MAKE.items():
        text = text.replace(command, replacement)
    return text
