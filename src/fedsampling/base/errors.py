"""The exception for errors that users can fix; errors in users' code, with file and line.

All modules raise :class:`InputError` for such errors; the command line prints its lines unchanged
and exits with status 2.  Any other exception is a bug and keeps its traceback.
"""

import re
import sys
import traceback
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

WARNING = "fedsampling: warning: "  # start of a warning's line on stderr


class InputError(Exception):
    """Invalid input: one line for each error, with key, value and fix."""

    def __init__(self, *lines: str) -> None:
        # Values that the lines quote, such as paths, must not break a line or control a terminal.
        self.lines = tuple(
            re.sub(r"[\x00-\x1f\x7f]", lambda control: repr(control[0])[1:-1], line)
            for line in lines
        )
        super().__init__("\n".join(self.lines))


class CorruptError(InputError):
    """A file whose digest or decoding failed; files that cannot be read are not corrupt."""


@contextmanager
def gathering(lines: list[str]) -> Iterator[None]:
    """Add the lines of an InputError in the body to `lines`, so that users see all errors."""
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


def check_known(names: Iterable[str], known: Collection[str], line: str) -> None:
    """Raise an error with a line for each unknown name: `line` with its name, and a suggestion."""
    if unknown := [name for name in names if name not in known]:
        raise InputError(*(f"{line.format(name)}; {nearest(name, known)}" for name in unknown))


READ_ONLY = "; others use this array, too: copy it first"
MAX_MESSAGE = 300  # characters; messages of libraries can be pages long


class CodeError(InputError):
    """An error raised by a user's code."""


@contextmanager
def blaming(module: str, start: str) -> Iterator[None]:
    """Convert an error whose traceback contains a user's module into a :class:`CodeError`.

    Other errors are bugs of this package: they pass through with their traceback. `start` begins
    the line, as in ``sampler mine, round 4``.
    """
    try:
        yield
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        if module.startswith("fedsampling."):
            raise
        location = _location(error, module)
        if not (location or isinstance(error, SystemExit)):  # which a base class may raise
            raise
        fix = READ_ONLY if "read-only" in str(error) else ""
        parts = filter(None, (start, location, described(error)))
        raise CodeError(": ".join(parts) + fix) from error


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


def import_file(path: Path, name: str, defines: str) -> ModuleType:
    """Import a Python file of a user, once, as the module `name`; `defines` is for its errors."""
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"{path}: not a Python file; use one that defines {defines}")
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]  # a partly executed module must not be reused
        raise
    return module
