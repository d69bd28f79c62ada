"""Wrong content, rival processes and bad disks: never a wrong or half file in place."""

import gzip
import multiprocessing
import re
import resource
import signal
import time
from dataclasses import replace

import pytest

from fedsampling.base.errors import InputError
from fedsampling.data.sources.fetch import fetch, fetch_all

from .publisher import (
    CONTENT,
    OTHER,
    SHORT_WAITS,
    big,
    cut,
    error_line,
    fetched_content,
    files_in,
    status,
)


def test_a_packed_file_is_fetched_from_a_mirror_at_a_url(tmp_path, publisher):
    publisher.content = gzip.compress(CONTENT)
    publisher.faults = [status(404)] * 3  # of the plain file, .xz and .bz2
    path = fetch(big(), tmp_path, f"{publisher.url}/data/", patience=SHORT_WAITS)
    assert path.read_bytes() == CONTENT


def test_wrong_content_is_named_and_deleted(tmp_path, publisher):
    publisher.content = OTHER
    line = error_line(tmp_path, big(publisher.url))
    assert f"{publisher.url}: it has sha256 " in line
    assert not files_in(tmp_path / "big")


@pytest.mark.parametrize("length", [True, False])
def test_an_endless_response_is_stopped(tmp_path, publisher, length):
    publisher.content = bytes(1 << 24)
    publisher.always = lambda answer: answer.answer(length=length)
    assert re.search("(more|longer) than the 3", error_line(tmp_path, big(publisher.url)))
    assert not files_in(tmp_path / "big")


def test_next_url_is_tried(tmp_path, publisher):
    publisher.faults = [status(404), cut(1000, length=False)]
    urls = [f"{publisher.url}?{i}" for i in range(3)]
    assert fetched_content(tmp_path, big(*urls)) == CONTENT


def in_process(cache, source, results):
    results.put(fetch(source, cache, None, patience=SHORT_WAITS).read_bytes() == CONTENT)


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


def test_after_a_killed_process_the_next_one_resumes(tmp_path, publisher):
    publisher.faults = [cut(300_000, pause=0.001)]
    process = multiprocessing.get_context("fork").Process(
        target=fetch, args=(big(publisher.url), tmp_path, None)
    )
    process.start()
    part = tmp_path / "big/big.bin.part"
    while not (part.exists() and part.stat().st_size > 10_000):
        time.sleep(0.01)
    process.kill()
    process.join()
    assert fetch(big(publisher.url), tmp_path, None).read_bytes() == CONTENT
    assert "Range" in publisher.requests[1]


def test_interrupt_ends_all_downloads_and_keeps_what_arrived(tmp_path, publisher):
    def interrupt(_, received, __):
        if received > 5_000:
            raise KeyboardInterrupt

    publisher.always = cut(300_000, pause=0.01)
    sources = [replace(big(publisher.url), dataset=f"big{i}") for i in range(3)]
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fetch_all(sources, tmp_path, None, tell=interrupt)
    assert time.monotonic() - begin < 10  # of 30 s that they would take
    for folder in tmp_path.iterdir():
        assert files_in(folder) == {"big.bin.part"}


def test_limit_on_file_size_is_named(tmp_path, publisher):
    def limited(errors):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            fetch(big(publisher.url), tmp_path, None)
        except InputError as error:
            errors.put(error.lines)

    fork = multiprocessing.get_context("fork")
    errors = fork.Queue()
    process = fork.Process(target=limited, args=(errors,))
    process.start()
    (line,) = errors.get(timeout=20)
    process.join()
    assert "big.bin.part: cannot be written (File too large)" in line
    assert not (tmp_path / "big/big.bin").exists()
    # It continues once there is room.
    assert fetched_content(tmp_path, big(publisher.url)) == CONTENT
    assert publisher.requests[1]["Range"] == "bytes=100000-"
