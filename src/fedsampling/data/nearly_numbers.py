"""Columns of numbers in which some values are texts: marks of missing values, decimal commas.

One such text makes the whole column text, and one-hot features of its numbers.  The error names the
value, its row and the fix.
"""

import re
from typing import Any

import numpy as np

from fedsampling.base.errors import InputError
from fedsampling.base.lazy import pd

NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*", re.ASCII)
COMMA = re.compile(r"\s*[+-]?[0-9.]*,[0-9]+([eE][+-]?[0-9]+)?\s*", re.ASCII)
# Texts that usually mark missing values, in lower case.
MARKS = {"", "na", "n/a", "#n/a", "#na", "<na>", "nan", "nd", "null", "nil", "none", "missing"}
MARKS |= {"unknown", "?", "??", ".", "-", "--", "---", "*"}
MIN_SHARE = 0.9  # of numbers, above which any other text is an error


def check_texts(column: Any, name: Any, in_file: bool) -> None:
    """Raise InputError if most values of a column are numbers and the others texts."""
    values = pd.Series(column).reset_index(drop=True)
    texts = values[[isinstance(value, str) for value in values]]
    if len(texts) < values.notna().sum() or texts.empty:
        return  # other types, which are named elsewhere
    unique = texts.unique()
    numbers = {text for text in unique if NUMBER.fullmatch(text)}
    commas = {text for text in unique if COMMA.fullmatch(text)}
    others = {*unique} - numbers - commas
    are_marks = all(text.strip().lower() in MARKS for text in others)
    share = float(texts.isin(numbers | commas).mean())
    if not (numbers or commas) or not (others or commas) or not (are_marks or share > MIN_SHARE):
        return
    row = int(np.flatnonzero(values.isin(commas or others))[0])
    start = f"column {name!r}: {values[row]!r} in row {row}"
    if commas:
        fix = "decimal=','" if in_file else ".str.replace(',', '.').astype(float)"
        raise InputError(f"{start} has a comma; if it is a decimal comma, use {fix}; or remove it")
    fix = f"missing={values[row]!r}" if in_file else f"frame.replace({values[row]!r}, None)"
    raise InputError(
        f"{start} is not a number, but {100 * share:.0f} % of the values are; correct it or, if it "
        f"marks a missing value, use {fix}"
    )
