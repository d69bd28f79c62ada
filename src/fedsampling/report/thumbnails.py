"""Small pictures of all figures, for the gallery on the first page."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from PIL import Image

from fedsampling.base.files import replacing
from fedsampling.report.content import Chapter

FOLDER = "thumbnails"
WIDTH_PIXELS = 320
QUALITY = 40  # of WebP; keeps fifty figures below 400 kB


def write(root: Path, chapters: Sequence[Chapter]) -> Iterator[str]:
    """Write a WebP picture of each figure; yield their names relative to `root`.

    `root`: holds the figures already, as ``<paper>/<artefact>/<artefact>.png``.
    """
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    for chapter in chapters:
        for exhibit in chapter.exhibits:
            if exhibit.kind == "figure":
                source = root / exhibit.paper / exhibit.artefact / exhibit.files["png"]
                name = f"{FOLDER}/{exhibit.paper}-{exhibit.artefact}.webp"
                _shrink(source, root / name)
                yield name


def _shrink(source: Path, target: Path) -> None:
    with Image.open(source) as image:
        small = image.convert("RGB")
        small.thumbnail((WIDTH_PIXELS, WIDTH_PIXELS))
        with replacing(target) as path:
            small.save(path, format="WEBP", quality=QUALITY, method=6)
