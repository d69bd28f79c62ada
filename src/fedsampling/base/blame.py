"""Errors in users' code, as one line with file, line number and function."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedsampling.base.errors import InputError

MAX_MESSAGE = 300  # characters; messages of libraries can be pages long


class CodeError(InputError):
    """An error raised by a user's code."""


@contextmanager
def blaming(module: str, start: str) -> Iterator[None]:
    """Convert an error whose traceback contains a user's module into a :class:`CodeError`.

    Other errors are bugs of this package: they pass through with their traceback.

    Parameters
    ----------
    module : str
        Name of the users' module.
    start : str
        Prefix of the line, such as ``sampler mine, round 4``.
    """
    try:
        yield
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        location = "" if module.startswith("fedsampling.") else _location(error, module)
        if not location:
            raise
        raise CodeError(f"{start}: {location}: {described(error)}") from error


def described(error: BaseException) -> str:
    """Return type and message of an exception in one line."""
    if isinstance(error, SystemExit):
        return f"SystemExit({error.code!r}); raise another error, as this one ends the process"
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {type(error).__name__}: {error.msg}"
    message = " ".join(str(error).split())
    message = f"{message[:MAX_MESSAGE]}…" if len(message) > MAX_MESSAGE else message
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def import_error_lines(error: BaseException, path: Path, module: str) -> list[str]:
    """Describe the error that the import of a file raised, with the file's line number."""
    line = _location(error, module).partition(":")[2]
    start = f"{path}:{line}" if line else f"{path}"
    if isinstance(error, InputError):
        return [
            text if text.startswith(f"{path}: ") else f"{start}: {text}" for text in error.lines
        ]
    return [f"{start}: {described(error)}; fix the file"]


def _location(error: BaseException, module: str) -> str:
    """Return ``file:line, in function`` of a module's innermost frame; empty if it has none."""
    frames = [
        (frame.f_code, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__") == module
    ]
    if not frames:
        return ""
    code, line = frames[-1]
    function = "" if code.co_name == "<module>" else f", in {code.co_name}"
    return f"{Path(code.co_filename).name}:{line}{function}"
