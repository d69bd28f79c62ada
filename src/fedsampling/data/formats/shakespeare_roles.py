"""The text of each role, from Gutenberg's complete works of Shakespeare.

This is the first step of :mod:`fedsampling.data.datasets.shakespeare`.  It follows LEAF's published
description and the behaviour of its public scripts.

References
----------
Caldas et al.: LEAF: a benchmark for federated settings. arXiv 1812.01097.
"""

import re
import string
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Ints
from fedsampling.data.partitions.shares import starts

LENGTH = 80  # characters of a sample; the next one is its label

_MARKER = "by William Shakespeare"
_FEWEST_LINES = 3
_LARGEST = 8_000_000  # bytes; the text has five and a half million


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
        texts = [entry for entry in archive.infolist() if entry.filename.endswith(".txt")]
        if len(texts) != 1 or texts[0].file_size > _LARGEST:
            raise ValueError(f"{path}: expected an archive of one text of a few million bytes")
        return parse(archive.read(texts[0]).decode("latin-1"))


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
    if not texts:
        raise ValueError("not the complete works of Shakespeare as Gutenberg's Etext #100 has them")
    return pooled(texts)


def pooled(texts: Mapping[tuple[str, str], str]) -> Roles:
    """Pool the texts of roles, by (play, role), with single spaces.

    Roles without a sample (80 characters or fewer) are left out.
    """
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


_LEAF = "\n !\"&'(),-.0123456789:;>?" + string.ascii_uppercase + "[]" + string.ascii_lowercase + "}"

_TFF = "dhlptx@DHLPTX $(,048cgkoswCGKOSW[_#'/37;?bfjnrvzBFJNRVZ\"&*.26:\naeimquyAEIMQUY]!%)-159\r"
_UNKNOWN = {"tff": 0}  # index of unknown characters, in vocabularies that accept them

VOCABULARIES = {"printable": string.printable, "leaf": _LEAF, "tff": _TFF}
SIZES = {name: len(symbols) for name, symbols in VOCABULARIES.items()}


def encode(text: NDArray[np.uint8], vocabulary: str) -> NDArray[np.int8]:
    """Replace the characters of a text by their indices in the vocabulary.

    `text`: Latin-1 codes. Returns shape of `text`.
    """
    symbols = VOCABULARIES[vocabulary].encode("latin-1")
    table = np.full(256, _UNKNOWN.get(vocabulary, -1), np.int8)
    table[np.frombuffer(symbols, np.uint8)] = np.arange(len(symbols))
    codes = table[text]
    if (codes < 0).any():
        unknown = bytes(np.unique(text[codes < 0])).decode("latin-1")
        raise ValueError(f"not in the vocabulary '{vocabulary}': {unknown!r}")
    return codes
