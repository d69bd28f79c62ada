"""Formats on the pages of the report: formulas, names, numbers, settings, printed numbers."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape
from PIL import Image

from fedsampling.base.text import format_duration
from fedsampling.evidence.claims import Claim
from fedsampling.experiments.papers import Reported
from fedsampling.report.claim_bars import interval_text
from fedsampling.report.drawing.artefacts import Exhibit

# A symbol is a single letter (with its accent), a closing bracket or, for powers, a number; words
# such as `peak_mb` are not symbols.  A subscript or superscript is up to three characters, or
# anything in braces, and ends before a power such as ².
_POWERS = "⁰¹²³⁴-⁹"
_SYMBOL = r"(?:(?<!\w)[^\W\d_][\u0300-\u036f]?|[\])}|‖]|(?<![\w.])\d+(?=\^))"
_SCRIPT = rf"[_^](?:\{{(?:[^{{}}]|\{{[^{{}}]*\}})*\}}|[-−]?[^\W_{_POWERS}]{{1,3}}|\*)"
_GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "eta": "η", "sigma": "σ", "sum": "Σ"}
_NAMED = re.compile(rf"\b(?:{'|'.join(_GREEK)})(?=[_^][\w{{])")
# Commands that read a configuration; a command ends where a list goes on.
_COMMAND = re.compile(r"\b(?:snakemake --cores all|fedsampling (?:decide|draw|render)) [^;]+")
# Figures and tables by the paper's own number; all others are folded away.
NUMBERED = re.compile(r"(figure|table)\d+[a-z]?")
MOST_ROWS = 12  # of a table that is not folded
MOST_HEIGHT = 456  # of a figure on a page, in pixels, as in style.css
_SHOWN = 0.6  # pixels on the page for each pixel of a PNG file
# Pixels: of a page without its margins, of a caption at a figure's side, of its title with badges.
_PAGE_WIDTH, _TEXT_WIDTH, _LEAST_TEXT_WIDTH, _TITLE_HEIGHT = 1273, 340, 230, 150
_LETTER_AREA = 210  # square pixels
_SMALL_COLUMNS = 4
_FORMULA = re.compile(rf"({_SYMBOL})((?:{_SCRIPT})+)(?![^\W{_POWERS}])")


def with_options(text: str, options: str) -> str:
    """Add options to each command in a text."""
    return _COMMAND.sub(lambda match: f"{match[0]} {options}", text) if options else text


def typeset(text: object) -> Markup:
    """Escape plain text; typeset subscripts and superscripts, and text in backticks as code."""
    words = re.split("`([^`]+)`", str(escape(text)))
    words[::2] = [_set(word) for word in words[::2]]
    words[1::2] = [f"<code>{word}</code>" for word in words[1::2]]
    return Markup("".join(words))


def typeset_html(html: str) -> Markup:
    """Typeset subscripts and superscripts in trusted HTML; tags are unchanged."""
    return Markup(re.sub(r"(?<=>)[^<>]+", lambda match: _set(match[0]), html))


def _set(escaped: str) -> str:
    escaped = _NAMED.sub(lambda match: _GREEK[match[0]], escaped)
    escaped = re.sub(r"(?<=\d) (?=%)|(?<=\b\w) (?== )|(?<= \w =) (?=\d)", "\u00a0", escaped)
    return _FORMULA.sub(lambda match: match[1] + re.sub(_SCRIPT, _script, match[2]), escaped)


def _script(match: re.Match[str]) -> str:
    tag = "sub" if match[0][0] == "_" else "sup"
    inner = match[0][1:]
    if inner.startswith("{"):
        inner = _set(inner[1:-1])
    return f"<{tag}>{inner}</{tag}>"


def exhibit_name(exhibit: Exhibit) -> str:
    """Name an artefact: a figure or table of the paper by its number, others by their title."""
    if NUMBERED.fullmatch(exhibit.artefact):
        return in_words(exhibit.artefact)
    return exhibit.title


def in_words(identifier: str) -> str:
    """Turn an identifier into words: ``figure2_best`` into ``Figure 2 best``."""
    words = re.sub(r"(?<=[a-z])(?=\d)|_", " ", identifier)
    return words[:1].upper() + words[1:]


def statistic(value: float | str) -> str:
    """Format a statistic: integers in full, other numbers with four digits."""
    if isinstance(value, str):
        return value.replace(" x ", " × ")
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def setting(value: Any) -> str:
    """Format a setting: text unchanged, a list or mapping as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def settings_of(resolved: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Write the settings of an experiment: those of all runs, then of cases and samplers."""
    common = resolved.get("settings", {})
    rows = [(in_words(name), _nested(value)) for name, value in common.items()]
    for kind in ("cases", "samplers"):
        named = resolved.get(kind, {})
        if kind == "cases" and not any(named.values()):
            continue
        rows += [
            (f"{kind[:-1].capitalize()} {name}", _nested(value) or "as above")
            for name, value in named.items()
        ]
    return rows


def _nested(value: Any) -> str:
    """Write a setting and the settings within it: ``mnist (clients 100, degrees 45)``."""
    if isinstance(value, Mapping):
        inner = dict(value)
        name = str(inner.pop("name", ""))
        parts = [f"{key.replace('_', ' ')} {_nested(each)}" for key, each in inner.items()]
        if not name:
            return ", ".join(parts)
        return f"{name} ({', '.join(parts)})" if parts else name
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_nested, value))}]"
    return f"{value:,}" if isinstance(value, int) else str(value)


def recorded_duration(seconds: float | None) -> str:
    """Format a duration that may not have been recorded."""
    return "not recorded" if seconds is None else format_duration(seconds)


def device_name(device: str | None) -> str:
    """Return the model of a processor, from ``cpu: AMD EPYC, 1 thread``."""
    return re.sub(r"^cpu: |, (\d+|all) threads?$", "", device) if device else "not recorded"


def cores(device: str | None) -> int | None:
    """Return how many cores a run used; None if this is not recorded."""
    threads = re.fullmatch(r"cpu: .*, (\d+) threads?", device or "")
    return int(threads[1]) if threads else None


def as_json(content: Any) -> Markup:
    """Write JSON that cannot close its script element."""
    return Markup(json.dumps(content, ensure_ascii=False).replace("<", "\\u003c"))


def size_attributes(png: Path) -> Markup:
    """Return a picture's size as HTML attributes, so that the page does not jump as it loads."""
    with Image.open(png) as image:
        width, height = image.size
    return Markup(f'width="{width}" height="{height}" style="--wide: {width}px"')


def fits_beside_text(png: Path, caption: str, is_folded: bool) -> bool:
    """Whether a figure leaves room for its caption at its side, in a window of 1,400 pixels.

    Figures that are not folded are at most :data:`MOST_HEIGHT` high.
    """
    with Image.open(png) as image:
        width, height = (pixels * _SHOWN for pixels in image.size)
    scale = 1 if is_folded else min(1, MOST_HEIGHT / height)
    room = _PAGE_WIDTH - scale * width
    if room >= _TEXT_WIDTH:
        return True
    text = _TITLE_HEIGHT + _LETTER_AREA * len(caption) / max(room, 1)
    return room >= _LEAST_TEXT_WIDTH and text <= scale * height


def count_rows(html: str) -> int:
    """Count the rows of a table, without its head and its foot of badges."""
    return html.partition("<tbody>")[2].partition("</tbody>")[0].count("<tr")


def is_small_table(html: str) -> bool:
    """Whether a table has so few rows and columns that it can share a line with others."""
    columns = html.partition("<tbody>")[0].count("<th")
    return columns <= _SMALL_COLUMNS and count_rows(html) <= MOST_ROWS


_DECIMAL = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class PrintedNumber:
    """A number that the paper prints, a row of ``reported.csv``, next to ours.

    `claim` compares the number with `ours` and its interval; empty without one.
    """

    row: Reported
    claim: str
    ours: str


def printed_numbers(
    artefact: str, reports: Iterable[Reported], claims: Iterable[Claim]
) -> tuple[PrintedNumber, ...]:
    """Return the numbers that a paper prints for an artefact; compared numbers come first."""
    by_id = {claim.id: claim for claim in claims}
    numbers = [
        PrintedNumber(
            row,
            row.claim if row.claim in by_id else "",
            _ours(by_id.get(row.claim), row.value),
        )
        for row in reports
        if row.artefact == artefact
    ]
    return tuple(sorted(numbers, key=lambda number: (not number.ours, not number.claim)))


def _ours(claim: Claim | None, value: str) -> str:
    """Return our estimate of a number that a claim compares."""
    if claim is None or not _DECIMAL.fullmatch(value):
        return ""
    number = float(value)
    return "; ".join(
        interval_text(interval)
        for interval in claim.basis.drawn
        if interval.paper is not None and isclose(interval.paper, number, rel_tol=1e-9)
    )
