"""The BibTeX entry of a paper, from its paper.bib."""

import re
from pathlib import Path

from fedsampling.base.errors import InputError


def paper_bibtex(path: Path, key: str) -> str:
    """Read a paper's BibTeX entry."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise InputError(
            f"{path}: cannot be read ({reason}); every paper needs a paper.bib"
        ) from error
    keys = re.findall(r"^\s*@\w+\s*\{\s*([^\s,]+)\s*,", text, flags=re.MULTILINE)
    if keys != [key]:
        raise InputError(f"{path}: holds entries {keys}; must be one entry with the key '{key}'")
    return text + "\n"
