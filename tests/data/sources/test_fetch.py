import bz2
import errno
import gzip
import hashlib
import lzma
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from fedsampling.base.errors import InputError
from fedsampling.data.sources.fetch import fetch

from .publisher import PAUSES, big, error_line, put

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
pytestmark = pytest.mark.usefixtures("requested")


def files_below(folder):
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]


@pytest.mark.parametrize("suffix", PACKED)
def test_mirror_may_hold_the_file_packed_or_plain(tmp_path, suffix, requested):
    put(tmp_path / "mirror" / "small" / f"small.txt{suffix}", PACKED[suffix])
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
    put(tmp_path / "mirror/small/small.txt.xz", PACKED[".xz"])
    fetch(SMALL, tmp_path / "cache", str(tmp_path / "mirror"))
    assert cached.read_bytes() == TEXT


def test_a_copy_in_the_cache_that_cannot_be_read_is_kept(tmp_path, monkeypatch):
    cached = put(tmp_path / "cache/small/small.txt", TEXT)
    put(tmp_path / "mirror/small/small.txt.xz", PACKED[".xz"])
    with monkeypatch.context() as patched:
        denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        patched.setattr(Path, "open", Mock(side_effect=denied))
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


@pytest.mark.parametrize("packer", [lzma, bz2, gzip])
def test_decompression_bomb_is_never_unpacked(tmp_path, packer):
    suffix = {lzma: ".xz", bz2: ".bz2", gzip: ".gz"}[packer]
    put(tmp_path / f"small/small.txt{suffix}", packer.compress(bytes(64 << 20)))
    tracemalloc.start()
    line = error_line(tmp_path / "cache", SMALL, str(tmp_path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "more than the 4,800 bytes" in line
    assert peak < 16 << 20  # the decompressors' own tables, not the 64 MiB of content


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_a_mirror_entry_that_is_no_file_is_not_read(tmp_path, make):
    (tmp_path / "small").mkdir()
    make(tmp_path / "small/small.txt")
    assert "not in the mirror" in error_line(tmp_path / "cache", SMALL, str(tmp_path))


@pytest.mark.parametrize(
    ("mirror", "reason"),
    [
        (None, f"small.txt: {URL} cannot be reached (the connection failed); download"),
        ("empty", "small.txt: not in the mirror empty (looked for small/small.txt, "),
        ("nowhere", "mirror: 'nowhere' is not a folder"),
    ],
)
def test_a_missing_file_is_requested_unless_the_mirror_is_wrong(
    tmp_path, monkeypatch, requested, mirror, reason
):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    assert error_line(tmp_path / "cache", SMALL, mirror).startswith(reason)
    assert requested == ([] if mirror == "nowhere" else [URL] * (1 + len(PAUSES)))
    assert files_below(tmp_path / "cache") == []


def test_empty_content_and_another_checksum_of_the_publisher_are_refused(tmp_path):
    unknown = replace(SMALL, size=None, checksum=None), b"", "has 0 bytes"
    other = replace(SMALL, published=f"sha256:{'0' * 64}"), TEXT, ", expected 0000"
    for source, content, reason in (unknown, other):
        put(tmp_path / "mirror" / source.name, content)
        assert reason in error_line(tmp_path / "cache", source, str(tmp_path / "mirror"))


def test_a_file_in_another_folder_of_the_mirror_is_not_used(tmp_path):
    put(tmp_path / "mirror/small.txt", TEXT)
    assert "not in the mirror" in error_line(tmp_path / "cache", SMALL, str(tmp_path / "mirror"))
