"""Citations of the software, from CITATION.cff, and of its claims and figures.

The report shows these entries and offers them as files.  Each entry names the software version, the
runs and their scale.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedsampling.base.errors import InputError
from fedsampling.base.text import grouped, plural
from fedsampling.base.yaml_reading import read_yaml
from fedsampling.evidence.claims import Claim
from fedsampling.evidence.grades import LABELS
from fedsampling.evidence.provenance import Provenance
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Exhibit
from fedsampling.report.drawing.saving import slug


@dataclass(frozen=True)
class Software:
    """The fields of CITATION.cff that the report uses; `licence` is an SPDX identifier."""

    title: str
    version: str
    abstract: str
    licence: str
    authors: tuple[str, ...]
    address: str = ""  # of the DOI, or else the url; empty if the file has neither
    report: str = ""  # address of the published report, without a slash at its end; may be empty

    @property
    def url(self) -> dict[str, str]:
        """The field of a BibTeX entry with the address, if there is one; it is read verbatim."""
        address = self.report or self.address
        return {"url": address} if address else {}

    def place(self, page: str) -> str:
        """Return the address of a page of the report, or its name if no address is configured."""
        return f"{self.report}/{page}" if self.report else page


def read(path: Path, report: str | None = None) -> Software:
    """Read a CITATION.cff; `report`: address of the published report.

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
            report=(report or "").rstrip("/"),
        )
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{path}: missing key {error}; see the Citation File Format 1.2.0"
        ) from error


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


@dataclass(frozen=True)
class Citation:
    """The citation of a verdict or of an artefact."""

    software: Software
    key: str  # of its BibTeX entry
    cited: str  # such as "Claim c1 of …: reproduced"
    runs: tuple[str, ...]  # the runs behind it
    date: str | None  # ISO 8601 time of the last run, or of the first fresh one
    place: str  # its address

    @property
    def line(self) -> str:
        """The citation in one line."""
        software = self.software
        details = [*self.runs, self.place] + ([software.address] if software.address else [])
        authors = ", ".join(software.authors)
        version = f"fedsampling, version {software.version}; {'; '.join(details)}."
        return f"{authors}. {self.cited}. {version}"

    @property
    def bibtex(self) -> str:
        """The citation as a BibTeX entry."""
        software = self.software
        fields = {
            "author": _authors(software),
            "title": f"{{{_escape(self.cited)}}}",
            "howpublished": f"fedsampling, version {_escape(software.version)}",
        }
        if software.report or software.address:
            fields["url"] = self.place if software.report else software.address
        if self.date:
            fields["year"] = self.date[:4]
        note = [*self.runs] + ([] if software.report else [self.place])
        sentence = "; ".join(note)
        fields["note"] = _escape(sentence[:1].upper() + sentence[1:])
        return _entry(self.key, fields)


def of_claim(software: Software, paper: Paper, claim: Claim, origin: Provenance | None) -> Citation:
    """Cite the verdict on a claim."""
    basis, fresh = claim.basis, claim.confirmation if claim.confirmed else None
    grade = LABELS.get(basis.grade, basis.grade)
    words = "" if grade == "paper's size" else f" ({grade})"
    cited_claim = f"Claim {claim.id} of {paper.title}: {basis.verdict}{words}"
    if fresh:
        cited_claim += f", confirmed by a rule registered on {fresh.registered[:10]}"
    else:
        cited_claim += ", explored" if claim.kind == "empirical" else f", {claim.kind}"
    runs = [f"{claim.scale} scale"] if claim.scale and not fresh else []
    seeds = fresh.seeds if fresh else claim.seeds
    runs += [plural(seeds, "fresh seed" if fresh else "seed")] if seeds else []
    date = fresh.first_run if fresh else origin.finished if origin else None
    runs += [f"runs {'began' if fresh else 'finished'} on {date[:10]}"] if date else []
    place = software.place(f"{paper.key}.html#claim-{slug(claim.id)}")
    key = f"fedsampling-{paper.key}-{claim.id}"
    return Citation(software, key, cited_claim, tuple(runs), date, place)


def of_exhibit(software: Software, paper: Paper, exhibit: Exhibit, name: str) -> Citation:
    """Cite a figure or table; `name` is its name on the page."""
    origin = exhibit.provenance
    runs = [f"{origin.scale} scale", grouped(plural(origin.runs, "run"))] if origin.runs else []
    runs += [f"runs finished on {origin.finished[:10]}"] if origin.finished else []
    place = software.place(f"{paper.key}.html#{slug(exhibit.artefact)}")
    key = f"fedsampling-{paper.key}-{exhibit.artefact}"
    named = f"{name}, after {paper.title}"
    return Citation(software, key, named, tuple(runs), origin.finished or None, place)


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
