"""Published runs: adding finished runs to them.  Also new working folders and new papers."""

import re
import shutil
import tomllib
from collections.abc import Collection
from pathlib import Path

from fedsampling.base.errors import InputError, check_known
from fedsampling.base.files import write_record, write_text
from fedsampling.experiments.papers import MAX_NAME
from fedsampling.runs import store
from fedsampling.runs.execute import locate
from fedsampling.runs.places import INDEX, PUBLISHED, published_runs, run_stores
from fedsampling.workflow.project import Project


def publish_runs(names: Collection[str], project: Project, folder: Path = PUBLISHED) -> list[str]:
    """Add finished runs to the published runs, and rewrite the index.

    A run that several experiments share is stored with the first. Published runs stay unchanged.
    Returns a line for each changed experiment, or one if none changed.
    """
    plan, config = project.plan, project.config
    valid = {*plan.papers, *plan.experiments}
    valid |= {f"{key}/{name}" for key, paper in plan.papers.items() for name in paper.left_out}
    check_known([name for name in names if "/" not in name], plan.papers, "'{}' is unknown")
    check_known([name for name in names if "/" in name], valid, "'{}' is unknown")
    if config.scale not in ("reduced", "paper") or config.data != "official":
        raise InputError(
            "scale: runs at quick scale or with embedded data cannot be published; "
            "use scale=reduced or scale=paper, and data=official"
        )
    target, shared = run_stores(project.results, config)
    published = set(published_runs(folder))
    gained: dict[str, list[store.Result]] = {}
    for job in plan.jobs.values():
        if names and not {job.experiment_id, job.paper} & set(names):
            continue
        for run in job.runs:
            result = None if run.hash in published else locate(run.hash, target, shared, job.code)
            if result:
                published.add(run.hash)
                gained.setdefault(job.experiment_id, []).append(store.as_published(result))
    for name, runs in gained.items():
        path = folder / f"{name}.parquet"
        before = store.load_together(path).values() if path.is_file() else ()
        store.save_together(path, [*before, *runs])
    files = {
        f"{path.parent.name}/{path.stem}": store.load_together(path)
        for path in sorted(folder.glob("*/*.parquet"))
    }
    write_record(folder / INDEX, {name: sorted(runs) for name, runs in files.items()})
    lines = [f"{name}: {len(runs)} runs added" for name, runs in gained.items()]
    return lines or ["no run added: the others are published, unfinished, or of other code"]


# Creation of working folders: copies of the project's files in which `snakemake` runs.

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
