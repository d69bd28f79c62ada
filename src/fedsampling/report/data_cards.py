"""A dataset's card: its source, licence and verification, and the data of each client.

A card describes a dataset as the papers' experiments load it.  :func:`build` builds it,
:func:`write` and :func:`load` store it as plain data for the report, :func:`text` formats it for a
terminal.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedsampling.base.errors import InputError, nearest
from fedsampling.base.files import read_record, write_record
from fedsampling.clients.delays import DelayModel
from fedsampling.clients.mesh_files import Mesh
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.data.sources.mirrors import place_of
from fedsampling.data.sources.sources import SOURCES, VERIFIED, Source, editions
from fedsampling.experiments.dataset_uses import DatasetUse
from fedsampling.report.content import validated
from fedsampling.report.text import macro

_SLOW_SECONDS = 1000.0

Statistics = Mapping[str, int | float | str]


@dataclass(frozen=True)
class Origin:
    """An edition of official files: addresses, licence and verification."""

    dataset: str
    edition: str
    files: int
    size: int | None  # bytes of all files; None if the size of a file is unknown
    becomes: tuple[str, ...]  # data that the files provide
    state: str  # origin of the checksums, as text
    # whether the publisher, or anyone else outside this project, has published checksums
    verified: bool
    urls: tuple[str, ...]  # addresses of the first file, in order of preference
    page: str
    licence: str
    citation: str
    checksums: Mapping[str, str]  # by file; an empty string without a checksum
    local: str = ""  # where the files are on this machine, without reading them.  Not stored


@dataclass(frozen=True)
class PartitionedData:
    """The clients' data in experiments, `users`, that load the dataset in the same way."""

    users: tuple[str, ...]
    settings: Mapping[str, Any]
    statistics: Statistics


@dataclass(frozen=True)
class Card:
    """All information about a dataset that the report shows."""

    dataset: str
    data: str  # source of the data of the partitions
    papers: tuple[str, ...]  # keys of the papers that use the dataset
    badges: tuple[str, ...]  # ways in which the data differs from the published dataset
    notes: tuple[str, ...]
    origins: tuple[Origin, ...]
    inputs: Mapping[str, str]  # SHA-256 of each file read
    partitions: tuple[PartitionedData, ...]

    @property
    def common(self) -> Statistics:
        """Statistics that are equal in all partitions."""
        statistics = [partition.statistics for partition in self.partitions]
        return {
            name: value
            for name, value in (statistics[0] if statistics else {}).items()
            if all(values.get(name) == value for values in statistics)
        }

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the statistics that differ between partitions, in order of appearance."""
        names = dict.fromkeys(name for part in self.partitions for name in part.statistics)
        return tuple(name for name in names if name not in self.common)

    @property
    def plain(self) -> dict[str, Any]:
        """The card as plain data, without ``local``, which depends on the machine."""
        card = asdict(self)
        for origin in card["origins"]:
            del origin["local"]
        return card


def build(
    name: str, data: str, cache: Path, mirror: str | None, uses: Sequence[DatasetUse] = ()
) -> Card:
    """Build the card of a dataset, named in the experiments or in ``SOURCES``.

    If official files are not available, the card describes the stand-in and says so. `uses`: how
    the papers' experiments load it.
    """
    origins = _origins(name, uses, cache, mirror)
    members = _members()
    if not origins and not uses and name not in members:
        names = {*members, *(source.dataset for source in SOURCES.values())}
        raise InputError(f"dataset: '{name}' is unknown; {nearest(name, names)}")
    kind = data if origins else "generated"
    notes = [] if origins else ["Generated for each run; nothing is downloaded."]
    try:
        loaded = [_load(name, use, kind, cache, mirror) for use in uses]
    except InputError:
        if kind != "official":
            raise
        kind = "embedded"
        notes.append("The official files are not available: this card describes the stand-in.")
        loaded = [_load(name, use, kind, cache, mirror) for use in uses]
    badges = ["embedded data"] if kind == "embedded" and loaded else []
    badges += ["unverified copy"] if any(part.unverified for part in loaded) else []
    return Card(
        dataset=name,
        data=kind,
        papers=tuple(dict.fromkeys(use.paper for use in uses)),
        badges=tuple(badges),
        notes=tuple(notes),
        origins=origins,
        inputs={file: digest for part in loaded for file, digest in part.inputs.items()},
        partitions=tuple(_merged([part.partition for part in loaded])),
    )


def write(card: Card, folder: Path) -> Path:
    """Write a card as JSON for the report and return its path."""
    path = folder / f"{card.dataset}.json"
    write_record(path, card.plain)
    return path


def load(
    folder: Path, papers: Collection[str], datasets: Collection[str] | None = None
) -> tuple[Card, ...]:
    """Read the cards of `datasets`, or all, that the papers use, sorted by name."""
    paths = [p for p in sorted(folder.glob("*.json")) if datasets is None or p.stem in datasets]
    cards = (validated(Card, read_record(path), path) for path in paths)
    return tuple(card for card in cards if set(papers) & set(card.papers))


def overview(cache: Path, mirror: str | None) -> tuple[Origin, ...]:
    """Return every edition of every dataset that has official files."""
    names = dict.fromkeys(source.dataset for source in SOURCES.values())
    return tuple(origin for name in names for origin in _editions(name, cache, mirror))


def listing(origins: Iterable[Origin]) -> str:
    """Write a paragraph for every edition: content, licence, size, checksums and location."""
    return macro("cards.txt.j2", "listing", origins)


def text(card: Card) -> str:
    """Format a card for the terminal."""
    return macro("cards.txt.j2", "text", card)


def _origins(
    name: str, uses: Sequence[DatasetUse], cache: Path, mirror: str | None
) -> tuple[Origin, ...]:
    members = _members()
    published = members[name].official if name in members else ()
    names = [file for use in uses for file in use.files] or [*published] or [name]
    return tuple(
        origin for file in dict.fromkeys(names) for origin in _editions(file, cache, mirror)
    )


def _editions(dataset: str, cache: Path, mirror: str | None) -> list[Origin]:
    return [_origin(list(files), cache, mirror) for files in editions(dataset).values()]


def _origin(files: list[Source], cache: Path, mirror: str | None) -> Origin:
    first = files[0]
    sizes = [source.size for source in files]
    places = {place_of(source, cache, mirror) for source in files}
    state = VERIFIED[first.verified if first.checksum else "content"]
    return Origin(
        dataset=first.dataset,
        edition=first.edition,
        files=len(files),
        size=None if None in sizes else sum(size or 0 for size in sizes),
        becomes=tuple(dict.fromkeys(source.becomes for source in files)),
        state=state,
        verified=not first.unverified,
        local=places.pop() if len(places) == 1 else ("in part" if "" in places else "mirror"),
        urls=first.urls,
        page=first.page,
        licence=first.licence,
        citation=first.citation,
        checksums={source.file: source.checksum or "" for source in files},
    )


@dataclass(frozen=True, kw_only=True)
class _Loaded:
    """A partition, the digests of its files, and whether one of these is an unverified copy."""

    partition: PartitionedData
    inputs: Mapping[str, str]
    unverified: bool


def _load(name: str, use: DatasetUse, data: str, cache: Path, mirror: str | None) -> _Loaded:
    """Load or generate the data of an experiment, and describe the clients."""
    users = (f"{use.paper}/{use.experiment}: {', '.join(use.cases)}",)
    record = loader(name, use)
    if isinstance(record, DelayModel):
        network = record.network(data, cache, mirror)
        return _Loaded(
            partition=PartitionedData(
                users, use.settings, _describe_delays(record, use.seed, network)
            ),
            inputs={} if network is None else network.inputs,
            unverified=False if network is None else network.unverified,
        )
    loaded = record.load(data, use.seed, cache, mirror)
    return _Loaded(
        partition=PartitionedData(users, use.settings, loaded.describe()),
        inputs=loaded.inputs,
        unverified=loaded.unverified,
    )


def loader(name: str, use: DatasetUse) -> Dataset | DelayModel:
    """Return the record of a dataset, or of delays, with the settings of an experiment."""
    return _members()[name].model_validate({"name": name, **use.settings})


def _members() -> Mapping[str, type[Dataset] | type[DelayModel]]:
    # Both families have a `synthetic`; experiments use only the dataset's as their data.
    return {**DelayModel.members(), **Dataset.members()}


def _describe_delays(model: DelayModel, seed: int, network: Mesh | None) -> Statistics:
    """Describe delays by the mean seconds of the clients of one population."""
    seconds = model.draw(seed, network).mean
    quantiles = {
        "clients": len(seconds),
        "least mean seconds": float(seconds.min()),
        "median mean seconds": float(np.median(seconds)),
        "most mean seconds": float(seconds.max()),
        f"share of clients above {_SLOW_SECONDS:,.0f} s": float((seconds > _SLOW_SECONDS).mean()),
    }
    if network is None:
        return quantiles
    return {"nodes": len(network.nodes), "links": len(network.links), **quantiles}


def _merged(partitions: list[PartitionedData]) -> list[PartitionedData]:
    """Join partitions with equal clients."""
    merged: list[PartitionedData] = []
    for partition in partitions:
        for place, earlier in enumerate(merged):
            if earlier.statistics == partition.statistics:
                merged[place] = replace(earlier, users=(*earlier.users, *partition.users))
                break
        else:
            merged.append(partition)
    return merged
