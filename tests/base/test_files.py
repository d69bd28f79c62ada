"""Atomic writes: a reader sees the old file or the new one; errors are one line."""

import json
import os
import stat

import pytest
from tests.shared import line_of

from fedsampling.base.errors import InputError
from fedsampling.base.files import (
    check_writable,
    read_record,
    replacing,
    write_json,
    write_record,
    write_text,
)


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_target_changes_only_at_the_end(tmp_path):
    path = tmp_path / "sub" / "a.csv"
    write_text(path, "old")
    with replacing(path) as temporary:
        temporary.write_text("half")
        assert path.read_text() == "old"
        assert temporary.parent == path.parent
        assert temporary.suffix == ".csv"
    assert path.read_text() == "half"
    assert listed(path.parent) == ["a.csv"]


def test_the_content_is_on_the_disk_before_it_is_in_place(tmp_path, monkeypatch):
    path, calls = tmp_path / "a.txt", []
    flush, place = os.fsync, os.replace

    def fsync(handle):
        calls.append(os.fstat(handle).st_size)
        flush(handle)

    def replace(old, new):
        calls.append("replace")
        place(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    write_text(path, "whole")
    assert calls == [len("whole"), "replace"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_in_the_middle_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def write_half():
        with replacing(path) as temporary:
            temporary.write_text("ha")
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_text() == "old"
    assert listed(tmp_path) == ["a.txt"]


def test_a_full_disk_leaves_the_old_file_and_is_a_one_line_error(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    line = f"{path}: cannot be written (No space left on device); choose a "
    assert line_of(write_text, path, "new").startswith(line)
    assert path.read_text() == "old"
    assert listed(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_written_files_have_ordinary_permissions(tmp_path, mask):
    old = os.umask(mask)
    try:
        write_text(tmp_path / "a", "x")
        assert os.umask(mask) == mask  # and the mask is as it was
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~mask


def test_an_unwritable_folder_is_a_one_line_error(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder.txt").mkdir()
    reasons = {"file/results/a.txt": "Not a directory", "folder.txt": "Is a directory"}
    for name, reason in reasons.items():
        with pytest.raises(InputError, match=rf"cannot be written \({reason}\); choose a writable"):
            write_text(tmp_path / name, "x")
    assert listed(tmp_path) == ["file", "folder.txt"]


class TestCheckWritable:
    def test_a_folder_that_can_be_created_is_not_created(self, tmp_path):
        check_writable(tmp_path / "a" / "b")
        assert listed(tmp_path) == []

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            ("file/results", "{}/file is not a folder"),
            ("link", "{}/link is not a folder"),
            ("another_users", "not writable"),
        ],
    )
    def test_an_unusable_folder_is_a_one_line_error(self, tmp_path, monkeypatch, name, reason):
        (tmp_path / "file").touch()
        (tmp_path / "link").symlink_to(tmp_path / "gone")
        if name == "another_users":
            monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
        line = f"{tmp_path / name}: cannot be written ({reason.format(tmp_path)});"
        assert line_of(check_writable, tmp_path / name).startswith(line)


def test_equal_content_is_equal_bytes(tmp_path):
    write_json(tmp_path / "a", {"b": 1, "a": [1.5, "é"]})
    write_json(tmp_path / "b", {"a": [1.5, "é"], "b": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a", float("nan"))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_record_is_read_back_in_its_order(tmp_path):
    record = {"b": [1.5, "é", None], "a": {"2": True, "1": (1, 2)}}
    write_record(tmp_path / "a", record)
    result = read_record(tmp_path / "a")
    assert json.dumps(result) == json.dumps(record)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 99_999, "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"a": 1}', "checksum differs"),
        (b'{"a": 1, "sha256": null}', "checksum differs"),
    ],
)
def test_an_invalid_record_is_a_one_line_error(tmp_path, content, reason):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    line = f"{path}: {reason}; delete the file and rerun the command"
    assert line_of(read_record, path) == line
