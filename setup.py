"""Puts the files of a working folder into the wheel, from where they are; see `fedsampling init`.

All else about the package stands in pyproject.toml.
"""

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SOURCE = Path("src/fedsampling/workflow/working_folder.py").read_text(encoding="utf-8")
found = re.search(r"^PROJECT = (\(.*?^\))", SOURCE, flags=re.MULTILINE | re.DOTALL)
assert found
PROJECT: tuple[str, ...] = ast.literal_eval(found[1])
LEFT_OUT = (
    "requirements-*.txt",  # locks of the site, adapters and mutants: large, and of no use
    "published_runs/index.json",  # 0.3 MB of hashes that the files hold, too; `init` writes it
)


def files() -> Iterator[Path]:
    """Name all files of a working folder."""
    for name in PROJECT:
        path = Path(name)
        inside = [path] if path.is_file() else path.rglob("*")
        yield from (each for each in inside if not any(map(each.match, LEFT_OUT)))


class WithProject(build_py):
    """Adds ``fedsampling/project/`` to what is built, unless that is a link to this folder."""

    def run(self) -> None:
        """Build the package and copy the files."""
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "fedsampling" / "project"
        shutil.rmtree(target, ignore_errors=True)
        for path in files():
            if path.is_file() and "__pycache__" not in path.parts:
                (target / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target / path)

    def get_source_files(self) -> list[str]:
        """Name what a source distribution holds."""
        return [*super().get_source_files(), *(str(path) for path in files() if path.is_file())]


setup(cmdclass={"build_py": WithProject})
