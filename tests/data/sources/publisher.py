"""A publisher's server on this machine that errs on demand, and what to ask of it."""

import hashlib
import random
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.shared import line_of

from fedsampling.data.sources.fetch import fetch
from fedsampling.data.sources.sources import Source

CONTENT = random.Random(0).randbytes(300_000)
OTHER = random.Random(1).randbytes(300_000)
PAUSES = (0.01, 0.01)


class Publisher(ThreadingHTTPServer):
    """Serves `content`; every request first meets the next of `faults`, if there is one."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.content = CONTENT
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
        """Send the file, or `cut` bytes of it only; slowly if need be."""
        body = self.server.content
        self.send_response(200)
        if length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        body = body[:cut]
        step = 100 if pause else len(body) or 1
        for at in range(0, len(body), step):
            self.wfile.write(body[at : at + step])
            self.wfile.flush()
            time.sleep(pause)


def status(code):
    def fault(answer):
        answer.send_response(code)
        answer.send_header("Content-Length", "0")
        answer.end_headers()

    return fault


def cut(after, **options):
    return lambda answer: answer.answer(cut=after, **options)


def big(*urls, content=CONTENT, **fields):
    checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
    known = {"dataset": "big", "file": "big.bin", "size": len(content), "checksum": checksum}
    texts = {"licence": "none", "citation": "none", "becomes": "a test"}
    return Source(urls=urls, **(known | texts | fields))


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
    line = line_of(fetch, source, cache, mirror)
    assert "\n" not in line
    assert (target.read_bytes() if target.exists() else None) == before
    return line
