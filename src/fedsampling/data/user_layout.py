"""What the axes of users' samples mean: order of rows, names of columns, modes of images.

Arrays have none of these.  So before values become arrays, they are aligned by index and name, as
pandas does, or refused; a warning says what was aligned.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.errors import InputError
from fedsampling.base.lazy import pd

# Modes of which the stored values are indices or bits, and the mode that has the colours.
SHOWN_AS = {"P": "RGB", "PA": "RGBA", "1": "L"}
MAX_LISTED = 3  # names in a message


class Layout(NamedTuple):
    """Names of the columns and mode of the images, each None if there are none, and whose."""

    columns: tuple[Any, ...] | None
    mode: str | None
    argument: str


def aligned_rows(arguments: Mapping[str, Any], notes: list[str]) -> list[Any]:
    """Return values with an index in the row order of the first one that has one; note changes."""
    reference, first = None, ""
    aligned = []
    for argument, values in arguments.items():
        index = values.index if hasattr(values, "iloc") else None
        if reference is None:
            reference, first = index, argument
        elif index is not None and len(index) == len(reference) and not index.equals(reference):
            is_permuted = index.is_unique and reference.is_unique and reference.isin(index).all()
            if not is_permuted:
                raise InputError(
                    f"{argument}: its index differs from that of {first}, such as "
                    f"{_first_other(index, reference)}; use the same index, or pass .to_numpy() of "
                    "both if their rows have the same order"
                )
            values = values.loc[reference]
            notes.append(f"{argument}: rows reordered by index, as in {first}")
        aligned.append(values)
    return aligned


def aligned(x: Any, argument: str, layout: Layout | None, notes: list[str]) -> tuple[Any, Layout]:
    """Return samples with their columns in the order of a layout, by default their own.

    Raises InputError if they have other columns, or images of another mode; notes what changes.
    """
    own = Layout(_columns_of(x), _mode_of(x, argument), argument)
    if layout is None:
        return x, own
    if own.mode != layout.mode and own.mode is not None and layout.mode is not None:
        raise InputError(
            f"{argument}: images of mode {own.mode}, but {layout.argument} has mode "
            f"{layout.mode}; convert all to one, such as image.convert({layout.mode!r})"
        )
    if own.columns is None or layout.columns is None:
        if own.columns != layout.columns:
            named, unnamed = (layout, own) if own.columns is None else (own, layout)
            notes.append(
                f"{unnamed.argument}: has no column names; taken in the order of {named.argument}"
            )
        return x, layout
    if own.columns == layout.columns:
        return x, layout
    if unknown := [name for name in own.columns if name not in layout.columns]:
        raise InputError(
            f"{argument}: columns {_listed(unknown)} are not in {layout.argument}; rename or remove"
        )
    if missing := [name for name in layout.columns if name not in own.columns]:
        raise InputError(
            f"{argument}: no columns {_listed(missing)}, which {layout.argument} has; add them"
        )
    if len({*own.columns}) < len(own.columns):
        raise InputError(f"{argument}: duplicate columns in another order; rename them")
    places = [own.columns.index(name) for name in layout.columns]
    notes.append(f"{argument}: columns reordered by name, as in {layout.argument}")
    return x.iloc[:, places] if hasattr(x, "iloc") else np.asarray(x)[:, places], layout


def warn_of(notes: Sequence[str], stacklevel: int = 3) -> None:
    """Warn of what was aligned; `stacklevel` as in :func:`warnings.warn`."""
    if notes:
        more = f"; and {len(notes) - 1} more" if len(notes) > 1 else ""
        warnings.warn(f"{notes[0]}{more}", stacklevel=stacklevel)


def is_image(value: Any) -> bool:
    """Whether a value is an image of Pillow."""
    return hasattr(value, "getbands") and hasattr(value, "convert")


def pixels(images: Sequence[Any], argument: str) -> list[NDArray[Any]]:
    """Return the pixels of images of one mode, in which palettes and bits become values."""
    mode = _mode_of(images, argument)
    return [np.asarray(image if image.mode == mode else image.convert(mode)) for image in images]


def _mode_of(images: Any, argument: str) -> str | None:
    """Return the mode in which all images of a list are shown; None for other values."""
    if not isinstance(images, list | tuple) or not any(map(is_image, images)):
        return None
    if not all(map(is_image, images)):
        row = next(row for row, image in enumerate(images) if not is_image(image))
        kind = type(images[row]).__name__
        raise InputError(f"{argument}: images, but {kind} in sample {row}; convert all to images")
    stored = {SHOWN_AS.get(image.mode, image.mode): image.mode for image in images}
    if len(stored) > 1:
        raise InputError(
            f"{argument}: images of modes {' and '.join(sorted(stored.values()))}; convert all to "
            "one, such as image.convert('RGB')"
        )
    (mode,) = map(str, stored)
    return mode


def check_rows(rows: Sequence[Any], argument: str) -> None:
    """Refuse samples in a list whose named values have other names, or another order."""
    columns = [_columns_of(row) for row in rows]
    names = [
        tuple(row.index) if names is None and hasattr(row, "iloc") else names
        for row, names in zip(rows, columns, strict=True)
        if hasattr(row, "iloc") or names is not None
    ]
    if any(name != names[0] for name in names):
        raise InputError(f"{argument}: samples with other names, or in another order; pass a table")


def _columns_of(x: Any) -> tuple[Any, ...] | None:
    """Return the names of a table's columns; None for numbers from 0, which pandas makes up."""
    columns = getattr(x, "columns", None)
    if columns is None or callable(columns):
        return None
    if isinstance(columns, pd.RangeIndex) and (columns.start, columns.step) == (0, 1):
        return None
    return tuple(columns)


def _first_other(index: Any, reference: Any) -> str:
    """Describe the first label of an index that the other lacks, or that it has twice."""
    if other := index[~index.isin(reference)].tolist():
        return f"{other[0]!r}"
    twice = index[index.duplicated()].tolist() or reference[reference.duplicated()].tolist()
    return f"{twice[0]!r} twice"


def _listed(names: Sequence[Any]) -> str:
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(map(repr, names[:MAX_LISTED])) + more
