"""What `make` installs: every package at one version, every file with a hash."""

import re
import subprocess
import tomllib

import pytest
from tests.shared import ROOT

LOCKS = sorted(path for path in (ROOT / "envs").iterdir() if path.suffix in (".lock", ".txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def requirements(lock):
    """One requirement with its hashes each, without comments."""
    text = re.sub(r"^#.*\n", "", lock.read_text("utf-8"), flags=re.MULTILINE)
    return text.replace("\\\n", "").splitlines()


def named(lock):
    """Versions by name."""
    matches = (re.match(r"([a-z0-9-]+)==([^ ;]+)", line) for line in requirements(lock))
    return {match[1]: match[2] for match in matches if match}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_requirement_is_pinned_and_has_hashes(lock):
    pinned = r"[a-z0-9-]+==[\w.+]+( ; [^#]*?)?( +--hash=sha256:[0-9a-f]{64})+ *"
    assert requirements(lock)
    assert [line for line in requirements(lock) if not re.fullmatch(pinned, line)] == []
    assert "://" not in lock.read_text("utf-8")


def test_the_lock_has_every_required_package():
    extras = PROJECT["project"]["optional-dependencies"]
    required = {
        re.split(r"[>=\[]", requirement)[0].lower()
        for requirement in [*PROJECT["project"]["dependencies"], *extras["dev"]]
    }
    assert required <= named(ROOT / "envs/requirements.lock").keys()


def test_the_cpu_build_of_pytorch_is_of_the_locked_version():
    (cpu,) = requirements(ROOT / "envs/torch-cpu.lock")
    version = named(ROOT / "envs/requirements.lock")["torch"]
    assert cpu.startswith(f"torch=={version}+cpu ")


@pytest.mark.parametrize("cpu", [True, False], ids=["with a CPU build", "without"])
def test_cuda_is_installed_only_with_the_index_s_pytorch(tmp_path, cpu):
    python = tmp_path / "python"  # notes what it is asked to install
    python.write_text(
        f"""#!/bin/sh
        for last; do :; done
        case $last in *torch-cpu.lock) {"true" if cpu else "exit 1"} ;; esac
        case $* in *--require-hashes*) cat "$last" >> {tmp_path}/installed ;; esac
        """
    )
    python.chmod(0o755)
    lock = ROOT / "envs/requirements.lock"
    subprocess.run(["sh", ROOT / "envs/install.sh", lock, python], check=True, capture_output=True)
    installed = (tmp_path / "installed").read_text("utf-8")
    assert installed.startswith("setuptools==")  # builds the packages that have no wheel
    assert ("torch==2.13.0+cpu" in installed) == cpu
    assert ("nvidia-cublas==" in installed) != cpu
    assert ("\ntriton==" in installed) != cpu
    assert "\ntorchvision==" in installed
