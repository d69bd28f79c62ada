import bz2
import gzip
import hashlib
import lzma
import os
import tracemalloc
from pathlib import Path

import pytest

from fedsampling.base.errors import InputError
from fedsampling.data.sources.download import Patience
from fedsampling.data.sources.fetch import fetch
from fedsampling.data.sources.local_files import is_verified
from fedsampling.data.sources.sources import SOURCES, Source

from .publisher import put

TEXT = b"-1 1:0.5 3:1\n+1 2:-0.25\n" * 200
OTHER = TEXT.replace(b"0.5", b"0.6")
PACKED = {
    "": TEXT,
    ".xz": lzma.compress(TEXT),
    ".bz2": bz2.compress(TEXT),
    ".gz": gzip.compress(TEXT, mtime=0),  # the same test ids in all processes
}


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


URL = "https://publisher.example/things/small.txt.bz2"
SMALL = Source(
    file="small.txt",
    dataset="small",
    urls=(URL,),
    size=len(TEXT),
    checksum=f"md5:{md5(TEXT)}",
    licence="none",
    citation="none",
    becomes="a test",
)
SHORT_WAITS = Patience(pause=0.0)
pytestmark = pytest.mark.usefixtures("requested")


def error_line(cache: Path, mirror: str | None) -> str:
    with pytest.raises(InputError) as caught:
        fetch(SMALL, cache, mirror, patience=SHORT_WAITS)
    assert len(caught.value.lines) == 1
    assert "\n" not in caught.value.lines[0]
    return caught.value.lines[0]


def files_below(folder: Path) -> list[Path]:
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


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("small.txt", OTHER, f"has md5 {md5(OTHER)}, expected {md5(TEXT)}"),
        ("small.txt.xz", lzma.compress(OTHER), f"has md5 {md5(OTHER)}, expected {md5(TEXT)}"),
        ("small.txt.xz", PACKED[".xz"][:-20], "cannot be decompressed"),
        ("small.txt.gz", PACKED[".gz"][:20] + b"damage", "cannot be decompressed"),
        ("small.txt.bz2", TEXT, "cannot be decompressed"),
        ("small.txt", TEXT * 100, "more than the 4,800 bytes"),
        ("small.txt.xz", lzma.compress(TEXT + b"x"), "more than the 4,800 bytes"),
    ],
)
def test_corrupt_mirror_file_is_named_and_leaves_the_cache_alone(
    tmp_path, name, content, what, requested
):
    held = put(tmp_path / "mirror/small" / name, content)
    stood = put(tmp_path / "cache/small/small.txt", b"what stood there before")
    line = error_line(tmp_path / "cache", str(tmp_path / "mirror"))
    assert line.startswith(f"mirror: {held} is not the published small.txt: it ")
    assert what in line
    assert f"copy it again from {URL}" in line
    assert stood.read_bytes() == b"what stood there before"
    assert files_below(tmp_path / "cache") == [stood]
    assert requested == []


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".xz", lzma.compress), (".bz2", bz2.compress), (".gz", gzip.compress)]
)
def test_decompression_bomb_is_never_unpacked(tmp_path, suffix, compress):
    put(tmp_path / f"small.txt{suffix}", compress(bytes(64 << 20)))
    tracemalloc.start()
    line = error_line(tmp_path / "cache", str(tmp_path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "more than the 4,800 bytes" in line
    assert peak < 16 << 20  # the decompressors' own tables, not the 64 MiB of content


def test_missing_mirror_folder_is_an_error_that_names_mirror(tmp_path, requested):
    line = error_line(tmp_path / "cache", str(tmp_path / "nowhere"))
    assert line.startswith(f"mirror: '{tmp_path / 'nowhere'}' is not a folder")
    assert line.endswith("folder or URL of small/")
    assert requested == []


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_a_mirror_entry_that_is_no_file_is_named_and_does_not_block(tmp_path, make):
    path = tmp_path / "small.txt"
    make(path)
    line = error_line(tmp_path / "cache", str(tmp_path))
    assert line == f"mirror: {path} cannot be read (not a regular file); fix it or unset mirror"


def test_offline_error_names_file_url_and_where_to_put_it(tmp_path, requested):
    line = error_line(tmp_path / "cache", None)
    assert line == (
        f"small.txt: {URL} cannot be reached (no connection); download {URL} by hand, "
        "save it as small/small.txt.bz2 in any folder, and set mirror to that folder"
    )
    assert requested == [URL] * SHORT_WAITS.attempts
    assert files_below(tmp_path / "cache") == []


def test_publisher_is_asked_for_what_the_mirror_does_not_hold(tmp_path, requested):
    line = error_line(tmp_path / "cache", str(tmp_path))
    looked = (
        "small/small.txt, small/small.txt.xz, small/small.txt.bz2, small/small.txt.gz, small.txt"
    )
    assert line.startswith(f"small.txt: not in the mirror {tmp_path} (looked for {looked}, ")
    assert f"{URL} cannot be reached" in line
    assert set(requested) == {URL}


class TestWithoutChecksum:
    ARCHIVE = Source(**{**vars(SMALL), "file": "small.zip", "size": None, "checksum": None})

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"<html>please log in</html>", r"does not begin as small\.zip must"),
            (b"", "has 0 bytes"),
        ],
    )
    def test_a_login_page_or_an_empty_file_is_rejected(self, tmp_path, content, reason):
        put(tmp_path / "mirror/small/small.zip", content)
        with pytest.raises(InputError, match=reason):
            fetch(self.ARCHIVE, tmp_path / "cache", str(tmp_path / "mirror"))

    def test_any_content_with_the_right_beginning_is_accepted(self, tmp_path):
        put(tmp_path / "mirror/small/small.zip", b"PK\x03\x04 and so on")
        path = fetch(self.ARCHIVE, tmp_path / "cache", str(tmp_path / "mirror"))
        assert is_verified(self.ARCHIVE, path)


def test_publishers_own_checksum_is_compared_too(tmp_path):
    put(tmp_path / "mirror/small/small.txt", TEXT)
    source = Source(**{**vars(SMALL), "published": f"sha256:{'0' * 64}"})
    with pytest.raises(InputError, match=r"has sha256 .*, expected 0000"):
        fetch(source, tmp_path / "cache", str(tmp_path / "mirror"))


def test_name_of_several_datasets_counts_only_in_their_folders(tmp_path, mirror):
    source = SOURCES["mnist/t10k-labels-idx1-ubyte.gz"]
    fashion = Path(mirror, "fashion_mnist", source.file).read_bytes()
    put(tmp_path / "mirror" / source.file, fashion)
    with pytest.raises(InputError, match="not in the mirror"):
        fetch(source, tmp_path / "cache", str(tmp_path / "mirror"), patience=SHORT_WAITS)
