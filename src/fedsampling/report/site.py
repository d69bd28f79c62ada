"""Builds the report: a folder of pages that readers can open without a network, and cite.

This is the last step of the pipeline.  It reads result files and writes ``index.html``, a page for
each paper and a copy of every linked file.  Equal results give equal bytes: all dates in the report
are dates of runs.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from fedsampling.base import files
from fedsampling.base.errors import InputError
from fedsampling.evidence.recomputed import Recomputed
from fedsampling.experiments.papers import Paper
from fedsampling.report import citation, content, crate, data_cards, pages
from fedsampling.report.content import Chapter, ExperimentViews
from fedsampling.report.data_cards import Card
from fedsampling.report.page_templates import PageContent

_EXPLORER = "explorer"
_VENDOR = Path(__file__).with_name("vendor")
_LIBRARY = {
    "uPlot.iife.min.js": "uPlot.js",
    "uPlot.min.css": "uPlot.css",
    "LICENSE": "uPlot.LICENSE",
}
_THUMBNAILS, _WIDTH_PIXELS = "thumbnails", 320
_QUALITY = 40  # of WebP; keeps fifty figures below 400 kB
_MARK = ".fedsampling-report"
# Files that make the workflow readable and runnable from the report.
_WORKFLOW = ("Snakefile", "workflow/rules/*.smk", "workflow/schemas/*.json", "envs/*")
_PAPER = ("paper.yaml", "paper.bib", "reported.csv")


def build(
    results: Path,
    papers: Mapping[str, Paper],
    out: Path,
    *,
    project: Path,
    config: Mapping[str, Any],
    options: str = "",
    claims: Path | None = None,
    cards: Collection[str] = (),
    recomputed: Sequence[Recomputed] = (),
) -> None:
    """Write the whole report into `out`, replacing an earlier report.

    Pages are built in a temporary folder next to `out` and moved when complete, so `out` never
    holds half a report. CITATION.cff and the workflow come from `project`, the repository; `config`
    has the settings of the runs, and `options` repeat them in commands that the pages show.
    `claims` has ``<paper>.json``. Without `cards`, the report has no page of datasets. `recomputed`
    are published runs that this machine recomputed.
    """
    claims = claims or results / "claims"
    chapters = content.load(results, papers, claims)
    shown_cards = data_cards.load(results / "cards", [chapter.key for chapter in chapters], cards)
    views = content.load_views(results / _EXPLORER, chapters)
    address = (config.get("report") or {}).get("address")
    software = citation.read(project / "CITATION.cff", address)
    with _replacing_folder(out) as root:
        _copy_workflow(root, project, config)
        objects = {"workflow/config.yaml": "config.yaml", **_copy_papers(root, chapters)}
        linked = _linked_files(results, claims, chapters, shown_cards, views)
        for name, path in linked.items():
            _copy(path, root / name)
        for name, target in _LIBRARY.items() if views else ():
            _copy(_VENDOR / name, root / _EXPLORER / target)
        outputs = [
            *linked,
            *_write_thumbnails(root, chapters),
            *pages.write(
                PageContent(
                    root=root,
                    chapters=chapters,
                    software=software,
                    targets=_within(results, project),
                    options=options,
                    cards=shown_cards,
                    recomputed=recomputed,
                    explored=views,
                )
            ),
        ]
        crate.write(
            root,
            chapters=chapters,
            software=software,
            workflow="workflow/Snakefile",
            objects=objects,
            results=outputs,
        )


@contextmanager
def _replacing_folder(out: Path) -> Iterator[Path]:
    """Yield a temporary folder; on success it replaces `out`, on failure `out` is unchanged."""
    built = out.with_name(f".{out.name}.building")
    before = out.with_name(f".{out.name}.before")
    try:
        if out.exists() and any(out.iterdir()) and not (out / _MARK).exists():
            raise InputError(f"{out}: not a report; choose a new or empty folder")
        for leftover in (built, before):  # of a build that was killed
            files.remove_folder(leftover)
        built.mkdir(parents=True)
        yield built
        files.write_text(built / _MARK, "Every build replaces this folder; keep no files here.\n")
        # A rename cannot replace a folder with content, so it takes two renames. Between them
        # `out` does not exist.
        if out.exists():
            files.rename(out, before)
        files.rename(built, out)
    except OSError as error:
        raise InputError(
            f"{out}: cannot be written ({error.strerror or error}); "
            "choose a writable folder with free space"
        ) from error
    finally:
        for folder in (built, before):
            files.remove_folder(folder)


def _copy_workflow(root: Path, project: Path, config: Mapping[str, Any]) -> None:
    if not (project / "Snakefile").is_file():
        raise InputError(f"{project}: no Snakefile; run from the root of the repository")
    _copy(project / "CITATION.cff", root / "CITATION.cff")
    for pattern in _WORKFLOW:
        for path in sorted(project.glob(pattern)):
            if path.is_file():
                _copy(path, root / "workflow" / path.relative_to(project))
    settings = yaml.safe_dump(dict(config), sort_keys=True, allow_unicode=True)
    files.write_text(root / "workflow" / "config.yaml", settings)


def _copy_papers(root: Path, chapters: Sequence[Chapter]) -> dict[str, str]:
    """Copy each paper's own files; return the original name of each copy."""
    copies = {}
    for chapter in chapters:
        for name in _PAPER:
            if (source := chapter.paper.folder / name).exists():
                _copy(source, root / chapter.key / name)
                copies[f"{chapter.key}/{name}"] = f"papers/{chapter.key}/{name}"
    return copies


def _linked_files(
    results: Path,
    claims: Path,
    chapters: Sequence[Chapter],
    cards: Sequence[Card],
    views: Sequence[ExperimentViews],
) -> dict[str, Path]:
    """Return the result files that pages link to, by their names in the report."""
    linked = {}
    for chapter in chapters:
        for exhibit in chapter.exhibits:
            folder = f"{chapter.key}/{exhibit.artefact}"
            for name in ("artefact.json", *exhibit.files.values()):
                linked[f"{folder}/{name}"] = results / "artefacts" / folder / name
        if chapter.claims:
            linked[f"{chapter.key}/claims.json"] = claims / f"{chapter.key}.json"
    names = [f"cards/{card.dataset}.json" for card in cards]
    names += [f"{_EXPLORER}/{view.key}/{name}" for view in views for name in view.digests]
    return linked | {name: results / name for name in names}


def _copy(source: Path, target: Path) -> None:
    files.copy(source, target)


def _within(results: Path, project: Path) -> str:
    """Return the folder of artefacts relative to the project, as in Snakemake's targets."""
    absolute = results.resolve() / "artefacts"
    if absolute.is_relative_to(project.resolve()):
        return absolute.relative_to(project.resolve()).as_posix()
    return "results/artefacts"


def _write_thumbnails(root: Path, chapters: Sequence[Chapter]) -> Iterator[str]:
    """Write a WebP picture of each figure in `root`; yield their names relative to it."""
    for chapter in chapters:
        for exhibit in chapter.exhibits:
            if exhibit.kind == "figure":
                source = root / exhibit.paper / exhibit.artefact / exhibit.files["png"]
                name = f"{_THUMBNAILS}/{exhibit.paper}-{exhibit.artefact}.webp"
                with Image.open(source) as image, files.replacing(root / name) as path:
                    small = image.convert("RGB")
                    small.thumbnail((_WIDTH_PIXELS, _WIDTH_PIXELS))
                    small.save(path, format="WEBP", quality=_QUALITY, method=6)
                yield name
