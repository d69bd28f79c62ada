"""Faults of servers and networks: the right file in the end, or one clear line."""

import time

import pytest

from fedsampling.data.sources.download import Patience
from fedsampling.data.sources.fetch import fetch

from .publisher import (
    CONTENT,
    OTHER,
    SHORT_WAITS,
    Answer,
    big,
    cut,
    error_line,
    fetched_content,
    status,
)


class TestBrokenConnection:
    def test_a_broken_download_resumes_where_it_stopped(self, tmp_path, publisher):
        publisher.faults = [cut(100_000), cut(50_000)]
        assert fetched_content(tmp_path, big(publisher.url)) == CONTENT
        first, second, third = publisher.requests
        assert "Range" not in first
        assert (second["Range"], second["If-Range"]) == ("bytes=100000-", '"one"')
        assert third["Range"] == "bytes=150000-"

    def test_with_a_weak_etag_the_date_validates(self, tmp_path, publisher):
        date = "Wed, 21 Oct 2015 07:28:00 GMT"
        publisher.headers = {"ETag": 'W/"one"', "Last-Modified": date}
        publisher.faults = [cut(100_000)]
        assert fetched_content(tmp_path, big(publisher.url)) == CONTENT
        assert publisher.requests[1]["If-Range"] == date

    def test_without_a_validator_it_starts_from_the_beginning(self, tmp_path, publisher):
        publisher.headers = {}
        publisher.faults = [cut(100_000)]
        assert fetched_content(tmp_path, big(publisher.url)) == CONTENT
        assert "Range" not in publisher.requests[1]

    def test_server_without_ranges_sends_all_again(self, tmp_path, publisher):
        publisher.ranges = False
        publisher.faults = [cut(100_000)]
        assert fetched_content(tmp_path, big(publisher.url)) == CONTENT
        assert len(publisher.requests) == 2

    def test_another_run_resumes_the_partial_file(self, tmp_path, publisher):
        publisher.always = cut(40_000)
        line = error_line(tmp_path, big(publisher.url))
        assert f"{publisher.url} cannot be reached (the connection broke off)" in line
        publisher.always = None
        assert fetched_content(tmp_path, big(publisher.url)) == CONTENT
        assert publisher.requests[3]["Range"] == "bytes=120000-"

    def test_attempts_with_progress_do_not_count_as_failures(self, tmp_path, publisher):
        publisher.content = bytes(10_000_000)
        publisher.always = cut(1_500_000)
        assert (
            len(fetched_content(tmp_path, big(publisher.url, content=publisher.content)))
            == 10_000_000
        )
        assert len(publisher.requests) == 7

    def test_damaged_beginning_of_another_run_is_fetched_again(self, tmp_path, publisher):
        publisher.always = cut(40_000)
        error_line(tmp_path, big(publisher.url))
        publisher.always = None
        with (tmp_path / "big/big.bin.part").open("r+b") as stream:
            stream.write(b"damage")
        assert fetched_content(tmp_path, big(publisher.url)) == CONTENT
        assert ["Range" in asked for asked in publisher.requests[3:]] == [True, False]

    def test_whole_partial_file_is_not_fetched_again(self, tmp_path, publisher):
        publisher.always = cut(40_000)
        error_line(tmp_path, big(publisher.url))
        (tmp_path / "big/big.bin.part").write_bytes(CONTENT)
        publisher.always = status(416, Content_Range="bytes */300000")
        assert fetched_content(tmp_path, big(publisher.url)) == CONTENT


class TestChangedFile:
    @pytest.mark.parametrize("heeds", [True, False])
    def test_two_versions_are_never_mixed(self, tmp_path, publisher, heeds):
        def change(answer: Answer) -> None:
            answer.answer(cut=100_000)
            publisher.content, publisher.headers = OTHER, {"ETag": '"two"'}

        publisher.heeds_if_range = heeds
        publisher.faults = [change]
        assert fetched_content(tmp_path, big(publisher.url, content=OTHER, checksum=False)) == OTHER

    def test_a_range_with_another_start_is_rejected(self, tmp_path, publisher):
        def elsewhere(answer: Answer) -> None:
            answer.headers.replace_header("Range", "bytes=7-")
            answer.answer()

        publisher.faults = [cut(100_000), elsewhere]
        assert fetched_content(tmp_path, big(publisher.url)) == CONTENT
        assert "Range" not in publisher.requests[2]


class TestStatus:
    @pytest.mark.parametrize("code", [429, 500, 502, 503])
    def test_temporary_failures_are_retried(self, tmp_path, publisher, code):
        publisher.faults = [status(code), status(code)]
        assert fetched_content(tmp_path, big(publisher.url)) == CONTENT

    @pytest.mark.parametrize(
        ("code", "reason", "requests"),
        [
            (500, "cannot be reached (HTTP status 500)", SHORT_WAITS.attempts),
            *((code, f"(HTTP status {code})", 1) for code in (400, 401, 501)),
            *((code, "not at http://127.0.0.1", 1) for code in (403, 404, 410)),
        ],
    )
    def test_lasting_failures_are_named_and_missing_files_are_not_retried(
        self, tmp_path, publisher, code, reason, requests
    ):
        publisher.always = status(code)
        assert reason in error_line(tmp_path, big(publisher.url))
        assert len(publisher.requests) == requests

    def test_retry_after_overrides_our_own_pause(self, tmp_path, publisher):
        publisher.faults = [status(503, Retry_After="1")]
        begin = time.monotonic()
        assert fetched_content(tmp_path, big(publisher.url)) == CONTENT
        assert time.monotonic() - begin >= 1
        publisher.faults = [status(503, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT")]
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

    def test_silence_in_the_middle_times_out_and_the_download_resumes(self, tmp_path, publisher):
        def pause(answer: Answer) -> None:
            answer.answer(cut=1000)
            time.sleep(1)

        publisher.faults = [pause]
        assert fetched_content(tmp_path, big(publisher.url)) == CONTENT
        assert publisher.requests[1]["Range"] == "bytes=1000-"


def test_progress_increases_to_the_total(tmp_path, publisher):
    steps: list[tuple[str, int, int]] = []
    fetch(big(publisher.url), tmp_path, None, tell=lambda *each: steps.append(each))
    assert steps == sorted(steps)
    assert steps[-1] == ("big/big.bin", 300_000, 300_000)
