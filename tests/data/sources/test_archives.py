import io
import os
import stat
import tarfile
import zipfile
from contextlib import suppress

import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.data.sources.archives import Bounds, unpack

ROOMY = Bounds(members=100, size=1 << 20)
FILES = {"folder/a.txt": b"first", "b.txt": b"second" * 1000}
KINDS = ("zip", "tar", "tar.gz", "tar.bz2", "tar.xz")


def pack(path, files):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    else:
        mode = path.suffix[1:] if path.suffix != ".tar" else ""
        with tarfile.open(path, f"w:{mode}") as archive:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return path


def pack_tar(path, **fields):
    info = tarfile.TarInfo("member")
    for name, value in fields.items():
        setattr(info, name, value)
    with tarfile.open(path, "w") as archive:
        archive.addfile(info)
    return path


def error_line(archive, bounds=ROOMY):
    """Return the one line with which an archive is refused, having left nothing outside."""
    folder = archive.parent / "inner" / "folder"
    before = {path for path in archive.parent.rglob("*") if folder not in path.parents}
    with pytest.raises(InputError) as caught:
        unpack(archive, folder, bounds)
    after = {path for path in archive.parent.rglob("*") if folder not in path.parents}
    assert after - before <= {folder, folder.parent}
    assert len(caught.value.lines) == 1
    return caught.value.lines[0]


@pytest.mark.parametrize("kind", KINDS)
class TestGenuine:
    def test_every_file_is_unpacked_unchanged(self, tmp_path, kind):
        paths = unpack(pack(tmp_path / f"x.{kind}", FILES), tmp_path / "to", ROOMY)
        assert {name: path.read_bytes() for name, path in paths.items()} == FILES
        assert set(paths.values()) == {tmp_path / "to" / name for name in FILES}

    def test_only_selected_members_are_unpacked_and_counted(self, tmp_path, kind):
        archive = pack(tmp_path / f"x.{kind}", FILES)
        paths = unpack(archive, tmp_path / "to", Bounds(2, 5), lambda name: name.endswith("a.txt"))
        assert list(paths) == ["folder/a.txt"]
        assert not (tmp_path / "to/b.txt").exists()

    @pytest.mark.parametrize("bounds", [Bounds(1, 1 << 20), Bounds(100, 6004)])
    def test_more_than_allowed_is_rejected(self, tmp_path, kind, bounds):
        assert " more than " in error_line(pack(tmp_path / f"x.{kind}", FILES), bounds)

    def test_corruption_gets_one_line(self, tmp_path, kind):
        archive = pack(tmp_path / f"x.{kind}", {"noise": os.urandom(1 << 17)})
        content = archive.read_bytes()
        archive.write_bytes(content[: len(content) // 2])
        assert "corrupt" in error_line(archive)


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_of_a_tar_are_rejected(tmp_path, kind):
    archive = pack_tar(tmp_path / "x.tar", type=kind, linkname="../secret")
    assert "'member' is a link or device" in error_line(archive)


def test_permissions_of_a_tar_are_ignored(tmp_path):
    archive = pack_tar(tmp_path / "x.tar", mode=0o6777)
    (path,) = unpack(archive, tmp_path / "to", ROOMY).values()
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode


def test_a_link_in_a_zip_becomes_a_file(tmp_path):
    info = zipfile.ZipInfo("member")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(info, "../secret")
    assert not unpack(tmp_path / "x.zip", tmp_path / "to", ROOMY)["member"].is_symlink()


def test_encrypted_member_is_rejected(tmp_path):
    path = pack(tmp_path / "x.zip", {"member": b"content"})
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1  # the flag in the central directory
    path.write_bytes(content)
    assert "is encrypted" in error_line(path)


def test_bomb_that_lies_about_its_size_is_stopped(tmp_path):
    path = pack(tmp_path / "x.zip", {"member": bytes(1 << 24)})
    content = path.read_bytes().replace((1 << 24).to_bytes(4, "little"), b"\x10\0\0\0")
    path.write_bytes(content)
    assert "corrupt" in error_line(path)


def test_an_existing_link_in_the_folder_is_not_followed(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "to").mkdir()
    (tmp_path / "to/folder").symlink_to(tmp_path / "outside")
    with pytest.raises(InputError, match="is outside"):
        unpack(pack(tmp_path / "x.tar", FILES), tmp_path / "to", ROOMY)
    assert not list((tmp_path / "outside").iterdir())


def test_folder_entries_are_skipped(tmp_path):
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for name in ("./", "./folder"):
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE
            archive.addfile(info)
    assert unpack(tmp_path / "x.tar", tmp_path / "to", ROOMY) == {}


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *((name, "is outside") for name in ("../out.txt", "a/../../out.txt", "/out.txt", "..")),
        ("", "is a file without a name"),
        (".", "is a file without a name"),
        ("a/..", "is a file without a name"),
        ("x" * 300, "a member's name is unusable (File name too long)"),
        ("/".join(["x" * 200] * 30), "a member's name is unusable (File name too long)"),
    ],
)
def test_names_that_leave_the_folder_or_are_unusable_are_rejected(tmp_path, kind, name, reason):
    assert reason in error_line(pack(tmp_path / f"x.{kind}", {name: b"content"}))


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_file_within_a_file_is_rejected(tmp_path, kind):
    archive = pack(tmp_path / f"x.{kind}", {"a": b"file", "a/b": b"within it"})
    assert "a member's name is unusable" in error_line(archive)


NAMES = ("", ".", "..", "/", "a", "a/b", "a/../..", "x" * 300, "~", "a\nb", "\udc80", "-rf", "a/.")
TYPES = (*(tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE), b"V", b"x", b"S", b"\xff")


@pytest.mark.parametrize(
    "count", [60, pytest.param(2000, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_any_tar_is_unpacked_into_its_folder_or_rejected_in_one_line(tmp_path, count):
    """Random names, kinds of members and damaged bytes."""
    rng = np.random.default_rng(28)
    for number in range(count):
        inner = tmp_path / str(number)
        inner.mkdir()
        with tarfile.open(inner / "x.tar", "w") as archive:
            for _ in range(rng.integers(1, 4)):
                info = tarfile.TarInfo(NAMES[rng.integers(len(NAMES))])
                info.type = TYPES[rng.integers(len(TYPES))]
                info.linkname, content = "../../secret", rng.bytes(rng.integers(0, 700))
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        content = bytearray((inner / "x.tar").read_bytes())
        for at in rng.integers(len(content), size=rng.integers(0, 6)):
            content[at] = rng.integers(256)
        (inner / "x.tar").write_bytes(content)
        before = set(tmp_path.iterdir())
        with suppress(InputError):
            unpack(inner / "x.tar", inner / "to", ROOMY)
        assert {path.name for path in inner.iterdir()} <= {"x.tar", "to"}
        assert set(tmp_path.iterdir()) == before
