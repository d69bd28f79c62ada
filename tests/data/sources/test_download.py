"""Faults of servers and networks: the right file in the end, or one clear line."""

import time

import pytest

from .publisher import (
    CONTENT,
    OTHER,
    SHORT_WAITS,
    big,
    cut,
    dripping_headers,
    error_line,
    fetched_content,
    put,
    status,
)


@pytest.mark.parametrize(
    ("source", "ranges", "starts"),
    [
        ({}, True, [None, 10_000]),
        ({}, False, [None, 10_000]),
        ({"checksum": None}, True, [None] * 2),
    ],
    ids=["resumed", "server without ranges", "without a checksum"],
)
def test_a_broken_download_resumes_where_its_content_can_be_verified(
    tmp_path, publisher, source, ranges, starts
):
    publisher.ranges, publisher.faults = ranges, [cut(10_000)]
    assert fetched_content(tmp_path, big(publisher.url, **source)) == CONTENT
    assert [first_byte(sent) for sent in publisher.requests] == starts


def first_byte(request):
    return int(request["Range"][len("bytes=") : -1]) if "Range" in request else None


@pytest.mark.parametrize(
    ("change", "fault", "starts"),
    [
        (lambda part: None, None, [120_000]),
        (lambda part: part.write_bytes(b"damage" + CONTENT[6:120_000]), None, [120_000, None]),
    ],
    ids=["unchanged", "damaged"],
)
def test_another_run_resumes_the_partial_file_unless_it_is_damaged(
    tmp_path, publisher, change, fault, starts
):
    publisher.always = cut(40_000)
    line = error_line(tmp_path, big(publisher.url))
    assert f"{publisher.url} cannot be reached (the connection broke off)" in line
    change(tmp_path / "big/big.bin.part")
    publisher.always = fault
    assert fetched_content(tmp_path, big(publisher.url)) == CONTENT
    assert [first_byte(request) for request in publisher.requests[3:]] == starts


def test_attempts_with_progress_do_not_count_as_failures(tmp_path, publisher):
    publisher.content = bytes(10_000_000)
    publisher.always = cut(1_500_000)
    source = big(publisher.url, content=publisher.content)
    assert fetched_content(tmp_path, source) == publisher.content
    assert len(publisher.requests) == 7


@pytest.mark.parametrize("checksum", [True, False])
def test_two_versions_are_never_mixed(tmp_path, publisher, checksum):
    def change(answer):
        answer.answer(cut=100_000)
        publisher.content = OTHER

    publisher.faults = [change]
    source = big(publisher.url, content=OTHER, **({} if checksum else {"checksum": None}))
    put(tmp_path / "big/big.bin.part", CONTENT[:10])
    assert fetched_content(tmp_path, source) == OTHER


def test_a_partial_file_that_is_too_long_is_dropped(tmp_path, publisher):
    put(tmp_path / "big/big.bin.part", bytes(400_000))
    publisher.faults = [status(416)]
    assert fetched_content(tmp_path, big(publisher.url)) == CONTENT


class TestStatus:
    @pytest.mark.parametrize("code", [429, 500, 503])
    def test_temporary_failures_are_retried(self, tmp_path, publisher, code):
        publisher.faults = [status(code), status(code)]
        assert fetched_content(tmp_path, big(publisher.url)) == CONTENT

    @pytest.mark.parametrize(
        ("code", "reason", "requests"),
        [
            (500, "cannot be reached (HTTP status 500)", SHORT_WAITS.attempts),
            *((code, f"(HTTP status {code})", 1) for code in (401, 501)),
            *((code, "not at http://127.0.0.1", 1) for code in (403, 404)),
        ],
    )
    def test_lasting_failures_are_named_and_missing_files_are_not_retried(
        self, tmp_path, publisher, code, reason, requests
    ):
        publisher.always = status(code)
        assert reason in error_line(tmp_path, big(publisher.url))
        assert len(publisher.requests) == requests

    def test_retry_after_overrides_our_pause(self, tmp_path, publisher):
        publisher.faults = [status(503, Retry_After="1")]
        begin = time.monotonic()
        assert fetched_content(tmp_path, big(publisher.url)) == CONTENT
        assert time.monotonic() - begin >= 1


class TestSlowness:
    def test_silence_times_out(self, tmp_path, publisher):
        publisher.delay = 1.0
        assert "(no answer in time)" in error_line(tmp_path, big(publisher.url))

    def test_a_server_that_drips_its_headers_is_given_up(self, tmp_path, publisher):
        publisher.always = dripping_headers
        assert "(no answer in time)" in error_line(tmp_path, big(publisher.url))

    def test_a_server_that_drips_is_given_up(self, tmp_path, publisher):
        publisher.always = cut(300_000, pause=0.2)  # 100 bytes at a time
        reason = "cannot be reached (slower than 1000 bytes a second)"
        assert reason in error_line(tmp_path, big(publisher.url))
        publisher.always = None
        assert fetched_content(tmp_path, big(publisher.url)) == CONTENT
