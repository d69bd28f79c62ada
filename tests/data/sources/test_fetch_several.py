import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.shared import line_of, lines_of

from fedsampling.base.files import write_bytes
from fedsampling.data.sources.cache import converted
from fedsampling.data.sources.fetch import fetch_all, fetch_dataset
from fedsampling.data.sources.sources import SOURCES

from .publisher import big, files_in, put

TEXT = b"-1 1:0.5 3:1\n"
URL = "https://publisher.example/things/small.txt"

pytestmark = pytest.mark.usefixtures("requested")


def small(dataset, file, *urls, edition=""):
    return big(*urls, content=TEXT, dataset=dataset, file=file, edition=edition)


def test_available_files_are_fetched_and_missing_ones_named(tmp_path):
    sources = [small("some", f"{i}.txt") for i in range(4)]
    for i in (0, 2):
        put(tmp_path / f"mirror/some/{i}.txt", TEXT)
    lines = lines_of(fetch_all, sources, tmp_path / "cache", str(tmp_path / "mirror"))
    assert [line[:6] for line in lines] == ["1.txt:", "3.txt:"]
    assert files_in(tmp_path / "cache/some") == {"0.txt", "2.txt"}
    paths = fetch_all(sources[::2], tmp_path / "cache", None)
    assert list(paths) == ["some/0.txt", "some/2.txt"]


def test_a_complete_edition_is_used_or_the_preferred_one_named(tmp_path, monkeypatch, requested):
    for source in (
        small("two", "archive.txt", URL, edition="archive"),
        small("two", "one.txt", edition="files"),
        small("two", "other.txt", edition="files"),
    ):
        monkeypatch.setitem(SOURCES, source.name, source)
    put(tmp_path / "mirror/two/one.txt", TEXT)  # half an edition is none
    for mirror in (str(tmp_path / "mirror"), None):
        line = line_of(fetch_dataset, "two", tmp_path / "cache", mirror)
        assert line.startswith("archive.txt:")
    requested.clear()
    put(tmp_path / "mirror/two/other.txt", TEXT)
    for mirror in (str(tmp_path / "mirror"), None):  # the second time from the cache
        paths = fetch_dataset("two", tmp_path / "cache", mirror)
        assert list(paths) == ["two/one.txt", "two/other.txt"]
    assert requested == []


def test_only_one_of_several_callers_converts(tmp_path):
    targets = []

    def convert(target):
        targets.append(target)
        time.sleep(0.05)
        write_bytes(target, b"arrays")

    target = tmp_path / "folder" / "a.npz"
    with ThreadPoolExecutor(4) as pool:
        paths = [*pool.map(lambda _: converted(target, convert), range(4))]
    assert targets == [target]
    assert {path.read_bytes() for path in (*paths, converted(target, convert))} == {b"arrays"}


def test_after_a_failure_the_next_call_tries_again(tmp_path):
    def fail(target):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        converted(tmp_path / "a", fail)
    converted(tmp_path / "a", lambda target: write_bytes(target, b"right"))
    assert (tmp_path / "a").read_bytes() == b"right"
