"""The text of each role, from Gutenberg's complete works of Shakespeare.

It follows LEAF's published description and the behaviour of its public scripts.
"""

import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Ints
from fedsampling.data.shares import starts

LENGTH = 80  # characters of a sample; the next one is its label
_MARKER = "by William Shakespeare"
_FEWEST_LINES = 3


@dataclass(frozen=True, eq=False)
class Roles:
    """The text of each role."""

    user: tuple[str, ...]  # play and role in one name, in LEAF's format; sorted
    play: tuple[str, ...]
    text: NDArray[np.uint8]  # shape (characters,): ASCII codes
    # shape (n + 1,): role k's text is ``text[begin[k]:begin[k + 1]]``, more than 80 characters
    begin: Ints


def read(path: Path) -> Roles:
    """Read Gutenberg's text, or the archive that contains it, and split it into roles."""
    if path.suffix != ".zip":
        return parse(path.read_bytes().decode("latin-1"))
    with zipfile.ZipFile(path) as archive:
        (text,) = (name for name in archive.namelist() if name.endswith(".txt"))
        return parse(archive.read(text).decode("latin-1"))


def parse(text: str) -> Roles:
    """Split the complete works into the text of each role of each play.

    A work begins at the line "by William Shakespeare"; its title is the nearest text above.  In a
    play, a role's first line is indented by two spaces and starts with letters and a full stop;
    lines indented by four spaces continue it.  (The Comedy of Errors has lost its indentation:
    there, "ACT" and stage directions in angle brackets end a speech.)  Roles that differ only in
    capitals are the same.  The Sonnets, works with fewer than two roles, and roles with fewer than
    three lines are left out.

    `text`: Gutenberg's Etext #100, January 1994; lines may end with carriage returns.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    begins = [i for i, line in enumerate(lines) if _MARKER in line]
    texts: dict[tuple[str, str], str] = {}
    for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        title = next(
            (line.strip() for line in lines[begin - 2 : begin - 8 : -1] if line.strip()), ""
        )
        speeches = _speeches(lines[begin + 1 : end], indented=title != "THE COMEDY OF ERRORS")
        if title == "THE SONNETS" or len(speeches) < 2:
            continue
        for role, speech in speeches.items():
            if len(speech) >= _FEWEST_LINES:
                texts[title, role] = " ".join(speech) + " "
    return pooled(texts)


def pooled(texts: Mapping[tuple[str, str], str]) -> Roles:
    """Pool the texts of roles with more than 80 characters, by (play, role), with single spaces."""
    encoded = {key: re.sub(" {2,}", " ", text).encode("latin-1") for key, text in texts.items()}
    users = sorted((_user(*key), key) for key, text in encoded.items() if len(text) > LENGTH)
    return Roles(
        user=tuple(user for user, _ in users),
        play=tuple(play for _, (play, _) in users),
        text=np.frombuffer(b"".join(encoded[key] for _, key in users), np.uint8),
        begin=starts([len(encoded[key]) for _, key in users]),
    )


def _speeches(lines: list[str], indented: bool) -> dict[str, list[str]]:
    """Collect each role's lines, in order of first appearance."""
    first = re.compile(("  " if indented else "") + r"([a-zA-Z][a-zA-Z ]*)\. (.*)")
    continued = "    " if indented else ""
    spoken: dict[str, list[str]] = {}
    speaker = None
    for line in lines:
        if match := first.match(line):
            speaker = match[1].upper()
            if not indented and speaker.startswith("ACT "):
                speaker = None
            else:
                spoken.setdefault(speaker, []).append(match[2])
        elif speaker is not None and line.startswith(continued):
            if not indented and line.startswith("<"):
                speaker = None
            else:
                spoken[speaker].append(line[len(continued) :])
    return spoken


def _user(play: str, role: str) -> str:
    return re.sub(r"\W+", "_", f"{play}_{role}".replace(" ", "_"))
