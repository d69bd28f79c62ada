"""Guides in docs/ run as they stand: files are written, Python is run, commands succeed."""

import dataclasses
from pathlib import Path

import pytest
from tests.processes import run_as_if_alone

from fedsampling.samplers.scheme import HOOKS, Setup
from fedsampling.workflow.publishing import BLOCK

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.glob("your-*.md")), DOCS / "which-sampler.md", DOCS / "faq.md"]
CALL = "from fedsampling.cli import main\nmain({arguments!r}, standalone_mode=False)\n"


def script(page, folder):
    """Write the files of a page, and return its Python and its commands as one program."""
    parts = []
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["file"]:
            (folder / block["file"]).write_text(block["text"], encoding="utf-8")
        elif block["kind"] == "sh":
            for command in block["text"].splitlines():
                program, *arguments = command.split()
                assert program == "fedsampling"
                parts.append(CALL.format(arguments=arguments))
        else:
            assert block["kind"] == "python"
            parts.append(block["text"])
    return "\n".join(parts)


def test_the_page_lists_all_names_that_a_sampler_cannot_use():
    page = (ROOT / "docs" / "your-sampler.md").read_text(encoding="utf-8")
    reserved = {name for name in HOOKS if not name.startswith(("model_", "parse_"))}
    assert {name for name in reserved if f"`{name}`" not in page} == set()
    fields = {field.name for field in dataclasses.fields(Setup)}
    assert {name for name in fields if f"`{name}" not in page} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_runs_as_it_stands(page, tmp_path):
    run_as_if_alone(script(page, tmp_path), tmp_path)
