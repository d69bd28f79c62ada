"""Resumable download of one URL, with retries.

:mod:`fetch` chooses the URLs and checks the content.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fedsampling import __version__
from fedsampling.base.files import writing

if TYPE_CHECKING:
    import requests

PIECE_BYTES = 1 << 16  # read at once
Tell = Callable[[int, int], None]  # bytes received, bytes in total

_ABSENT = (403, 404, 410)  # object stores return 403 for missing objects
_TEMPORARY = (408, 416, 425, 429, 500, 502, 503, 504)
_PROGRESS_BYTES = 1 << 20  # an attempt that receives more does not count as failed
_MAX_WAIT_SECONDS = 60.0  # even if a server requests more
_JITTER = random.SystemRandom()  # for waiting times only; no result depends on it


@dataclass(frozen=True)
class Patience:
    """When to give up on a server: consecutive attempts that fail, and times in seconds."""

    connect: float = 10.0
    read: float = 30.0  # between two parts of a response
    attempts: int = 4
    pause: float = 1.0  # before the second attempt; doubled before each further one


class AbsentError(Exception):
    """A server does not hold the file."""


class CorruptError(Exception):
    """The content differs from the published content; the message completes "it ..."."""


class UnreachableError(Exception):
    """A download failed; the message is the reason in a few words."""


class _TemporaryError(Exception):
    """A temporary failure; `wait` is the number of seconds that the server requests."""

    def __init__(self, reason: str, wait: str = "") -> None:
        super().__init__(reason)
        self.wait = float(wait) if wait.isdecimal() else 0.0


def download(
    url: str, part: Path, bound: int, patience: Patience, tell: Tell, resume: bool
) -> None:
    """Download a URL into a partial file of at most `bound` bytes.

    With `resume`, an earlier partial file is continued; its content must be verified afterwards, as
    the server's file may have changed. `tell` gets the bytes received and the total.
    """
    furthest, failed = 0, 0
    while True:
        if not resume:
            part.unlink(missing_ok=True)
        try:
            _attempt(url, part, bound, patience, tell)
            return
        except _TemporaryError as error:
            received = part.stat().st_size if part.exists() else 0
            failed = 1 if received >= furthest + _PROGRESS_BYTES else failed + 1
            furthest = max(furthest, received)
            if failed >= patience.attempts:
                raise UnreachableError(str(error)) from error
            pause = patience.pause * 2 ** (failed - 1) * _JITTER.uniform(0.5, 1)
            time.sleep(min(max(pause, error.wait), _MAX_WAIT_SECONDS))


def _attempt(url: str, part: Path, bound: int, patience: Patience, tell: Tell) -> None:
    import requests
    import urllib3

    offset = part.stat().st_size if part.exists() else 0
    # No transfer compression: lengths and ranges must refer to the file's own bytes.
    headers = {"Accept-Encoding": "identity", "User-Agent": f"fedsampling/{__version__}"}
    headers |= {"Range": f"bytes={offset}-"} if offset else {}
    timeout = (patience.connect, patience.read)
    try:
        with requests.get(url, stream=True, headers=headers, timeout=timeout) as response:
            if response.status_code == 416:  # the partial file is longer than the server's
                part.unlink()
            _check_status(response)
            _receive(response, part, offset * (response.status_code == 206), bound, tell)
    except (requests.Timeout, urllib3.exceptions.ReadTimeoutError) as error:
        raise _TemporaryError("no answer in time") from error
    except requests.ConnectionError as error:
        raise _TemporaryError("no connection") from error
    except requests.RequestException as error:
        raise UnreachableError(f"not a usable answer: {type(error).__name__}") from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise _TemporaryError("the connection broke off") from error


def _check_status(response: "requests.Response") -> None:
    status = response.status_code
    if status in _ABSENT:
        raise AbsentError
    if status in _TEMPORARY:
        raise _TemporaryError(f"HTTP status {status}", response.headers.get("Retry-After", ""))
    if status not in (200, 206):
        raise UnreachableError(f"HTTP status {status}")


def _receive(
    response: "requests.Response", part: Path, offset: int, bound: int, tell: Tell
) -> None:
    """Write a response's undecoded bytes as they arrive, so that slow transfers show progress."""
    length = response.headers.get("Content-Length", "")
    total = offset + int(length) if length.isdecimal() else None
    if total is not None and total > bound:
        raise CorruptError(f"is {total:,} bytes long, more than the {bound:,} expected")
    received = offset
    with writing(part):
        stream = part.open("ab" if offset else "wb", buffering=0)
    with stream:
        while piece := response.raw.read1(PIECE_BYTES, decode_content=False):
            received += len(piece)
            if received > bound:
                raise CorruptError(f"is longer than the {bound:,} bytes expected")
            rest = memoryview(piece)
            with writing(part):
                while rest:  # unbuffered writes may be partial
                    rest = rest[stream.write(rest) :]
            tell(received, total or bound)
    if total is not None and received < total:
        raise _TemporaryError(f"broke off after {received:,} of {total:,} bytes")
