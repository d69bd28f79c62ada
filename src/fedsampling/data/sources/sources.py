"""Official files: URLs, checksums, licences and citations, from ``sources.yaml``.

Entries are named ``"<dataset>/<file>"``; :mod:`fetch` fetches and verifies them.  A dataset may
exist in several editions; :func:`editions` lists them in order of preference.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from fedsampling.base.errors import nearest
from fedsampling.base.records import Positive, Strict
from fedsampling.base.yaml_reading import read_yaml

# Origin of a checksum, from strong to weak; readers check the contents in every case.
VERIFIED = {
    "publisher": "compared with the checksum that the publisher gives",
    "others": "compared with the checksum that others give; the publisher gives none",
    "copy": "compared with the copy known to this project; the publisher gives no checksum",
    "content": "no checksum is known; counts and shapes are checked when it is read",
}


@dataclass(frozen=True)
class Source:
    """One official file, identified by its content."""

    dataset: str  # folder of the file in the cache and in a mirror
    # name of the file in that folder.  If a URL or mirror adds a suffix such as .xz, the file is
    # decompressed
    file: str
    # in order of preference; empty if users have to put the file into a mirror
    urls: tuple[str, ...]
    size: int | None  # bytes of the stored file; None if unknown.  Larger files are rejected
    # checksum of the stored file, ``"sha256:<hexadecimal digits>"`` or ``"md5:..."``
    checksum: str | None
    licence: str
    citation: str
    becomes: str  # use of the file in the pipeline
    # the publisher's own checksum if it is of another kind (MD5); both are compared
    published: str | None = None
    verified: str = "publisher"  # a key of ``VERIFIED``: the origin of the checksum
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


Checksum = Annotated[str, Field(pattern="^(sha256:[0-9a-f]{64}|md5:[0-9a-f]{32})$")]


class _File(Strict):
    """A file in the table."""

    name: str
    size: Positive | None = None
    checksum: Checksum | None = None
    published: Checksum | None = None
    becomes: str = ""


class _Edition(Strict):
    """The files of one edition and their common properties, in the table."""

    edition: str = ""
    urls: tuple[str, ...] = ()
    suffix: str = ""
    page: str
    licence: str
    citation: str
    verified: Literal["publisher", "others", "copy", "content"] = "publisher"
    becomes: str = ""
    files: tuple[_File, ...]

    def source(self, dataset: str, file: _File) -> Source:
        urls = (f"{url}{file.name}{self.suffix}" if url.endswith("/") else url for url in self.urls)
        return Source(
            dataset=dataset,
            file=file.name,
            urls=tuple(urls),
            becomes=file.becomes or self.becomes,
            **file.model_dump(include={"size", "checksum", "published"}),
            **self.model_dump(include={"licence", "citation", "verified", "page", "edition"}),
        )


_TABLE = TypeAdapter(dict[str, tuple[_Edition, ...]])

SOURCES: dict[str, Source] = {
    f"{dataset}/{file.name}": edition.source(dataset, file)
    for dataset, listed in _TABLE.validate_python(
        read_yaml(Path(__file__).with_name("sources.yaml"))
    ).items()
    for edition in listed
    for file in edition.files
}
