"""Leases of runs: holding, waiting, and taking over."""

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pandas as pd
import pytest
from filelock import SoftFileLease

from fedsampling.runs import leases, store
from fedsampling.runs.leases import hold_leases

START = """
import sys, time
from pathlib import Path
from fedsampling.runs import leases
leases.POLL_SECONDS = 0.001
"""
HOLDER = """
with leases.hold_leases([Path(name) for name in sys.argv[1:]]):
    print("holds", flush=True)
    time.sleep(60)
"""
COUNTING = """
counter = Path(sys.argv[1])
for _ in range(20):
    with leases.hold_leases([counter.with_suffix(f".{name}") for name in sys.argv[2]]):
        n = int(counter.read_text())
        time.sleep(0.001)
        counter.write_text(str(n + 1))
"""


@pytest.fixture
def lease(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "POLL_SECONDS", 0.02)
    return tmp_path / "run.lock"


def owner(path):
    return SoftFileLease(path).pid


def elsewhere(path):
    """Write the lease of a process on another machine."""
    with hold_leases([path]):
        lines = path.read_text().splitlines()
    lines = ["host=node7" if line.startswith("host=") else line for line in lines]
    path.write_text("\n".join(lines) + "\n")


@contextmanager
def held_elsewhere(*paths):
    """Hold leases in another process."""
    with subprocess.Popen(
        [sys.executable, "-c", START + HOLDER, *paths], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "holds\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_released_lease_is_removed_even_after_an_error(lease):
    with hold_leases([lease]):
        assert owner(lease) == os.getpid()
    assert list(lease.parent.iterdir()) == []
    with pytest.raises(ZeroDivisionError), hold_leases([lease]):
        _ = 1 / 0
    assert list(lease.parent.iterdir()) == []


def test_one_process_holds_a_lease_and_overlapping_sets_do_not_deadlock(tmp_path):
    counter = tmp_path / "counter"
    counter.write_text("0")
    command = [sys.executable, "-c", START + COUNTING, counter]
    processes = [subprocess.Popen([*command, order]) for order in ("abc", "cab", "bca", "b")]
    assert [process.wait(300) for process in processes] == [0] * 4
    assert counter.read_text() == "80"


def test_a_second_process_waits_and_names_the_owner(lease):
    calls = []
    with held_elsewhere(lease) as process:
        # One that nobody has waited for yet counts as alive.
        threading.Timer(0.5, lambda: (process.kill(), process.wait())).start()
        before = time.monotonic()
        with hold_leases([lease], calls.append):
            assert time.monotonic() - before > 0.3
    assert len(calls) == 1
    assert calls[0].startswith(f"process {process.pid} on ")


def test_a_killed_owners_lease_is_taken_over_at_once(lease):
    with held_elsewhere(lease) as process:
        process.kill()
        process.wait()
        assert lease.exists()
        before = time.monotonic()
        with hold_leases([lease]):
            assert time.monotonic() - before < 5
            assert owner(lease) == os.getpid()


def test_a_lease_of_another_machine_is_taken_over_after_its_time(lease, monkeypatch):
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.6)
    monkeypatch.setattr(leases, "HEARTBEAT_SECONDS", 0.1)
    elsewhere(lease)
    over = threading.Event()

    def touch():
        while not over.wait(0.1) and lease.exists():
            os.utime(lease)

    toucher = threading.Thread(target=touch)
    toucher.start()
    threading.Timer(1.5, over.set).start()
    before = time.monotonic()
    calls = []
    with hold_leases([lease], calls.append):
        assert 1.9 < time.monotonic() - before < 10
        assert owner(lease) == os.getpid()
    toucher.join()
    assert calls == [f"process {os.getpid()} on node7"]


def test_an_owner_refreshes_all_of_its_leases(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "HEARTBEAT_SECONDS", 0.05)
    paths = [tmp_path / "a.lock", tmp_path / "b.lock"]
    with hold_leases(paths):
        for path in paths:
            os.utime(path, (0, 0))
        time.sleep(0.5)
        assert all(path.stat().st_mtime > 0 for path in paths)


def test_an_empty_lease_is_taken_over(lease, monkeypatch):
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.2)
    monkeypatch.setattr(leases, "HEARTBEAT_SECONDS", 0.1)
    lease.touch()
    calls = []
    with hold_leases([lease], calls.append):
        assert owner(lease) == os.getpid()
    assert calls == ["an unknown process"]


def test_a_process_that_lost_a_lease_does_not_release_it(lease):
    with hold_leases([lease]):
        lease.unlink()  # this process was frozen, and another took over
        elsewhere(lease)
    assert "host=node7" in lease.read_text()


def test_new_files_and_leases_have_the_permissions_of_a_shared_store(tmp_path):
    shared = tmp_path / "store"
    shared.mkdir()
    shared.chmod(0o2775)
    before = os.umask(0o077)
    try:
        lease = store.lease_of(shared, "ab" + "0" * 18, "c1")
        with hold_leases([lease]):
            assert stat.S_IMODE(lease.stat().st_mode) == leases.LEASE_MODE
        table = pd.DataFrame({"at": [0], "metric": ["a"], "value": [1.0]})
        path = store.save(shared, table, {"hash": "ab" + "0" * 18, "code": "c1"})
    finally:
        os.umask(before)
    assert stat.S_IMODE(lease.parent.stat().st_mode) == 0o2775
    assert stat.S_IMODE(path.stat().st_mode) == 0o664


def test_leases_of_one_owner_expire_together(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "LEASE_SECONDS", 1.0)
    monkeypatch.setattr(leases, "HEARTBEAT_SECONDS", 0.2)
    monkeypatch.setattr(leases, "POLL_SECONDS", 0.02)
    paths = [tmp_path / f"{number:02}.lock" for number in range(20)]
    for path in paths:
        elsewhere(path)
    before, calls = time.monotonic(), []
    with hold_leases(paths, calls.append):
        assert time.monotonic() - before < 10  # not 20 times the second
    assert calls == [f"process {os.getpid()} on node7"]


def test_a_stopped_owner_of_this_machine_is_not_waited_for(tmp_path):
    paths = [tmp_path / f"{number}.lock" for number in range(5)]
    with held_elsewhere(*paths) as process:
        process.send_signal(signal.SIGSTOP)
        before = time.monotonic()
        with hold_leases(paths):
            assert time.monotonic() - before < leases.LEASE_SECONDS / 4
            assert {owner(path) for path in paths} == {os.getpid()}
