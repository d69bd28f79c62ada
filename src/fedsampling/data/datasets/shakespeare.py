"""Shakespeare by role: next-character prediction, each role of each play a client.

Steps: Gutenberg's text -> :func:`read` (text by role, one
byte per character, all roles pooled) -> :func:`windows` (a sample is a position in that text) ->
sampling, filter and split (:mod:`fedsampling.data.partitions.partition`) -> :func:`encode_windows`
(arrays).

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
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Ints
from fedsampling.base.files import sha256
from fedsampling.base.records import Part, Positive, Share, hashed_if_set
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import PublishedData
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.partition import at_least, sample_clients, split
from fedsampling.data.samples import first_clients
from fedsampling.data.shares import Shares, importances, ranks, select, starts
from fedsampling.data.sources.fetch import fetch_dataset
from fedsampling.data.sources.sources import SOURCES
from fedsampling.data.stand_ins import play_like

# The text of each role, from Gutenberg's complete works of Shakespeare.
#
# It follows LEAF's published description and the behaviour of its public scripts.


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


_LEAF = "\n !\"&'(),-.0123456789:;>?" + string.ascii_uppercase + "[]" + string.ascii_lowercase + "}"

_TFF = "dhlptx@DHLPTX $(,048cgkoswCGKOSW[_#'/37;?bfjnrvzBFJNRVZ\"&*.26:\naeimquyAEIMQUY]!%)-159\r"

VOCABULARIES = {"printable": string.printable, "leaf": _LEAF, "tff": _TFF}
SIZES = {name: len(symbols) for name, symbols in VOCABULARIES.items()}


def encode(text: NDArray[np.uint8], vocabulary: str) -> NDArray[np.int8]:
    """Replace the characters of a text, Latin-1 codes, by their indices in the vocabulary."""
    symbols = VOCABULARIES[vocabulary].encode("latin-1")
    table = np.full(256, 0 if vocabulary == "tff" else -1, np.int8)  # TFF's accepts all characters
    table[np.frombuffer(symbols, np.uint8)] = np.arange(len(symbols))
    codes = table[text]
    if (codes < 0).any():
        unknown = bytes(np.unique(text[codes < 0])).decode("latin-1")
        raise ValueError(f"not in the vocabulary '{vocabulary}': {unknown!r}")
    return codes


GAP = LENGTH - 1  # windows dropped between training and test, so that they do not overlap

# Output of LEAF's scripts for the same text.  (Its page says 1,129 users.)  After the split, 799
# users remain with 0.8 of the samples for training, 660 with LEAF's default of 0.9.
USERS = 1_130


class Shakespeare(PublishedData, name="shakespeare", title="Shakespeare (LEAF)"):
    """Shakespeare by role, processed as by LEAF."""

    official: ClassVar[tuple[str, ...]] = ("shakespeare",)
    published: ClassVar[int | None] = USERS

    clients: Positive | None = Field(None, description="number of roles to use; null: all")
    fraction: Part = Field(1.0, description="fraction of all samples")
    min_samples: Positive = Field(1, description="minimum samples of a role, training and test")
    train: Share = Field(0.8, description="share of a role's samples for training")
    every: Positive = hashed_if_set(1, "use every n-th sample of a role; 1: all")
    length: Positive = hashed_if_set(
        LENGTH, "characters before the predicted one that a sample keeps", le=LENGTH
    )
    vocabulary: Literal["printable", "leaf"] = "printable"

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Read (or generate) the text and make its roles the clients.

        As in LEAF: draw roles until they have `fraction` of all samples, drop roles with few
        samples, and split each role: the first samples are for training, the next 79 are dropped.
        LEAF seeds the draw of roles with the time of day, so the papers' clients cannot be
        reproduced.  Here `seed` determines the roles; results may depend on it.
        """
        inputs: Mapping[str, str] = {}
        unverified = False
        if source == "official":
            roles, inputs, unverified = _official(cache, mirror)
        else:
            roles = pooled(play_like(stream(0, "data.play_like")))
        drawn = sample_clients(windows(roles), self.fraction, stream(seed, "data.roles"))
        train, tests = split(at_least(drawn, self.min_samples), self.train, GAP)
        train, tests = (
            select(shares, ranks(shares) % self.every == 0)
            for shares in (first_clients(train, self.clients), first_clients(tests, self.clients))
        )
        x, y = encode_windows(roles, train[0], self.vocabulary)
        x_test, y_test = encode_windows(roles, tests[0], self.vocabulary)
        return FederatedDataset(
            name="shakespeare" if source == "official" else "shakespeare-like",
            x=x[:, -self.length :],
            y=y,
            start=train[1],
            p=importances(train[1], self.importance),
            x_test=x_test[:, -self.length :],
            y_test=y_test,
            start_test=tests[1],
            classes=SIZES[self.vocabulary],
            unverified=unverified,
            inputs=inputs,
        )


def windows(roles: Roles) -> Shares:
    """Return the positions in the text where the 80 characters of each role's samples begin."""
    sizes = np.diff(roles.begin) - LENGTH
    start = starts(sizes)
    return np.repeat(roles.begin[:-1] - start[:-1], sizes) + np.arange(start[-1]), start


def encode_windows(roles: Roles, index: Ints, vocabulary: str) -> tuple[NDArray[np.int8], Ints]:
    """Encode samples at positions `index`, shape (B,): x, shape (B, 80), and the next character."""
    codes = encode(roles.text, vocabulary)
    x = np.lib.stride_tricks.sliding_window_view(codes, LENGTH)[index]
    return x, codes[index + LENGTH].astype(np.int64)


def _official(cache: Path, mirror: str | None) -> tuple[Roles, dict[str, str], bool]:
    paths = fetch_dataset("shakespeare", cache, mirror)
    (path,) = paths.values()
    roles = read(path)
    unverified = any(SOURCES[name].unverified for name in paths)
    return roles, {path.name: sha256(path)}, unverified
