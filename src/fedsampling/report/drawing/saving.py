"""Saving artefacts: all files of figures and tables are written here."""

import numbers
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from fedsampling.base.errors import InputError
from fedsampling.base.files import replacing, sha256, write_record, write_text
from fedsampling.base.text import listed
from fedsampling.evidence.provenance import Summaries, badges, changed, number_of_seeds, provenance
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Exhibit
from fedsampling.report.drawing.look import Look, apply
from fedsampling.report.drawing.style import RANGE, VERMILION, Thousands
from fedsampling.report.drawing.table_markup import displayed, markup

# Without dates and with fixed ids, equal figures have equal bytes.
DATELESS: dict[str, Any] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}


def save(
    artefact: Artefact,
    paper: Paper,
    name: str,
    folder: Path,
    summaries: Summaries,
    facts: Mapping[str, str],
    pdf: bool = False,
) -> list[Path]:
    """Write an artefact's files, then ``artefact.json``, which describes them; return all paths.

    `facts` are ``scale`` and ``data`` of the configuration. A PDF is not listed, as no page links
    to it.
    """
    spec = paper.artefacts[name]
    labels = badges(summaries, facts)
    files = {"csv": f"{name}.csv"}
    write_text(folder / files["csv"], artefact.data.to_csv(index=False, lineterminator="\n"))
    if artefact.figure is not None:
        _print_badges(artefact.figure, labels)
        _lay_out(artefact.figure)
        for kind in ("svg", "png"):
            files[kind] = f"{name}.{kind}"
            _save_figure(artefact.figure, folder / files[kind], kind)
        if pdf:
            _save_figure(artefact.figure, folder / f"{name}.pdf", "pdf")
    else:
        files |= {"html": f"{name}.html", "tex": f"{name}.tex"}
        table = artefact.data if artefact.table is None else artefact.table
        html, tex = markup(displayed(table, artefact.formats), labels)
        write_text(folder / files["html"], html)
        write_text(folder / files["tex"], tex)
    caption = artefact.caption or filled_caption(spec.caption, summaries, artefact.data)
    caption = f"{caption} {artefact.caption_end}".strip()
    exhibit = Exhibit(
        paper=paper.key,
        artefact=name,
        kind=spec.kind,
        title=spec.title,
        caption=_naming_bands(caption, artefact.figure),
        alt=artefact.alt,
        notes=(*artefact.notes, *_at_paper_scale(summaries), *_changed_settings(summaries)),
        badges=tuple(labels),
        files=files,
        digests={kind: sha256(folder / name) for kind, name in files.items()},
        command=f"fedsampling render {paper.key} {name}",
        provenance=provenance(summaries, facts),
    )
    write_record(folder / "artefact.json", asdict(exhibit))
    return [folder / name for name in (*files.values(), "artefact.json")]


def save_for_a_paper(
    artefact: Artefact, path: Path, look: Look, summaries: Summaries, facts: Mapping[str, str]
) -> Path:
    """Write a figure with another look to one file, in the format of its suffix; return it.

    Raises InputError if the artefact is a table, or the format is unknown.
    """
    kind = path.suffix.removeprefix(".")
    if kind not in DATELESS:
        raise InputError(f"{path}: must end with .{', .'.join(DATELESS)}")
    if artefact.figure is None:
        raise InputError("size, labels and font: this is a table; use its .tex file")
    _print_badges(artefact.figure, badges(summaries, facts))
    apply(look, artefact.figure)
    _lay_out(artefact.figure)
    _save_figure(artefact.figure, path, kind)
    return path


def _at_paper_scale(summaries: Summaries) -> Iterator[str]:
    """Name the experiments at a larger scale than the badge, which names the smallest scale."""
    scales = {name: summary.provenance["scale"] for name, summary in summaries.items()}
    if {*scales.values()} == {"reduced", "paper"}:
        names = [name for name, scale in scales.items() if scale == "paper"]
        yield f"At paper scale, unlike the rest: {', '.join(names)}."


def _changed_settings(summaries: Summaries) -> Iterator[str]:
    if keys := changed(summaries):
        yield f"Changed settings, with the paper's value in brackets: {'; '.join(keys)}."


def _naming_bands(caption: str, figure: Figure | None) -> str:
    """Name the bands as the legend does if all are from the smallest to the largest seed."""
    collections = [part for axes in figure.axes for part in axes.collections] if figure else []
    bands = [band for band in collections if isinstance(band, PolyCollection)]
    if bands and all(band.get_gid() == RANGE for band in bands):
        return re.sub(r"95 % band(s?)", r"band\1 from the smallest to the largest seed", caption)
    return caption


def filled_caption(text: str, summaries: Summaries, data: pd.DataFrame) -> str:
    """Fill the settings of the drawn runs into a caption.

    ``{seeds}`` is the number of seeds, ``{rounds}`` or ``{work.steps}`` a setting, ``{md: m}`` a
    setting of one sampler, ``{*: m}`` of any sampler, ``{small/rounds}`` of one experiment.  Values
    come from the cases and samplers that the CSV names, in the order of experiments and cases.  If
    the CSV has a column for the setting (:data:`SETTING_COLUMNS`), only its values are used.
    """

    def values(match: re.Match[str]) -> str:
        experiment = match["experiment"]
        chosen = [summaries[experiment]] if experiment else list(summaries.values())
        if match["path"] == "seeds":
            return number_of_seeds(chosen)
        settings = [text for summary in chosen for text in _settings(summary, match, data)]
        if not settings:
            raise InputError(f"caption: no drawn run has a setting '{match[0]}'")
        if (column := SETTING_COLUMNS.get(match["path"])) in data:
            drawn = {_number(value) for value in data[column].dropna().unique()}
            settings = [text for text in settings if text in drawn] or settings
        return listed(list(dict.fromkeys(settings)))

    return PLACEHOLDER.sub(values, text)


# A placeholder in a caption. B_{ij} does not match: it is a formula.
PLACEHOLDER = re.compile(
    r"\{(?:(?P<experiment>\w+)/)?(?:(?P<scheme>[\w-]+|\*): )?"
    r"(?P<path>seeds|m|rounds|clients|draws|[a-z_]+(?:\.[a-z_]+)+)\}"
)


# Columns of an artefact's CSV that hold a setting.
SETTING_COLUMNS = {
    "m": "m",
    "dataset.clients": "clients",
    "dataset.partition.alpha": "alpha",
    "work.step": "step",
    "work.prox": "mu",
}


def _settings(summary: Summary, match: re.Match[str], data: pd.DataFrame) -> Iterator[str]:
    """Format the values of a setting in the drawn cases of an experiment."""
    samplers: list[str | None] = [match["scheme"]]
    if match["scheme"] == "*":
        samplers = [*_in_data(summary.settings["samplers"], data, "sampler")]
    for case, sampler in product(_in_data(summary.settings["cases"], data, "case"), samplers):
        try:
            value = summary.setting(match["path"], case, sampler)
        except (KeyError, TypeError):
            continue
        parts = value if isinstance(value, list) else [value]
        if value is None:
            continue
        yield " to ".join(dict.fromkeys(map(_number, parts)))


def _in_data(names: Iterable[str], data: pd.DataFrame, column: str) -> list[str]:
    """Keep the names that occur in a column of the CSV; keep all if none occurs."""
    all_names = list(names)
    return [name for name in all_names if name in set(data.get(column, ()))] or all_names


def _number(value: Any) -> str:
    """Format a setting: integers with thousands separators."""
    is_integer = isinstance(value, numbers.Integral)
    return f"{value:,}" if is_integer else f"{value:g}"


def _print_badges(figure: Figure, labels: Sequence[str]) -> None:
    """Print on a figure why it is not evidence, because files are shared without their page."""
    if labels:
        figure.suptitle(" · ".join(labels), x=0.995, ha="right", fontsize=8, color=VERMILION)


def slug(text: str) -> str:
    """Convert a text to a name for classes, ids and anchors."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _lay_out(figure: Figure) -> None:
    """Write the final tick labels, then compute the layout once for all formats."""
    _separate_thousands(figure)
    if engine := figure.get_layout_engine():
        engine.execute(figure)
    # set_layout_engine("none") would leave a placeholder, and every format would be drawn twice.
    with mpl.rc_context({"figure.constrained_layout.use": False, "figure.autolayout": False}):
        figure.set_layout_engine(None)
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        if not axis.label.get_text():
            # It is not drawn, but each format would compute where, from all labels of ticks.
            axis.set_label_coords(0, 0)


def _separate_thousands(figure: Figure) -> None:
    """Write thousands separators in the labels that a linear axis writes by itself."""
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        if isinstance(formatter := axis.get_major_formatter(), ScalarFormatter):
            axis.set_major_formatter(Thousands(formatter))


def _save_figure(figure: Figure, path: Path, kind: str) -> None:
    with mpl.rc_context({"svg.hashsalt": "fedsampling"}), replacing(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=160, metadata=DATELESS[kind])
