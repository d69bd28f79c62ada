"""Fetch and describe data files: ``fedsampling data fetch`` and ``data card``."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from fedsampling.base.errors import InputError
from fedsampling.base.files import sha256, write_json, write_text
from fedsampling.data.sources.fetch import Tell, fetch_dataset, ordered_editions
from fedsampling.data.sources.sources import no_files, official_datasets
from fedsampling.runs.places import CARDS
from fedsampling.workflow.project import Project


def fetch_each(
    names: Sequence[str], cache: Path, mirror: str | None, tell: Tell | None = None
) -> Iterator[Path]:
    """Fetch each dataset and yield the paths of its files; all names are checked first.

    ``<name>.json`` in the cache records the hashes once all files of a dataset are available.
    """
    if unknown := [no_files(name) for name in names if name not in official_datasets()]:
        raise InputError(*unknown)
    for name in names:
        paths = fetch_dataset(name, cache, mirror, tell).values()
        write_json(cache / f"{name}.json", {path.name: sha256(path) for path in paths})
        yield from paths


def download_sizes(
    datasets: Iterable[str], cache: Path, mirror: str | None, unread: Collection[str] = ()
) -> dict[str, int | None]:
    """Return the size in bytes of each missing official file not in `unread`; None if unknown."""
    return {
        source.name: source.size
        for dataset in sorted(set(datasets))
        for source in ordered_editions(dataset, cache, mirror)[0]
        if source.name not in unread and not source.path_in(cache).is_file()
    }


def describe_each(
    names: Sequence[str], project: Project, as_json: bool, ship: bool
) -> Iterator[str]:
    """Describe datasets.

    `as_json`: whether to write each card to the results folder, for the report. `ship`: whether to
    write each card to the published runs, for users without the data files. Yields a card as text,
    or the file that it was written to.
    """
    from fedsampling.report import data_cards

    config, plan = project.config, project.plan
    folder = CARDS if ship else project.folder / "cards"
    for name in names:
        shipped = None if ship else plan.published_card(name)
        if as_json and shipped:
            write_text(folder / shipped.name, shipped.read_text(encoding="utf-8"))
            yield str(folder / shipped.name)
            continue
        card = data_cards.build(
            name, config.data, project.data, config.mirror, plan.uses.get(name, ())
        )
        if ship and card.data != "official":
            why = "needs the official files, which are not available; use data: official and mirror"
            raise InputError(f"{name}: {why}")
        yield str(data_cards.write(card, folder)) if as_json or ship else data_cards.text(card)
