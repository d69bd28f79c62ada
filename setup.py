"""Add the files of a working folder to the wheel; see `fedsampling init`.

pyproject.toml defines the rest of the package.
"""

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SOURCE = Path("src/fedsampling/workflow/publishing.py").read_text(encoding="utf-8")
match = re.search(r"^PROJECT = (\(.*?^\))", SOURCE, flags=re.MULTILINE | re.DOTALL)
assert match
PROJECT: tuple[str, ...] = ast.literal_eval(match[1])
LEFT_OUT = (
    "requirements-*.txt",  # locks of the site, adapters and mutants: large and unused
    "published_runs/index.json",  # 0.3 MB of hashes that the files contain, too; `init` writes it
)


def files() -> Iterator[Path]:
    """Yield the files of a working folder."""
    for name in PROJECT:
        path = Path(name)
        paths = [path] if path.is_file() else path.rglob("*")
        yield from (file for file in paths if not any(map(file.match, LEFT_OUT)))


class WithProject(build_py):
    """Adds ``fedsampling/project/`` to the wheel; an editable installation has a link instead."""

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
        """List the files of a source distribution."""
        return [*super().get_source_files(), *(str(path) for path in files() if path.is_file())]


setup(cmdclass={"build_py": WithProject})
