"""A publisher on this machine, whose faults the tests choose."""

import threading

import pytest
import requests

from fedsampling.data.sources import fetch

from .publisher import PAUSES, Publisher


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(fetch, "PAUSES", PAUSES)


@pytest.fixture
def publisher():
    with Publisher() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def requested(monkeypatch):
    """No network: whatever is asked for is noted and cannot be reached."""
    urls = []

    def unreachable(url, **_):
        urls.append(url)
        raise requests.ConnectionError("name\nresolution failed")

    monkeypatch.setattr(requests, "get", unreachable)
    return urls
