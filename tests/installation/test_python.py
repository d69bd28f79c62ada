"""The Python that `make` takes, and the one line if there is none (envs/python.sh)."""

import os
import shutil
import subprocess
import sys

import pytest
from tests.shared import ROOT

FAKE = """#!/bin/sh
[ "$1" = -c ] && exit
exec {python} -c "
import platform, sys, sysconfig
{changes}
sys.argv = sys.argv[1:]
exec(open(sys.argv[0]).read())" "$@"
"""

INTEL_MAC = """
sys.platform, platform.machine = 'darwin', lambda: 'x86_64'
sysconfig.get_config_var = lambda name: None"""
OLD_MAC = """
sys.platform, platform.machine = 'darwin', lambda: 'arm64'
platform.mac_ver = lambda: ('13.6', '', '')
sysconfig.get_config_var = lambda name: None"""


@pytest.fixture
def commands(tmp_path):
    """A folder of commands, for a PATH on which there is no Python."""
    for name in ("bash", "sh", "sed", "dirname", "uname"):
        (tmp_path / name).symlink_to(shutil.which(name))
    return tmp_path


def add(folder, name, changes=""):
    """Add a Python that takes itself for another one."""
    (folder / name).write_text(FAKE.format(python=sys.executable, changes=changes))
    (folder / name).chmod(0o755)


def version(minor):
    return f"sys.version_info = (3, {minor}, 1); platform.python_version = lambda: '3.{minor}.1'"


def choose(folder, **variables):
    command = ["sh", ROOT / "envs/python.sh"]
    environment = {"PATH": str(folder), **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_python3_is_taken_if_it_is_suitable(commands):
    add(commands, "python3", version(12))
    add(commands, "python3.13", version(13))
    assert choose(commands).stdout == "python3\n"


@pytest.mark.parametrize("minor", [10, 14])
def test_the_newest_suitable_python_replaces_an_unsuitable_python3(commands, minor):
    add(commands, "python3", version(minor))
    add(commands, "python3.11", version(11))
    add(commands, "python3.12", version(12))
    assert choose(commands).stdout == "python3.12\n"


def test_a_shim_that_does_not_start_counts_as_missing(commands):
    (commands / "python3").write_text("#!/bin/sh\necho 'pyenv: no such version' >&2; exit 127\n")
    (commands / "python3").chmod(0o755)
    add(commands, "python3.11", version(11))
    assert choose(commands).stdout == "python3.11\n"


def test_a_python_that_the_user_names_is_not_replaced(commands):
    add(commands, "python3", version(12))
    add(commands, "python3.10", version(10))
    result = choose(commands, PYTHON="python3.10")
    assert result.returncode
    assert "not 3.11 to 3.13" in result.stderr
    assert not result.stdout
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (version(10), "is CPython 3.10.1, not 3.11 to 3.13"),
        (version(14), "is CPython 3.14.1, not 3.11 to 3.13"),
        ("platform.python_implementation = lambda: 'PyPy'", "not a 64-bit CPython"),
        ("sys.maxsize = 2**31 - 1", "not a 64-bit CPython"),
        ("sysconfig.get_config_var = lambda name: 1", "without the global lock"),
        (INTEL_MAC, "for Apple silicon"),
        (OLD_MAC, "on macOS 13.6; PyTorch needs macOS 14"),
        ("sys.platform = 'linux'; platform.libc_ver = lambda: ('', '')", "without glibc"),
        ("sys.modules['ensurepip'] = None", "apt install python"),
    ],
)
def test_an_unsuitable_python_is_one_line_before_anything_is_installed(commands, changes, reason):
    add(commands, "python3", changes)
    result = choose(commands)
    assert result.returncode
    assert not result.stdout
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1


def test_uv_brings_a_python(commands):
    add(commands, "python3", version(10))
    (commands / "uv").write_text("#!/bin/sh\n[ $2 = find ] && echo /uv/python3.13\n")
    (commands / "uv").chmod(0o755)
    assert choose(commands).stdout == "/uv/python3.13\n"


def test_windows_without_wsl_is_one_line(commands):
    (commands / "uname").unlink()
    (commands / "uname").write_text("#!/bin/sh\necho MINGW64_NT-10.0\n")
    (commands / "uname").chmod(0o755)
    result = choose(commands)
    assert result.returncode
    assert "WSL2" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    command = ["sh", ROOT / "envs/create.sh", tmp_path / "file/.venv", "envs/requirements.lock"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode
    assert result.stderr.endswith("cannot be written; work in a copy of the repository\n")
    assert result.stderr.count("\n") == 1


def test_this_python_is_suitable():
    result = choose(os.environ["PATH"], PYTHON=sys.executable)
    assert result.stdout == f"{sys.executable}\n"
