"""Tables of artefacts as text, HTML and LaTeX."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from markupsafe import escape

from fedsampling.base.text import grouped, show

_NAMES_AS_NUMBERS = ("seed", "seeds", "year")  # columns whose numbers count nothing
_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "–": "--",
    "∞": r"$\infty$",
    "·": r"$\cdot$",
}


def displayed(data: pd.DataFrame, formats: Mapping[str, int]) -> pd.DataFrame:
    """Format a table: numbers as text, with the significant digits of `formats` (default 4)."""
    texts = {}
    for column in data.columns:
        values = data[column]
        if pd.api.types.is_float_dtype(values):
            digits = formats.get(str(column), 4)
            texts[column] = [show(float(value), digits) for value in values]
        else:
            write = str if column in _NAMES_AS_NUMBERS else _in_full
            texts[column] = ["–" if value is None else write(value) for value in values]
    return pd.DataFrame(texts)


def _in_full(value: Any) -> str:
    """Write a value; whole numbers get thousands separators."""
    text = str(value)
    return grouped(text) if re.fullmatch(r"\d+", text) else text


def markup(table: pd.DataFrame, badges: Sequence[str]) -> tuple[str, str]:
    """Return a table as HTML and LaTeX; its last row lists why it is not evidence."""
    table = table.rename(columns=_in_words)
    html: str = table.to_html(index=False, border=0, escape=True)
    tex: str = table.map(latex_text).rename(columns=latex_text).to_latex(index=False, escape=False)
    if badges:
        warning, columns = " · ".join(badges), len(table.columns)
        foot = f'  <tfoot><tr><td colspan="{columns}">{escape(warning)}</td></tr></tfoot>\n</table>'
        html = html.replace("</table>", foot)
        cell = rf"\multicolumn{{{columns}}}{{l}}{{{latex_text(warning)}}} \\"
        foot = f"\\midrule\n{cell}\n\\bottomrule"
        tex = tex.replace(r"\bottomrule", foot)
    return html, tex


def latex_text(text: str) -> str:
    """Escape the characters that LaTeX reads as commands."""
    return "".join(_LATEX.get(character, character) for character in text)


def _in_words(column: str) -> str:
    """Write a column's name with spaces; symbols such as p_i stay as they are."""
    words = column.replace("speed_up", "speed-up").replace("_", " ")
    return words if re.fullmatch(r"[a-z-]{2,}(_[a-z-]{2,})+", column) else column
