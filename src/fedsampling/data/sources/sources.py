"""Official files: URLs, checksums, licences and citations, from ``sources.yaml``.

Entries are named ``"<dataset>/<file>"``; :mod:`.fetch` fetches and verifies them.  A dataset may
exist in several editions; :func:`editions` lists them in order of preference.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from fedsampling.base.errors import nearest
from fedsampling.base.records import Positive
from fedsampling.base.yaml_reading import read_yaml

# Origin of a checksum, from strong to weak.
VERIFIED = {
    "publisher": "compared with the checksum that the publisher gives",
    "others": "compared with the checksum that others give; the publisher gives none",
    "copy": "compared with the copy known to this project; nobody else gives a checksum of it",
    "content": "no checksum is known; counts and shapes are checked when it is read",
}


Checksum = Annotated[str, Field(pattern="^(sha256:[0-9a-f]{64}|md5:[0-9a-f]{32})$")]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Source:
    """One official file, identified by its content."""

    dataset: str  # folder of the file in the cache and in a mirror
    # name of the file in that folder.  If a URL or mirror adds a suffix such as .xz, the file is
    # decompressed
    file: str
    licence: str
    citation: str
    # in order of preference; empty if users have to put the file into a mirror
    urls: tuple[str, ...] = ()
    size: Positive | None = None  # bytes of the stored file, if known.  Larger files are rejected
    checksum: Checksum | None = None  # of the stored file
    # the publisher's own checksum if it is of another kind (MD5); both are compared
    published: Checksum | None = None
    becomes: str = ""  # use of the file in the pipeline
    verified: Literal["publisher", "others", "copy", "content"] = "publisher"  # see ``VERIFIED``
    page: str = ""  # web page of the file
    # one of several forms of the same data; the files of one edition belong together
    edition: str = ""

    @property
    def name(self) -> str:
        """The key in ``SOURCES``."""
        return f"{self.dataset}/{self.file}"

    def path_in(self, cache: Path) -> Path:
        """Return the file's path in a cache."""
        return cache / self.dataset / self.file

    @property
    def unverified(self) -> bool:
        """Whether the file cannot be compared with a checksum from outside this project."""
        return self.verified in ("copy", "content")


def official_datasets() -> tuple[str, ...]:
    """Return every dataset that has official files."""
    return tuple(dict.fromkeys(source.dataset for source in SOURCES.values()))


def no_files(dataset: str) -> str:
    """Return the error for a dataset without official files, with a suggestion."""
    return f"dataset: '{dataset}' has no official files; {nearest(dataset, official_datasets())}"


def editions(dataset: str) -> dict[str, tuple[Source, ...]]:
    """Return the editions of a dataset, each with all its files, the preferred one first."""
    by_edition: dict[str, list[Source]] = {}
    for source in SOURCES.values():
        if source.dataset == dataset:
            by_edition.setdefault(source.edition, []).append(source)
    return {edition: tuple(sources) for edition, sources in by_edition.items()}


def _files(dataset: str, edition: dict[str, Any]) -> Iterator[Source]:
    """Yield the files of an edition in the table, with the properties that they share."""
    suffix = edition.get("suffix", "")
    shared = {key: value for key, value in edition.items() if key not in ("files", "suffix")}
    for file in edition["files"]:
        fields = shared | file
        name = fields.pop("name")
        urls = fields.pop("urls", ())
        whole = (f"{url}{name}{suffix}" if url.endswith("/") else url for url in urls)
        yield Source(dataset, name, urls=tuple(whole), **fields)


_TABLE = read_yaml(Path(__file__).with_name("sources.yaml"))
SOURCES: dict[str, Source] = {
    source.name: source
    for dataset, listed in _TABLE.items()
    for edition in listed
    for source in _files(dataset, edition)
}
