import bz2
import errno
import gzip
import hashlib
import lzma
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from fedsampling.base.errors import InputError
from fedsampling.data.sources.fetch import fetch
from fedsampling.data.sources.local_files import is_verified
from fedsampling.data.sources.sources import SOURCES

from .publisher import SHORT_WAITS, big, error_line, put

TEXT = b"-1 1:0.5 3:1\n+1 2:-0.25\n" * 200
OTHER = TEXT.replace(b"0.5", b"0.6")
PACKED = {
    "": TEXT,
    ".xz": lzma.compress(TEXT),
    ".bz2": bz2.compress(TEXT),
    ".gz": gzip.compress(TEXT, mtime=0),  # the same test ids in all processes
}


def md5(content):
    return hashlib.md5(content).hexdigest()


URL = "https://publisher.example/things/small.txt.bz2"
SMALL = big(URL, content=TEXT, dataset="small", file="small.txt", checksum=f"md5:{md5(TEXT)}")
ARCHIVE = replace(SMALL, file="small.zip", size=None, checksum=None)
pytestmark = pytest.mark.usefixtures("requested")


def raise_(error):
    raise error


def files_below(folder):
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("folder", ["small", "."])
def test_mirror_may_hold_the_file_packed_or_plain_in_either_place(
    tmp_path, suffix, folder, requested
):
    put(tmp_path / "mirror" / folder / f"small.txt{suffix}", PACKED[suffix])
    path = fetch(SMALL, tmp_path / "cache", str(tmp_path / "mirror"))
    assert path == tmp_path / "cache" / "small" / "small.txt"
    assert path.read_bytes() == TEXT
    assert files_below(tmp_path / "cache") == [path]
    assert requested == []


def test_verified_copy_in_the_cache_needs_neither_mirror_nor_network(tmp_path, requested):
    put(tmp_path / "mirror/small/small.txt", OTHER)
    cached = put(tmp_path / "cache/small/small.txt", TEXT)
    assert fetch(SMALL, tmp_path / "cache", str(tmp_path / "mirror")) == cached
    assert cached.read_bytes() == TEXT
    assert requested == []


@pytest.mark.parametrize("damaged", [TEXT[:-1], OTHER, b""])
def test_damaged_copy_in_the_cache_is_replaced(tmp_path, damaged):
    cached = put(tmp_path / "cache/small/small.txt", damaged)
    put(tmp_path / "mirror/small.txt.xz", PACKED[".xz"])
    fetch(SMALL, tmp_path / "cache", str(tmp_path / "mirror"))
    assert cached.read_bytes() == TEXT


def test_a_copy_in_the_cache_that_cannot_be_read_is_kept(tmp_path, monkeypatch):
    cached = put(tmp_path / "cache/small/small.txt", TEXT)
    put(tmp_path / "mirror/small.txt.xz", PACKED[".xz"])
    with monkeypatch.context() as patched:
        denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        patched.setattr(Path, "open", lambda *_: raise_(denied))
        with pytest.raises(InputError, match=r"small.txt: cannot be read \(Permission denied\)"):
            fetch(SMALL, tmp_path / "cache", str(tmp_path / "mirror"))
    assert cached.read_bytes() == TEXT


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("small.txt.xz", lzma.compress(OTHER), f"has md5 {md5(OTHER)}, expected {md5(TEXT)}"),
        ("small.txt.xz", PACKED[".xz"][:-20], "cannot be decompressed"),
        ("small.txt.gz", PACKED[".gz"][:20] + b"damage", "cannot be decompressed"),
        ("small.txt.bz2", TEXT, "cannot be decompressed"),
        ("small.txt", TEXT * 100, "more than the 4,800 bytes"),
    ],
)
def test_corrupt_mirror_file_is_named_and_leaves_the_cache_alone(
    tmp_path, name, content, reason, requested
):
    file = put(tmp_path / "mirror/small" / name, content)
    cached = put(tmp_path / "cache/small/small.txt", b"old content")
    line = error_line(tmp_path / "cache", SMALL, str(tmp_path / "mirror"))
    assert line.startswith(f"mirror: {file} is not the published small.txt: it ")
    assert reason in line
    assert f"copy it again from {URL}" in line
    assert files_below(tmp_path / "cache") == [cached]
    assert requested == []


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".xz", lzma.compress), (".bz2", bz2.compress), (".gz", gzip.compress)]
)
def test_decompression_bomb_is_never_unpacked(tmp_path, suffix, compress):
    put(tmp_path / f"small.txt{suffix}", compress(bytes(64 << 20)))
    tracemalloc.start()
    line = error_line(tmp_path / "cache", SMALL, str(tmp_path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "more than the 4,800 bytes" in line
    assert peak < 16 << 20  # the decompressors' own tables, not the 64 MiB of content


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_a_mirror_entry_that_is_no_file_is_named_and_does_not_block(tmp_path, make):
    path = tmp_path / "small.txt"
    make(path)
    line = error_line(tmp_path / "cache", SMALL, str(tmp_path))
    assert line == f"mirror: {path} cannot be read (not a regular file); fix it or unset mirror"


@pytest.mark.parametrize(
    ("mirror", "reason"),
    [
        (None, f"small.txt: {URL} cannot be reached (no connection); download {URL} by hand"),
        ("empty", "small.txt: not in the mirror empty (looked for small/small.txt, "),
        ("nowhere", "mirror: 'nowhere' is not a folder"),
    ],
)
def test_a_missing_file_is_requested_from_the_publisher_unless_the_mirror_is_wrong(
    tmp_path, monkeypatch, requested, mirror, reason
):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    assert error_line(tmp_path / "cache", SMALL, mirror).startswith(reason)
    assert requested == ([] if mirror == "nowhere" else [URL] * SHORT_WAITS.attempts)
    assert files_below(tmp_path / "cache") == []


@pytest.mark.parametrize(
    ("source", "content", "reason"),
    [
        (ARCHIVE, b"<html>please log in</html>", "does not begin as small.zip must"),
        (ARCHIVE, b"", "has 0 bytes"),
        (replace(SMALL, published=f"sha256:{'0' * 64}"), TEXT, ", expected 0000"),
    ],
    ids=["login page", "empty", "another checksum of the publisher"],
)
def test_content_is_checked_by_its_beginning_and_the_publishers_checksum(
    tmp_path, source, content, reason
):
    put(tmp_path / "mirror" / source.name, content)
    assert reason in error_line(tmp_path / "cache", source, str(tmp_path / "mirror"))


def test_without_a_checksum_any_content_with_the_right_beginning_is_accepted(tmp_path):
    put(tmp_path / "mirror/small/small.zip", b"PK\x03\x04 and so on")
    path = fetch(ARCHIVE, tmp_path / "cache", str(tmp_path / "mirror"))
    assert is_verified(ARCHIVE, path)


def test_a_file_name_of_several_datasets_counts_only_in_their_folders(tmp_path, mirror):
    source = SOURCES["mnist/t10k-labels-idx1-ubyte.gz"]
    fashion = Path(mirror, "fashion_mnist", source.file).read_bytes()
    put(tmp_path / "mirror" / source.file, fashion)
    line = error_line(tmp_path / "cache", source, str(tmp_path / "mirror"))
    assert "not in the mirror" in line
