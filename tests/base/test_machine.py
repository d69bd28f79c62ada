"""What is read from the operating system, on systems that this one stands in for."""

import os
import platform
import subprocess
import sys
from types import SimpleNamespace

import pytest

from fedsampling.base import machine
from fedsampling.base.errors import InputError

X86 = "processor\t: 0\nmodel name\t: AMD EPYC 7763\nflags\t\t: avx2 fma\n\nprocessor\t: 1\n"
ARM = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"


@pytest.fixture
def commands(monkeypatch):
    """Output of commands by their words."""
    outputs = {}
    monkeypatch.setattr(machine, "output", lambda *words: outputs.get(words, ""))
    return outputs


def test_linux_names_the_processor(monkeypatch, tmp_path, commands):
    (tmp_path / "cpuinfo").write_text(X86)
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(sys, "platform", "linux")
    assert machine.processor() == "AMD EPYC 7763"
    assert machine.instructions().endswith("flags\t\t: avx2 fma")


@pytest.mark.parametrize("listed", ["Architecture: aarch64\nModel name:   Neoverse-N1\n", ""])
def test_linux_on_arm_names_the_processor(monkeypatch, tmp_path, commands, listed):
    (tmp_path / "cpuinfo").write_text(ARM)
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    commands["lscpu",] = listed
    assert machine.processor() == ("Neoverse-N1" if listed else "aarch64")


def test_macos_names_the_processor_and_counts_memory_in_bytes(monkeypatch, tmp_path, commands):
    commands["sysctl", "-n", "machdep.cpu.brand_string"] = "Apple M3\n"
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "none")
    kilobytes = machine.peak_megabytes()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert machine.processor() == "Apple M3"
    assert machine.instructions() == ""
    assert machine.peak_megabytes() == pytest.approx(kilobytes / 1024, rel=0.5)


def test_windows_has_no_memory_figures_and_no_pipeline(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "resource", None)
    monkeypatch.delattr(os, "sysconf")
    assert machine.peak_megabytes() != machine.peak_megabytes()  # NaN
    assert machine.total_memory() is None
    with pytest.raises(InputError, match="WSL2"):
        machine.check_platform()


def test_a_missing_or_failing_command_has_no_output(monkeypatch):
    assert machine.output("no-such-command") == ""
    failed = SimpleNamespace(returncode=1, stdout="half")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    assert machine.output("sysctl") == ""


def test_training_in_python_works_without_posix(tmp_path):
    code = """
import asyncio, os, signal, sys, warnings  # asyncio's own imports differ on Windows
warnings.simplefilter("ignore")  # of filelock, without fcntl
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
del os.sysconf, os.getuid, os.sched_getaffinity, signal.SIGUSR1
import numpy as np
import fedsampling as fs
x = np.random.default_rng(0).normal(size=(80, 3))
data = fs.federated(x, x[:, 0] > 0, clients=np.arange(80) % 4, test_share=0.2)
work = {"model": "mlp", "steps": 2, "batch": 10, "step": 0.1, "rounds": 2}
first = fs.train(data, fs.scheme("md", m=2), checkpoint="here", **work)
assert first.equals(fs.train(data, fs.scheme("md", m=2), **work))
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
