"""One device per job, by locks that die with their process; without any real device."""

import os
import stat
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import pytest

from fedsampling.base.errors import InputError
from fedsampling.runs.cluster import devices
from fedsampling.runs.cluster.devices import VISIBLE, assigned, claimed, lock_folder, visible

HOLDER = """
import sys, time
from pathlib import Path
from fedsampling.runs.cluster.devices import claimed
with claimed(sys.argv[2:], Path(sys.argv[1])) as device:
    print(device, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def private_devices(tmp_path, monkeypatch):
    """Give this test devices of its own."""
    for name in (VISIBLE, "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(devices, "lock_folder", lambda: tmp_path)
    return tmp_path


class TestLockFolder:
    """Where others of this machine can neither hold nor replace a lock."""

    @pytest.fixture(autouse=True)
    def places(self, tmp_path, monkeypatch):
        monkeypatch.setattr(devices.tempfile, "gettempdir", lambda: str(tmp_path))
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)

    def test_the_lock_folder_is_in_the_users_runtime_directory(self, tmp_path, monkeypatch):
        (tmp_path / "runtime").mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
        assert lock_folder() == tmp_path / "runtime" / "fedsampling-devices"
        assert stat.S_IMODE(lock_folder().stat().st_mode) == 0o700

    def test_without_a_runtime_directory_the_lock_folder_is_in_the_temporary_directory(
        self, tmp_path
    ):
        assert lock_folder() == tmp_path / f"fedsampling-devices-{os.getuid()}"
        assert stat.S_IMODE(lock_folder().stat().st_mode) == 0o700

    def test_a_runtime_directory_that_others_may_enter_is_not_used(self, tmp_path, monkeypatch):
        (tmp_path / "runtime").mkdir()
        (tmp_path / "runtime").chmod(0o755)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
        assert lock_folder().parent == tmp_path

    @pytest.mark.parametrize("before", ["open", "link", "file", "another's"])
    def test_a_lock_folder_that_others_can_write_is_refused(self, tmp_path, monkeypatch, before):
        folder = tmp_path / f"fedsampling-devices-{os.getuid()}"
        if before == "link":
            (tmp_path / "elsewhere").mkdir(mode=0o700)
            folder.symlink_to(tmp_path / "elsewhere")
        elif before == "file":
            folder.touch()
        else:
            folder.mkdir(mode=0o700)
            folder.chmod(0o777 if before == "open" else 0o700)
        if before == "another's":
            folder.rename(tmp_path / f"fedsampling-devices-{os.getuid() + 1}")
            monkeypatch.setattr(devices.os, "getuid", lambda: folder.parent.stat().st_uid + 1)
        with pytest.raises(InputError, match=r"must be your private folder \(mode 0700\)"):
            lock_folder()


def test_each_job_gets_another_device(tmp_path):
    names = ["0", "1", "GPU-3f2a"]
    with ExitStack() as stack:
        claims = [stack.enter_context(claimed(names, tmp_path)) for _ in names]
    assert claims == names


def test_a_job_waits_until_a_device_is_free(tmp_path):
    calls = []
    first = claimed(["0"], tmp_path)
    first.__enter__()
    threading.Timer(0.4, lambda: first.__exit__(None, None, None)).start()
    before = time.monotonic()
    with claimed(["0"], tmp_path, lambda: calls.append(None), poll=0.02) as device:
        assert device == "0"
        assert time.monotonic() - before > 0.3
    assert len(calls) == 1


def test_a_killed_process_releases_its_device(tmp_path):
    command = [sys.executable, "-c", HOLDER, tmp_path, "0", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "0\n"
        with claimed(["0", "1"], tmp_path) as device:
            assert device == "1"
        process.kill()
        process.wait()
        with claimed(["0", "1"], tmp_path) as device:
            assert device == "0"


def test_a_job_sees_only_its_device_and_the_others_afterwards(monkeypatch):
    monkeypatch.setenv(VISIBLE, "2,3")
    with assigned(True) as device:
        assert device == os.environ[VISIBLE] == "2"
    assert os.environ[VISIBLE] == "2,3"


def test_a_job_that_cannot_use_a_device_takes_none(tmp_path, monkeypatch):
    monkeypatch.setenv(VISIBLE, "0")
    with assigned(False) as device:
        assert device is None
    assert list(tmp_path.iterdir()) == []


def test_a_device_assigned_by_a_scheduler_is_not_locked(tmp_path, monkeypatch):
    """With cgroups every job of a node calls its device 0."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv(VISIBLE, "0")
    with assigned(True) as first, assigned(True) as second:
        assert first == second == "0"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("variable", "expected"),
    [("0,2", ["0", "2"]), ("", []), ("-1", []), ("GPU-3f2a", ["GPU-3f2a"])],
)
def test_the_environment_variable_limits_the_devices(monkeypatch, variable, expected):
    monkeypatch.setenv(VISIBLE, variable)
    assert visible() == expected
