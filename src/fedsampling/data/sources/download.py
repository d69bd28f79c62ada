"""Resumable download of one URL, with retries.

:mod:`fetch` chooses the URLs and checks the content.  Next to the partial file, a note
records its URL and the server's validator (strong ETag, or date).  A download resumes only if the
note has both and the server confirms that the file is unchanged (If-Range); otherwise it restarts.
"""

import json
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from fedsampling import __version__
from fedsampling.base.files import writing

if TYPE_CHECKING:
    import requests

PIECE_BYTES = 1 << 16  # read at once
Tell = Callable[[int, int], None]  # bytes received, bytes in total

_ABSENT = (403, 404, 410)  # object stores return 403 for missing objects
_TEMPORARY = (408, 425, 429, 500, 502, 503, 504)
_PROGRESS_BYTES = 1 << 20  # an attempt that receives more does not count as failed
_MIN_BYTES_PER_WINDOW = 1 << 16  # a server that sends less is as good as silent
_JITTER = random.SystemRandom()  # for waiting times only; no result depends on it


@dataclass(frozen=True)
class Patience:
    """When to give up on a server: times in seconds.

    `read` is between two parts of a response, `window` for its header, and in which its body must
    grow by 64 KiB. `attempts` counts consecutive ones that receive less than a mebibyte. `pause` is
    before the second attempt, and doubles; no pause exceeds `longest`.
    """

    connect: float = 10.0
    read: float = 30.0
    window: float = 60.0
    attempts: int = 4
    pause: float = 1.0
    longest: float = 60.0


class AbsentError(Exception):
    """A server does not hold the file."""


class CorruptError(Exception):
    """The content differs from the published content; the message completes "it ..."."""


class UnreachableError(Exception):
    """A download failed; the message is the reason in a few words."""


def download(url: str, part: Path, bound: int, patience: Patience, tell: Tell) -> None:
    """Download a URL into a partial file of at most `bound` bytes; resume if that is safe."""
    with writing(part):
        stream = part.open("a+b", buffering=0)
    furthest, failed = 0, 0
    with stream:
        while True:
            try:
                _attempt(url, stream, Path(f"{part}.json"), bound, patience, tell)
                return
            except _TemporaryError as error:
                received = stream.seek(0, 2)
                failed = 1 if received >= furthest + _PROGRESS_BYTES else failed + 1
                furthest = max(furthest, received)
                pause = min(patience.longest, patience.pause * 2 ** (failed - 1))
                wait = pause * _JITTER.uniform(0.5, 1) if error.wait is None else error.wait
                if wait > patience.longest:
                    raise UnreachableError(f"{error}, come back in {wait:,.0f} s") from error
                if failed >= patience.attempts:
                    raise UnreachableError(str(error)) from error
                time.sleep(wait)


class _TemporaryError(Exception):
    """A temporary failure; `wait` is the number of seconds that the server requests."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


def _attempt(
    url: str, stream: IO[bytes], note: Path, bound: int, patience: Patience, tell: Tell
) -> None:
    import requests

    validator = _read_note(note, url)
    offset = stream.seek(0, 2) if validator else 0
    # No transfer compression: lengths and ranges must refer to the file's own bytes.
    headers = {"Accept-Encoding": "identity", "User-Agent": f"fedsampling/{__version__}"}
    if validator and offset:
        headers |= {"Range": f"bytes={offset}-", "If-Range": validator}
    try:
        with _response(url, headers, patience) as response:
            if response.status_code in _ABSENT:
                raise AbsentError
            if offset and response.headers.get("Content-Range") == f"bytes */{offset}":
                return  # status 416: the partial file is already complete
            _check_status(response, stream)
            if response.status_code == 206:
                _check_range(response, stream, offset, validator)
            else:
                offset = 0
            total = _total(response, offset)
            if total is not None and total > bound:
                raise CorruptError(f"is {total:,} bytes long, more than the {bound:,} expected")
            stream.truncate(offset)
            if offset == 0:
                _write_note(note, url, response.headers)
            _receive(response, stream, offset, total, bound, patience, tell)
    except requests.TooManyRedirects as error:
        raise UnreachableError("redirects without end") from error
    except requests.Timeout as error:
        raise _TemporaryError("no answer in time") from error
    except requests.ConnectionError as error:
        raise _TemporaryError("no connection") from error
    except requests.RequestException as error:
        raise UnreachableError(f"not a usable answer: {type(error).__name__}") from error


def _response(url: str, headers: dict[str, str], patience: Patience) -> "requests.Response":
    """Return a response once its header is complete.

    The timeout of requests limits each read, so a header that arrives byte by byte would take
    for ever.  A thread waits for the header, and is left behind if it is late.
    """
    import requests

    outcome: queue.SimpleQueue[requests.Response | Exception] = queue.SimpleQueue()
    timeout = (patience.connect, patience.read)

    def ask() -> None:
        try:
            outcome.put(requests.get(url, stream=True, headers=headers, timeout=timeout))
        except Exception as error:  # raised again below
            outcome.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = outcome.get(timeout=patience.window)
    except queue.Empty:
        raise _TemporaryError("no answer in time") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _check_status(response: "requests.Response", stream: IO[bytes]) -> None:
    status = response.status_code
    if status == 416:  # the partial file does not match the server's file
        stream.truncate(0)
        raise _TemporaryError("HTTP status 416", wait=0)
    if status in _TEMPORARY:
        raise _TemporaryError(f"HTTP status {status}", _retry_after(response.headers))
    if status not in (200, 206):
        raise UnreachableError(f"HTTP status {status}")


def _check_range(
    response: "requests.Response", stream: IO[bytes], offset: int, validator: str | None
) -> None:
    """Reject a response that does not continue this file, and restart."""
    start = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    etag = response.headers.get("ETag", validator)
    changed = validator and validator.startswith('"') and etag != validator
    if not offset or start != str(offset) or changed:
        stream.truncate(0)
        raise _TemporaryError("another range than requested", wait=0)


def _total(response: "requests.Response", offset: int) -> int | None:
    length = response.headers.get("Content-Length", "")
    return offset + int(length) if length.isdecimal() else None


def _receive(
    response: "requests.Response",
    stream: IO[bytes],
    offset: int,
    total: int | None,
    bound: int,
    patience: Patience,
    tell: Tell,
) -> None:
    received = stream.seek(offset)
    window_began, received_before = time.monotonic(), received
    for piece in _pieces(response):
        received += len(piece)
        if received > bound:
            raise CorruptError(f"is longer than the {bound:,} bytes expected")
        with writing(Path(stream.name)):
            _write(stream, piece)
        tell(received, total or bound)
        if (now := time.monotonic()) - window_began > patience.window:
            if received - received_before < _MIN_BYTES_PER_WINDOW:
                raise _TemporaryError("too slow")
            window_began, received_before = now, received
    if total is not None and received < total:
        raise _TemporaryError(f"broke off after {received:,} of {total:,} bytes")


def _write(stream: IO[bytes], piece: bytes) -> None:
    """Write the whole piece; unbuffered writes may be partial."""
    view = memoryview(piece)
    while view:
        view = view[stream.write(view) :]


def _pieces(response: "requests.Response") -> Iterator[bytes]:
    """Yield undecoded bytes as they arrive, so that slow transfers still show progress."""
    import urllib3

    try:
        while piece := response.raw.read1(PIECE_BYTES, decode_content=False):
            yield piece
    except urllib3.exceptions.ReadTimeoutError as error:
        raise _TemporaryError("no answer in time") from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise _TemporaryError("the connection broke off") from error


def _retry_after(headers: Any) -> float | None:
    """Read Retry-After, which is seconds or a date."""
    value = headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _read_note(note: Path, url: str) -> str | None:
    try:
        record = json.loads(note.read_text())
        return str(record["validator"]) if record["url"] == url and record["validator"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_note(note: Path, url: str, headers: Any) -> None:
    etag = headers.get("ETag", "")
    # A weak ETag guarantees equal meaning, not equal bytes.
    validator = etag if etag.startswith('"') else headers.get("Last-Modified", "")
    with writing(note):
        note.write_text(json.dumps({"url": url, "validator": validator}))
