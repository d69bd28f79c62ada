"""Data files, fetched and described: ``fedsampling data fetch`` and ``data card``."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

from fedsampling.base.errors import InputError
from fedsampling.base.files import sha256, write_json, write_text
from fedsampling.base.memory import collect_rarely
from fedsampling.data.sources.fetch import Tell, fetch_dataset
from fedsampling.data.sources.sources import no_files, official_datasets
from fedsampling.runs.places import CARDS
from fedsampling.workflow.project import Project


def fetch_each(
    names: Sequence[str], cache: Path, mirror: str | None, tell: Tell | None = None
) -> Iterator[Path]:
    """Fetch each dataset, record the hashes in ``<name>.json``, and yield its files' paths."""
    if unknown := [no_files(name) for name in names if name not in official_datasets()]:
        raise InputError(*unknown)
    for name in names:
        paths = fetch_dataset(name, cache, mirror, tell).values()
        write_json(cache / f"{name}.json", {path.name: sha256(path) for path in paths})
        yield from paths


def describe_each(
    names: Sequence[str], project: Project, as_json: bool, ship: bool
) -> Iterator[str]:
    """Yield each dataset's card as text, or its file in the results or in the published runs."""
    collect_rarely()
    for name in names:
        with project.made(f"cards/{name}").making() if as_json else nullcontext():
            text = _described(name, project, as_json, ship)
        yield text


def _described(name: str, project: Project, as_json: bool, ship: bool) -> str:
    from fedsampling.report import data_cards

    config, plan = project.config, project.plan
    folder = CARDS if ship else project.folder / "cards"
    shipped = None if ship else plan.published_card(name)
    if as_json and shipped:
        write_text(folder / shipped.name, shipped.read_text(encoding="utf-8"))
        return str(folder / shipped.name)
    uses = plan.uses.get(name, ())
    card = data_cards.build(name, config.data, project.data, config.mirror, uses)
    if ship and card.data != "official":
        why = "needs the official files, which are not available; use data: official and mirror"
        raise InputError(f"{name}: {why}")
    return str(data_cards.write(card, folder)) if as_json or ship else data_cards.text(card)
