"""The run explorer: copies the views of all experiments into the report and lists them.

:mod:`fedsampling.report.drawing.views` writes the views; ``explorer.html`` shows them.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedsampling.base.errors import InputError
from fedsampling.base.files import read_record, sha256
from fedsampling.report.content import Chapter, validated
from fedsampling.report.drawing.views import RECORD

FOLDER = "explorer"
_VENDOR = Path(__file__).with_name("vendor")
LIBRARY = {
    "uPlot.iife.min.js": "uPlot.js",
    "uPlot.min.css": "uPlot.css",
    "LICENSE": "uPlot.LICENSE",
}
LIBRARY_VERSION = json.loads((_VENDOR / "package.json").read_text("utf-8"))["version"]


@dataclass(frozen=True)
class View:
    """The views of an experiment."""

    paper: str
    experiment: str
    title: str
    metrics: Mapping[str, str]  # title of each metric with curves
    samplers: Mapping[str, str]  # readable name of each sampler, by key
    cases: tuple[str, ...]
    seeds: int
    badges: tuple[str, ...]  # reasons why its runs are not evidence; empty if they are
    digests: Mapping[str, str]  # SHA-256 of each script file
    figures: tuple[str, ...]  # artefacts drawn from the experiment

    @property
    def key(self) -> str:
        """Paper and experiment."""
        return f"{self.paper}/{self.experiment}"


def load(folder: Path, chapters: Sequence[Chapter]) -> tuple[View, ...]:
    """Read the views of each paper's experiments; experiments without curves are left out."""
    views = []
    for chapter in chapters:
        for experiment in chapter.paper.experiments:
            path = folder / chapter.key / experiment / RECORD
            if not path.is_file():
                continue  # an earlier version, without views, drew these results
            figures = [
                exhibit.artefact
                for exhibit in chapter.exhibits
                if experiment in chapter.paper.artefacts[exhibit.artefact].experiments
            ]
            names = {"paper": chapter.key, "experiment": experiment, "figures": figures}
            view: View = validated(View, {**read_record(path), **names}, path)
            for name, digest in view.digests.items():
                script = path.with_name(name)
                if not script.is_file() or sha256(script) != digest:
                    raise InputError(
                        f"{script}: missing or changed; run 'fedsampling draw {chapter.key}'"
                    )
            if view.metrics:
                views.append(view)
    return tuple(views)


def copy(root: Path, folder: Path, views: Sequence[View]) -> Iterator[str]:
    """Copy the views and the chart library; yield the names of the views relative to `root`."""
    if not views:
        return
    (root / FOLDER).mkdir(parents=True)
    for name, target in LIBRARY.items():
        shutil.copyfile(_VENDOR / name, root / FOLDER / target)
    for view in views:
        (root / FOLDER / view.key).mkdir(parents=True)
        for name in view.digests:
            shutil.copyfile(folder / view.key / name, root / FOLDER / view.key / name)
            yield f"{FOLDER}/{view.key}/{name}"
