"""The exception for errors that users can fix.

All modules raise :class:`InputError` for such errors; the command line prints its lines unchanged
and exits with status 2.  Any other exception is a bug and keeps its traceback.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

WARNING = "fedsampling: warning: "  # start of a warning's line on stderr


class InputError(Exception):
    """Invalid input: one line for each error, with key, value and fix.

    `*lines`: for example ``config.scale: 'fast' is unknown; known: paper, quick``.
    """

    def __init__(self, *lines: str) -> None:
        # Values that the lines quote, such as paths, must not break a line or control a terminal.
        self.lines = tuple(
            re.sub(r"[\x00-\x1f\x7f]", lambda control: repr(control[0])[1:-1], line)
            for line in lines
        )
        super().__init__("\n".join(self.lines))


class DamagedError(InputError):
    """A file whose digest or decoding failed; files that cannot be read are not damaged."""


@contextmanager
def gathering(lines: list[str]) -> Iterator[None]:
    """Catch an InputError in the body and add its lines to `lines`, without duplicates.

    The caller raises the collected lines, so that the user sees all errors at once.
    """
    try:
        yield
    except InputError as error:
        lines += [line for line in dict.fromkeys(error.lines) if line not in lines]


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Begin each line of an InputError in the body with a file or an argument."""
    try:
        yield
    except InputError as error:
        raise InputError(*(f"{source}: {line}" for line in error.lines)) from None


def nearest(word: str, known: Iterable[str]) -> str:
    """Suggest the closest known word, ``did you mean 'rounds'?``, or list all known words."""
    options = sorted(known)
    close = get_close_matches(word, options, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known: {', '.join(options)}"
