"""Templates of the report: pages in HTML, and plain text in Markdown and for the terminal."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from fedsampling.base.text import listed, plural

TEMPLATES = Path(__file__).with_name("templates")


def environment(**options: Any) -> Environment:
    """Return the environment of all templates; `options` are further options of Jinja."""
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        **options,
    )
    templates.filters |= {"listed": listed, "plural": plural}
    return templates


def macro(template: str, name: str, *arguments: Any) -> str:
    """Render a template's macro as plain text."""
    return str(getattr(environment().get_template(template).module, name)(*arguments)).rstrip("\n")
