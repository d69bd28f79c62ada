"""Formats of formulas, names, numbers, settings and tables on the pages of the report."""

import json
import re
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from fedsampling.base.progress import format_duration
from fedsampling.report.drawing.artefacts import Exhibit

# A symbol is a single letter (with its accent), a closing bracket or, for powers, a number; words
# such as `peak_mb` are not symbols.  A subscript or superscript is up to three characters, or
# anything in braces, and ends before a power such as ².
_POWERS = "⁰¹²³⁴-⁹"
_SYMBOL = r"(?:(?<!\w)[^\W\d_][\u0300-\u036f]?|[\])}|‖]|(?<![\w.])\d+(?=\^))"
_SCRIPT = rf"[_^](?:\{{(?:[^{{}}]|\{{[^{{}}]*\}})*\}}|[-−]?[^\W_{_POWERS}]{{1,3}}|\*)"
_SUBSCRIPTS = dict(zip("0123456789aeijkmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉ₐₑᵢⱼₖₘₙₒₚᵣₛₜᵤᵥₓ", strict=True))
_SUPERSCRIPTS = dict(zip("0123456789kmnorst", "⁰¹²³⁴⁵⁶⁷⁸⁹ᵏᵐⁿᵒʳˢᵗ", strict=True))
_GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "eta": "η", "sigma": "σ", "sum": "Σ"}
_NAMED = re.compile(rf"\b(?:{'|'.join(_GREEK)})(?=[_^][\w{{])")
_FORMULA = re.compile(rf"({_SYMBOL})((?:{_SCRIPT})+)(?![^\W{_POWERS}])")


def typeset(text: object) -> Markup:
    """Escape plain text; typeset subscripts and superscripts, and text in backticks as code."""
    words = re.split("`([^`]+)`", str(escape(text)))
    words[::2] = [_set(word) for word in words[::2]]
    words[1::2] = [f"<code>{word}</code>" for word in words[1::2]]
    return Markup("".join(words))


def typeset_html(html: str) -> Markup:
    """Typeset subscripts and superscripts in trusted HTML; tags are unchanged."""
    return Markup(re.sub(r"(?<=>)[^<>]+", lambda match: _set(match[0]), html))


def symbols(text: object) -> str:
    """Write subscripts and superscripts as Unicode characters, for titles without HTML."""

    def translate(script: re.Match[str]) -> str:
        letters = script[0][1:].strip("{}")
        table = _SUBSCRIPTS if script[0][0] == "_" else _SUPERSCRIPTS
        return "".join(table[x] for x in letters) if set(letters) <= set(table) else script[0]

    return _FORMULA.sub(
        lambda match: match[1] + re.sub(_SCRIPT, translate, match[2]), _greek(str(text))
    )


def _greek(text: str) -> str:
    """Replace names of Greek letters in formulas: ``beta_1`` becomes ``β_1``."""
    return _NAMED.sub(lambda match: _GREEK[match[0]], text)


def _set(escaped: str) -> str:
    escaped = _greek(escaped)
    return _FORMULA.sub(lambda match: match[1] + re.sub(_SCRIPT, _script, match[2]), escaped)


def _script(match: re.Match[str]) -> str:
    tag = "sub" if match[0][0] == "_" else "sup"
    inner = match[0][1:]
    if inner.startswith("{"):
        inner = _set(inner[1:-1])
    return f"<{tag}>{inner}</{tag}>"


def exhibit_name(exhibit: Exhibit) -> str:
    """Name an artefact: a figure or table of the paper by its number, others by their title."""
    if re.fullmatch(r"(figure|table)\d+[a-z]?", exhibit.artefact):
        return in_words(exhibit.artefact)
    return symbols(exhibit.title)


def in_words(identifier: str) -> str:
    """Turn an identifier into words: ``figure2_best`` into ``Figure 2 best``."""
    words = re.sub(r"(?<=[a-z])(?=\d)|_", " ", identifier)
    return words[:1].upper() + words[1:]


def statistic(value: float | str) -> str:
    """Format a statistic: integers in full, other numbers with four digits."""
    if isinstance(value, str):
        return value.replace(" x ", " × ")
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def setting(value: Any) -> str:
    """Format a setting: text unchanged, a list or mapping as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def recorded_duration(seconds: float | None) -> str:
    """Format a duration that may not have been recorded."""
    return "not recorded" if seconds is None else format_duration(seconds)


def experiments_by_paper(users: Iterable[str]) -> dict[str, str]:
    """List experiments with their case, or number of cases, from ``paper/experiment: case, …``."""
    by_paper: dict[str, dict[str, list[str]]] = {}
    for user in users:
        name, _, cases = user.partition(": ")
        paper, _, experiment = name.partition("/")
        by_paper.setdefault(paper, {}).setdefault(experiment, []).extend(cases.split(", "))
    return {
        paper: ", ".join(name + _cases(cases) for name, cases in experiments.items())
        for paper, experiments in by_paper.items()
    }


def _cases(names: Sequence[str]) -> str:
    if len(names) > 1:
        return f" ({len(names)} cases)"
    return "" if names[0] == "base" else f" ({names[0]})"


def as_json(content: Any) -> Markup:
    """Write JSON that cannot close its script element."""
    return Markup(json.dumps(content, ensure_ascii=False).replace("<", "\\u003c"))


def size_attributes(png: Path) -> Markup:
    """Return a picture's size as HTML attributes, so that the page does not jump as it loads."""
    # The first chunk of a PNG holds its width and height.
    width, height = struct.unpack(">II", png.read_bytes()[16:24])
    return Markup(f'width="{width}" height="{height}" style="--wide: {width}px"')


def with_labelled_cells(html: str) -> str:
    """Label each cell of a table with its column: on a narrow screen, a row becomes a card."""
    return re.sub("<table.*?</table>", _label_cells, html, flags=re.DOTALL)


def _label_cells(table: re.Match[str]) -> str:
    heads = [
        symbols(re.sub("<[^>]*>", "", head)).replace('"', "&quot;")
        for head in re.findall("<th>(.*?)</th>", table[0])
    ]

    def row(match: re.Match[str]) -> str:
        names = iter(heads)
        return re.sub("<td>", lambda _: f'<td data-label="{next(names, "")}">', match[0])

    html = re.sub("<tr>.*?</tr>", row, table[0], flags=re.DOTALL)
    for old, new in {
        "<table[^>]*>": '<table class="cards">',
        "<th></th>": "<td></td>",
        "<th>": '<th scope="col">',
        ' style="text-align: right;"': "",
    }.items():
        html = re.sub(old, new, html)
    return html
