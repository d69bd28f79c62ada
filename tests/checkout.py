"""A copy of the project in which tests run Snakemake."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from tests.shared import ROOT

COPIED = ("Snakefile", "workflow", "profiles", "envs", "CITATION.cff", "Makefile", "pyproject.toml")


class Checkout:
    """A folder such as a clone, with its own sources, so that a test can change one of them."""

    def __init__(self, root, **environment):
        self.root = root
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "PYTHONPATH": str(root / "src")}
        self.environment |= {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **environment}
        # Under `make test` the inner `make` would take itself for a part of the outer one.
        for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
            self.environment.pop(name, None)

    def command(self, *arguments):
        """Return the arguments with which `subprocess` starts a command here."""
        return {"args": arguments, "cwd": self.root, "env": self.environment, "text": True}

    def call(self, *arguments, **options):
        """Return exit status, and standard output and error together."""
        result = subprocess.run(
            **self.command(*arguments, **options),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=600,
            check=False,
        )
        return result.returncode, result.stdout

    def edit(self, name, old, new):
        path = self.root / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def edit_paper(self, name, change):
        """Apply a function to a paper's content."""
        path = self.root / "papers" / name / "paper.yaml"
        paper = yaml.safe_load(path.read_text(encoding="utf-8"))
        change(paper)
        path.write_text(yaml.safe_dump(paper, sort_keys=False, allow_unicode=True), "utf-8")

    def stored(self):
        """Return the finished runs and when each was written."""
        paths = (self.root / "results" / "store").rglob("[!.]*.parquet")
        return {path: path.stat().st_mtime_ns for path in paths}

    def made_files(self, *patterns):
        """Return the contents of results."""
        results = self.root / "results"
        paths = [path for pattern in patterns for path in sorted(results.glob(pattern))]
        return {str(path.relative_to(results)): path.read_bytes() for path in paths}


def copy_project(root, papers):
    """Copy the project, with `papers` or a folder within."""
    for name in (*COPIED, "src", papers):
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, root / name, ignore=ignored)
        else:
            root.mkdir(exist_ok=True)
            shutil.copy2(ROOT / name, root / name)
