"""Working folders, copies of the project's files in which `snakemake` runs, and new papers."""

import re
import shutil
import tomllib
from pathlib import Path

from fedsampling.base.errors import InputError
from fedsampling.base.files import write_text
from fedsampling.experiments.papers import MAX_NAME

# A page's block of code, with the name of its file if the page gives one.
BLOCK = re.compile(
    r"(?:^`(?P<file>[^`\n]+)`\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S
)
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
        for name in project_files():
            origin, target = project_folder() / name, folder / name
            if origin.is_dir():
                shutil.copytree(origin, target, ignore=shutil.ignore_patterns(*LEFT_OUT))
            else:
                shutil.copy(origin, target)
        for page in (folder / "README.md", *(folder / "docs").glob("*.md")):
            text = REPOSITORY_ONLY.sub("", page.read_text(encoding="utf-8"))
            for command, replacement in WITHOUT_MAKE.items():
                text = text.replace(command, replacement)
            page.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{folder}: cannot be written ({reason}); name another folder") from None


def create_paper(folder: Path, papers: Path) -> Path:
    """Write the example of docs/add-a-paper.md as a new paper; a plain name is within `papers`."""
    key = folder.name
    if not re.fullmatch(f"[a-z0-9]{{1,{MAX_NAME}}}", key):
        raise InputError(f"{key}: is the paper's key; must be lower-case letters or digits")
    folder = papers / key if folder == Path(key) else folder
    if folder.exists():
        raise InputError(f"{folder}: exists; name a new folder")
    page = (project_folder() / "docs" / "add-a-paper.md").read_text(encoding="utf-8")
    example = page.partition("\n## ")[0].replace("mypaper", key)
    for block in BLOCK.finditer(example):
        if block["file"] and block["file"].startswith("papers/"):
            write_text(folder / Path(block["file"]).name, block["text"])
    return folder


def project_files() -> list[str]:
    """Return the files and folders of a working folder, which pyproject.toml adds to a wheel."""
    folder = project_folder()
    if folder.name == "project":  # an installed package
        return [path.name for path in folder.iterdir()]
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    _package, *folders = wheel["only-include"]
    return [*folders, *wheel["force-include"]]


def project_folder() -> Path:
    """Return the folder with the project's files: inside the installed package, or the checkout."""
    package = Path(__file__).parents[1]
    within = package / "project"
    return within if within.is_dir() else package.parents[1]
