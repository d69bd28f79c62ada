"""Archives are unpacked into their folder, or refused in one line."""

import os

import pytest
from tests.data.packing import pack
from tests.shared import line_of

from fedsampling.data.sources import local_files
from fedsampling.data.sources.local_files import unpack

FILES = {"folder/a.txt": b"first", "b.txt": b"second" * 1000}
KINDS = ("zip", "tar", "tar.gz", "tar.bz2", "tar.xz")


def error_line(archive):
    """Return the one line with which an archive is refused."""
    return line_of(unpack, archive, archive.parent / "to")


@pytest.mark.parametrize("kind", KINDS)
class TestGenuine:
    def test_every_file_is_unpacked_unchanged(self, tmp_path, kind):
        unpack(pack(tmp_path / f"x.{kind}", FILES), tmp_path / "to")
        for name, content in FILES.items():
            assert (tmp_path / "to" / name).read_bytes() == content

    def test_corruption_gets_one_line(self, tmp_path, kind):
        archive = pack(tmp_path / f"x.{kind}", {"noise": os.urandom(1 << 17)})
        content = archive.read_bytes()
        archive.write_bytes(content[: len(content) // 2])
        assert "corrupt" in error_line(archive)

    def test_nothing_is_written_outside_the_folder(self, tmp_path, kind):
        archive = pack(tmp_path / f"x.{kind}", {"../outside.txt": b"content"})
        if kind == "zip":  # whose names lose their dots
            unpack(archive, tmp_path / "to")
        else:
            assert "outside" in error_line(archive)
        assert not (tmp_path / "outside.txt").exists()


def test_a_zip_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(local_files, "MAX_UNPACKED_BYTES", 6004)  # one byte less than FILES
    assert "to more than 6,004 bytes" in error_line(pack(tmp_path / "x.zip", FILES))
    assert not (tmp_path / "to").exists()


def test_a_bomb_that_lies_about_its_size_is_stopped(tmp_path):
    path = pack(tmp_path / "x.zip", {"member": bytes(1 << 24)})
    content = path.read_bytes().replace((1 << 24).to_bytes(4, "little"), b"\x10\0\0\0")
    path.write_bytes(content)
    assert "corrupt" in error_line(path)
