"""Citations: of the software from CITATION.cff, of each paper from its paper.bib.

The report shows these entries and offers them as files.  Each entry names the software version, the
runs and their scale.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedsampling.base.errors import InputError
from fedsampling.base.yaml_reading import read_yaml
from fedsampling.evidence.provenance import Provenance
from fedsampling.evidence.verdicts import LABELS, Claim
from fedsampling.experiments.papers import Paper


@dataclass(frozen=True)
class Software:
    """The fields of CITATION.cff that the report uses; `licence` is an SPDX identifier."""

    title: str
    version: str
    abstract: str
    licence: str
    authors: tuple[str, ...]
    address: str = ""  # of the DOI, or else the url; empty if the file has neither

    @property
    def url(self) -> dict[str, str]:
        """The field of a BibTeX entry with the address, if there is one."""
        return {"url": _escape(self.address)} if self.address else {}


def read(path: Path) -> Software:
    """Read a CITATION.cff.

    References: Druskat et al., *Citation File Format*, version 1.2.0.
    """
    try:
        raw = read_yaml(path)
        return Software(
            title=str(raw["title"]),
            version=str(raw["version"]),
            abstract=" ".join(str(raw["abstract"]).split()),
            licence=str(raw["license"]),
            authors=tuple(_author(author) for author in raw["authors"]),
            address=f"https://doi.org/{raw['doi']}" if "doi" in raw else str(raw.get("url", "")),
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: lacks {error}; see the Citation File Format 1.2.0") from error


def software_bibtex(software: Software, finished: str | None, settings: Iterable[str]) -> str:
    """Write the BibTeX entry that cites a report.

    `finished`, the ISO 8601 time of the last run, or None, gives the year; `settings` is for the
    note.
    """
    fields = {
        "author": _authors(software),
        "title": f"{{{_escape(software.title)}}}",
        "howpublished": f"Software, version {_escape(software.version)}, {software.licence}",
        **software.url,
    }
    note = [*settings]
    if finished:
        fields["year"] = finished[:4]
        note.insert(0, f"report of runs finished on {finished[:10]}")
    if note:
        sentence = "; ".join(note)
        fields["note"] = _escape(sentence[0].upper() + sentence[1:])
    return _entry("fedsampling", fields)


def cited(software: Software, paper: Paper, claim: Claim, origin: Provenance | None) -> str:
    """Cite the verdict on a claim in one line."""
    grade = "" if claim.grade == "paper's size" else f" ({LABELS.get(claim.grade, claim.grade)})"
    cited_claim = f"Claim {claim.id} of {paper.title}: {claim.verdict}{grade}"
    runs = [f"{claim.scale} scale"] if claim.scale else []
    runs += [f"{claim.seeds} seeds"] if claim.seeds else []
    runs += [f"runs finished on {origin.finished[:10]}"] if origin and origin.finished else []
    runs.append(f"{paper.key}.html#claim-{claim.id}")
    runs += [software.address] if software.address else []
    authors = ", ".join(software.authors)
    return f"{authors}. {cited_claim}. fedsampling, version {software.version}; {'; '.join(runs)}."


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


def _entry(key: str, fields: Mapping[str, str]) -> str:
    width = max(len(name) for name in fields)
    lines = [f"  {name:<{width}} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@misc{{{key},", *lines, "}"]) + "\n"


def _authors(software: Software) -> str:
    return " and ".join(f"{{{_escape(author)}}}" for author in software.authors)


def _author(author: dict[str, Any]) -> str:
    if "name" in author:
        return str(author["name"])
    return f"{author['given-names']} {author['family-names']}"


def _escape(text: str) -> str:
    return re.sub(r"([&%$#_{}])", r"\\\1", text)
