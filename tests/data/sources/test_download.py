"""Faults of servers and networks: the right file in the end, or one clear line."""

import time
from dataclasses import replace

import pytest

from fedsampling.base.errors import InputError
from fedsampling.data.sources.download import Patience
from fedsampling.data.sources.fetch import fetch

from .publisher import CONTENT, OTHER, SHORT_WAITS, big, cut, error_line, fetched_content, status

DATE = "Wed, 21 Oct 2015 07:28:00 GMT"
ETAG = {"ETag": '"one"'}
START = (None, None)


@pytest.mark.parametrize(
    ("headers", "ranges", "faults", "requests"),
    [
        (ETAG, True, [cut(10_000), cut(5_000)], [START, (10_000, '"one"'), (15_000, '"one"')]),
        ({"ETag": 'W/"one"', "Last-Modified": DATE}, True, [cut(99)], [START, (99, DATE)]),
        ({}, True, [cut(10_000)], [START, START]),
        (ETAG, False, [cut(10_000)], [START, (10_000, '"one"')]),
    ],
    ids=["strong ETag", "weak ETag and date", "no validator", "server without ranges"],
)
def test_a_broken_download_resumes_where_the_server_allows_it(
    tmp_path, publisher, headers, ranges, faults, requests
):
    publisher.headers, publisher.ranges, publisher.faults = headers, ranges, faults
    assert fetched_content(tmp_path, big(publisher.url)) == CONTENT
    assert [(first_byte(sent), sent.get("If-Range")) for sent in publisher.requests] == requests


def first_byte(request):
    return int(request["Range"][len("bytes=") : -1]) if "Range" in request else None


@pytest.mark.parametrize(
    ("change", "fault", "starts"),
    [
        (lambda part: None, None, [120_000]),
        (lambda part: part.write_bytes(b"damage" + CONTENT[6:120_000]), None, [120_000, None]),
        (
            lambda part: part.write_bytes(CONTENT),
            status(416, Content_Range="bytes */300000"),
            [300_000],
        ),
    ],
    ids=["unchanged", "damaged", "complete"],
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


@pytest.mark.parametrize("part", ["body", "header"])
def test_a_server_that_drips_is_left_for_the_next_one(tmp_path, publisher, part):
    """Each byte comes in time, the file never would."""

    def drip(answer):
        if part == "body":
            answer.send_response(200)
            answer.send_header("Content-Length", str(len(CONTENT)))
            answer.end_headers()
        else:
            answer.wfile.write(b"HTTP/1.0 200 OK\r\nX: ")
        for _ in range(4000):
            answer.wfile.write(b"x")
            answer.wfile.flush()
            time.sleep(0.05)

    publisher.always = drip
    impatient = replace(SHORT_WAITS, read=10, window=0.3, attempts=2)
    with pytest.raises(InputError, match="cannot be reached") as caught:
        fetch(big(publisher.url), tmp_path, None, patience=impatient)
    assert {"body": "(too slow)", "header": "(no answer in time)"}[part] in str(caught.value)
    assert len(publisher.requests) == 2


class TestChangedFile:
    @pytest.mark.parametrize("heeds", [True, False])
    def test_two_versions_are_never_mixed(self, tmp_path, publisher, heeds):
        source = big(publisher.url, content=OTHER, size=None, checksum=None)

        def change(answer):
            answer.answer(cut=100_000)
            publisher.content, publisher.headers = OTHER, {"ETag": '"two"'}

        publisher.heeds_if_range = heeds
        publisher.faults = [change]
        assert fetched_content(tmp_path, source) == OTHER

    def test_a_range_with_another_start_is_rejected(self, tmp_path, publisher):
        def elsewhere(answer):
            answer.headers.replace_header("Range", "bytes=7-")
            answer.answer()

        publisher.faults = [cut(100_000), elsewhere]
        assert fetched_content(tmp_path, big(publisher.url)) == CONTENT
        assert "Range" not in publisher.requests[2]


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
        publisher.faults = [status(503, Retry_After=DATE)]
        patient = Patience(**{**vars(SHORT_WAITS), "pause": 60.0, "longest": 60.0})
        assert fetched_content(tmp_path / "other", big(publisher.url), patient) == CONTENT
        assert time.monotonic() - begin < 20

    def test_a_server_that_requests_an_hour_is_given_up(self, tmp_path, publisher):
        publisher.faults = [status(503, Retry_After="3600")]
        assert fetched_content(tmp_path, big(f"{publisher.url}?1", f"{publisher.url}?2")) == CONTENT
        publisher.faults = [status(503, Retry_After="3600")]
        line = error_line(tmp_path / "other", big(publisher.url))
        assert "(HTTP status 503, come back in 3,600 s)" in line


class TestSlowness:
    def test_silence_times_out(self, tmp_path, publisher):
        publisher.delay = 1.0
        assert "(no answer in time)" in error_line(tmp_path, big(publisher.url))
