"""A publisher's server on this machine that errs on demand, and what to ask of it."""

import hashlib
import random
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fedsampling.base.errors import InputError
from fedsampling.data.sources.fetch import Patience, fetch
from fedsampling.data.sources.sources import Source

CONTENT = random.Random(0).randbytes(300_000)
OTHER = random.Random(1).randbytes(300_000)
SHORT_WAITS = Patience(connect=2, read=0.4, answer=2.0, attempts=3, pause=0.01)


class Publisher(ThreadingHTTPServer):
    """Serves `content`; every request first meets the next of `faults`, if there is one."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.content = CONTENT
        self.ranges = True
        self.delay = 0.0
        self.faults = []
        self.always = None
        self.requests = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/big.bin"

    def handle_error(self, *_):
        """Keep quiet about clients that hang up."""


class Answer(BaseHTTPRequestHandler):
    server: Publisher

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.requests.append(dict(self.headers))
        time.sleep(self.server.delay)
        fault = self.server.faults.pop(0) if self.server.faults else self.server.always
        fault(self) if fault else self.answer()

    def answer(self, cut=None, pause=0, length=True):
        """Send the file or the range asked for; `cut` bytes of it only; slowly if need be."""
        server, start = self.server, 0
        requested = self.headers.get("Range")
        if server.ranges and requested:
            start = int(requested.removeprefix("bytes=").removesuffix("-"))
        body = server.content[start:]
        self.send_response(206 if start else 200)
        if start:
            total = len(server.content)
            self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        if length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        body = body[:cut]
        step = 100 if pause else len(body) or 1
        for at in range(0, len(body), step):
            self.wfile.write(body[at : at + step])
            self.wfile.flush()
            time.sleep(pause)


def status(code, **headers):
    def fault(answer):
        answer.send_response(code)
        for name, value in headers.items():
            answer.send_header(name.replace("_", "-"), value)
        answer.send_header("Content-Length", "0")
        answer.end_headers()

    return fault


def cut(after, **options):
    return lambda answer: answer.answer(cut=after, **options)


def dripping_headers(answer):
    """Send a header that never ends, ten bytes a second."""
    answer.wfile.write(b"HTTP/1.1 200 OK\r\nX-Header: ")
    while True:
        answer.wfile.write(b"x")
        time.sleep(0.1)


@contextmanager
def running():
    with Publisher() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def big(*urls, content=CONTENT, **fields):
    return Source(
        **{
            "dataset": "big",
            "file": "big.bin",
            "urls": urls,
            "size": len(content),
            "checksum": f"sha256:{hashlib.sha256(content).hexdigest()}",
            "licence": "none",
            "citation": "none",
            "becomes": "a test",
        }
        | fields
    )


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def files_in(folder):
    """Name what is in a folder but for locks, which stay."""
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"}


def fetched_content(cache, source):
    path = fetch(source, cache, None)
    assert files_in(path.parent) == {path.name}  # and nothing besides
    return path.read_bytes()


def error_line(cache, source, mirror=None):
    """The one line with which a fetch fails, leaving the file in the cache as it was."""
    target = cache / source.name
    before = target.read_bytes() if target.exists() else None
    with pytest.raises(InputError) as caught:
        fetch(source, cache, mirror)
    (line,) = caught.value.lines
    assert "\n" not in line
    assert (target.read_bytes() if target.exists() else None) == before
    return line
