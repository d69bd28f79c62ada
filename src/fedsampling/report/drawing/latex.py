"""Comparisons as LaTeX tables: ``fs.to_latex``."""

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from fedsampling.base.errors import InputError
from fedsampling.base.text import show, show_alike
from fedsampling.evidence.ranking import SIGNIFICANCE
from fedsampling.report.drawing.plot import TOGETHER
from fedsampling.report.drawing.table_markup import latex_text

if TYPE_CHECKING:
    import pandas as pd

DIGITS = 3
# In a caption: formulas, references, commands, and characters that must be escaped elsewhere.
CAPTION = re.compile(r"\$[^$]*\$|\\(?:\w*ref|cite\w*|label|url)\*?\{[^}]*\}|\\.|[%#&_]", re.DOTALL)


def to_latex(
    table: "pd.DataFrame",
    caption: str = "",
    label: str = "",
    *,
    digits: int = DIGITS,
) -> str:
    r"""Write a table as LaTeX with booktabs rules; the best value of a comparison is bold.

    Parameters
    ----------
    table : DataFrame
        Any table.  In a result of :func:`fedsampling.compare`, intervals follow their values.
    caption, label : str
        Caption and label of the float; left out if empty.  In the caption, ``%``, ``#``, ``&`` and,
        outside of formulas, ``_`` are escaped where they are not; other LaTeX stays.
    digits : int
        Significant digits.

    Returns
    -------
    str
        Needs ``\usepackage{booktabs}``.

    Raises
    ------
    InputError
        If the table is empty or has duplicate columns, or an option is invalid.

    Examples
    --------
    >>> import pandas as pd
    >>> import fedsampling as fs
    >>> table = pd.DataFrame({"sampler": ["md", "uniform"], "accuracy": [0.81, 0.795]})
    >>> print(fs.to_latex(table))
    \begin{tabular}{lr}
    \toprule
    sampler & accuracy \\
    \midrule
    md & 0.810 \\
    uniform & 0.795 \\
    \bottomrule
    \end{tabular}
    <BLANKLINE>
    """
    import pandas as pd

    if not isinstance(table, pd.DataFrame):
        raise InputError(f"table: {type(table).__name__} is invalid; must be a DataFrame")
    if not table.size:
        raise InputError(f"table: no cells in {len(table)} rows; must have rows and columns")
    names = table.columns.map(str)
    if not names.is_unique:
        raise InputError(f"table: duplicate column {names[names.duplicated()][0]!r}; rename one")
    if not isinstance(digits, int) or isinstance(digits, bool) or digits < 1:
        raise InputError(f"digits: {digits!r} is invalid; must be an integer above 0")
    for name, words in (("caption", caption), ("label", label)):
        if not isinstance(words, str):
            raise InputError(f"{name}: {words!r:.60} is invalid; must be text")
    compared = {"metric", "larger"} <= table.attrs.keys() and "rank_low" in table
    if compared:  # rounding errors of equal means are not differences
        is_equal = np.isclose(table["difference"], 0, atol=1e-12 * table["value"].abs().max())
        table = table.assign(difference=table["difference"].mask(is_equal, 0.0))
    text = {str(column): _texts(table[[column]], digits)[0] for column in table}
    if compared:
        for columns in TOGETHER:
            text |= dict(zip(columns, _texts(table[[*columns]], digits), strict=True))
        best = table["value"].max() if table.attrs["larger"] else table["value"].min()
        text["value"] = [
            rf"\textbf{{{cell}}}" if value == best else cell
            for cell, value in zip(text["value"], table["value"], strict=True)
        ]
    cells = pd.DataFrame(_comparison(table, text) if compared else text)
    numbers = {str(column) for column in table.select_dtypes("number")}
    alignment = ["r" if column in numbers else "l" for column in cells.columns]
    cells.columns = [latex_text(str(column)) for column in cells.columns]
    cells = cells.rename(columns={cells.columns[0]: _no_option(cells.columns[0])})
    cells.isetitem(0, [_no_option(cell) for cell in cells.iloc[:, 0]])
    latex: str = cells.style.hide(axis="index").to_latex(
        hrules=True,
        column_format="".join(alignment),
        position_float="centering" if caption or label else None,
        caption=CAPTION.sub(_escaped, caption) or None,
        label=label or None,
    )
    return latex


def _no_option(cell: str) -> str:
    """Protect the first cell of a row, in which LaTeX reads [ and * as options of the last line."""
    return f"{{}}{cell}" if cell.startswith(("[", "*")) else cell


def _escaped(part: "re.Match[str]") -> str:
    """Escape a character of a caption that LaTeX reads as a command; keep formulas and commands."""
    if len(part[0]) == 1:
        return rf"\{part[0]}"
    return re.sub(r"(?<!\\)%", r"\%", part[0])


def _comparison(table: "pd.DataFrame", text: dict[str, list[str]]) -> dict[str, list[str]]:
    """Join values with their intervals, and mark significant differences and divergence."""
    metric, reference = table.attrs["metric"].replace("_", " "), table.attrs["reference"]
    values = [
        "--" if value == "--" else f"{value} [{low}, {high}]"
        for value, low, high in zip(text["value"], text["low"], text["high"], strict=True)
    ]
    ranks = [
        f"{rank} [{low}--{high}]"
        for rank, low, high in zip(text["rank"], text["rank_low"], text["rank_high"], strict=True)
    ]
    columns = ("difference", "difference_low", "difference_high", "significance")
    gaps = [_gap(*cells) for cells in zip(*(text[column] for column in columns), strict=True)]
    diverged = [f"{lost} of {n}" for lost, n in zip(text["diverged"], text["seeds"], strict=True)]
    return {
        "sampler": text["sampler"],
        f"{metric} (95 % interval)": values,
        **({"diverged runs": diverged} if table["diverged"].any() else {}),
        "rank": ranks,
        f"difference from {reference} (* significant, Holm)": gaps,
        **{
            column.replace("at_edge", "edge of the grid"): text[column]
            for column in table.attrs.get("tuned", ())
            if any(text[column])
        },
    }


def _gap(difference: str, low: str, high: str, significance: str) -> str:
    """Write a difference with its interval, or the reason why there is none."""
    if significance not in SIGNIFICANCE.values():
        return significance
    if difference == "--":  # of the reference from itself
        return difference
    return f"{difference} [{low}, {high}]{'$^*$' * (significance != 'no')}"


def _texts(columns: "pd.DataFrame", digits: int) -> list[list[str]]:
    """Write the cells of columns, numbers with the same decimals."""
    if not all(kind.kind == "f" for kind in columns.dtypes):
        return [[_text(value, digits) for value in columns[name]] for name in columns]
    texts = map(latex_text, show_alike(columns.to_numpy(np.float64).ravel().tolist(), digits))
    rows = zip(*[texts] * columns.shape[1], strict=True)
    return [list(column) for column in zip(*rows, strict=True)]


def _text(value: Any, digits: int) -> str:
    is_float = isinstance(value, float | np.floating)
    return latex_text(show(float(value), digits) if is_float else str(value))
