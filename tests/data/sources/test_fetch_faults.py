"""Faults of servers, wrong content, rival processes and bad disks: never a wrong file in place."""

import gzip
import multiprocessing
import resource
import time
from urllib.parse import urlsplit

import pytest

from fedsampling.data.sources import fetch as fetching
from fedsampling.data.sources.fetch import fetch

from .publisher import (
    CONTENT,
    OTHER,
    PAUSES,
    big,
    cut,
    error_line,
    fetched_content,
    files_in,
    status,
)


class TestServer:
    @pytest.mark.parametrize("fault", [status(429), status(500), status(503), cut(10_000)])
    def test_temporary_failures_are_retried(self, tmp_path, publisher, fault):
        publisher.faults = [fault, fault]
        assert fetched_content(tmp_path, big(publisher.url)) == CONTENT

    @pytest.mark.parametrize(
        ("fault", "reason", "requests"),
        [
            (status(500), "cannot be reached (HTTP status 500)", 1 + len(PAUSES)),
            (cut(10_000), "cannot be reached (the connection failed)", 1 + len(PAUSES)),
            *((status(code), f"(HTTP status {code})", 1) for code in (401, 501)),
            *((status(code), "not at http://127.0.0.1", 1) for code in (403, 404)),
        ],
    )
    def test_lasting_failures_are_named_and_missing_files_are_not_retried(
        self, tmp_path, publisher, fault, reason, requests
    ):
        publisher.always = fault
        assert reason in error_line(tmp_path, big(publisher.url))
        assert len(publisher.requests) == requests
        assert not files_in(tmp_path / "big")

    def test_silence_times_out(self, tmp_path, publisher, monkeypatch):
        monkeypatch.setattr(fetching, "_TIMEOUTS", (2.0, 0.3))
        publisher.delay = 1.0
        assert "(no answer in time)" in error_line(tmp_path, big(publisher.url))

    def test_a_server_that_drips_is_given_up(self, tmp_path, publisher, monkeypatch):
        monkeypatch.setattr(fetching, "_TIMEOUTS", (2.0, 0.3))
        publisher.always = lambda answer: answer.answer(pause=0.2)
        assert "(slower than 1000 bytes a second)" in error_line(tmp_path, big(publisher.url))

    def test_a_packed_file_is_unpacked(self, tmp_path, publisher):
        publisher.content = gzip.compress(CONTENT)
        host = urlsplit(publisher.url).netloc
        assert fetched_content(tmp_path, big(f"http://{host}/big.bin.gz")) == CONTENT


class TestWrongContent:
    def test_wrong_content_is_named_and_deleted(self, tmp_path, publisher):
        publisher.content = OTHER
        line = error_line(tmp_path, big(publisher.url))
        assert f"{publisher.url}: it has sha256 " in line
        assert not files_in(tmp_path / "big")

    def test_an_endless_response_is_stopped(self, tmp_path, publisher):
        publisher.content = bytes(1 << 24)
        for length in (True, False):
            publisher.always = lambda answer, length=length: answer.answer(length=length)
            assert "longer than the 3" in error_line(tmp_path, big(publisher.url))
            assert not files_in(tmp_path / "big")

    def test_next_url_is_tried(self, tmp_path, publisher):
        publisher.faults = [status(404), cut(1000, length=False)]
        urls = [f"{publisher.url}?{i}" for i in range(3)]
        assert fetched_content(tmp_path, big(*urls)) == CONTENT


def in_process(cache, source, results):
    results.put(fetch(source, cache, None).read_bytes() == CONTENT)


def test_two_processes_fetch_a_file_once(tmp_path, publisher):
    publisher.delay = 0.1
    spawn = multiprocessing.get_context("fork")
    results = spawn.Queue()
    arguments = (tmp_path, big(publisher.url), results)
    processes = [spawn.Process(target=in_process, args=arguments) for _ in range(3)]
    for process in processes:
        process.start()
    assert [results.get(timeout=20) for _ in processes] == [True] * 3
    for process in processes:
        process.join()
    assert len(publisher.requests) == 1
    assert files_in(tmp_path / "big") == {"big.bin"}


def test_after_a_killed_process_the_next_one_fetches(tmp_path, publisher):
    publisher.faults = [cut(300_000, pause=0.001)]
    process = multiprocessing.get_context("fork").Process(
        target=fetch, args=(big(publisher.url), tmp_path, None)
    )
    process.start()
    while not publisher.requests:
        time.sleep(0.01)
    process.kill()
    process.join()
    assert fetch(big(publisher.url), tmp_path, None).read_bytes() == CONTENT


def test_an_interrupt_leaves_no_file(tmp_path, publisher):
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(big(publisher.url), tmp_path, None, tell=interrupt)
    assert not files_in(tmp_path / "big")


def test_limit_on_file_size_is_named(tmp_path, publisher):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))  # Python ignores the signal
    try:
        line = error_line(tmp_path, big(publisher.url))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "big.bin: cannot be written (File too large)" in line
    assert not files_in(tmp_path / "big")
