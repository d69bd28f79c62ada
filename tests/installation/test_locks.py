"""What `make` installs: every package at one version, every file with a hash."""

import re
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


def test_the_cpu_builds_of_pytorch_are_of_the_locked_versions():
    locked = named(ROOT / "envs/requirements.lock")
    cpu_builds = named(ROOT / "envs/torch-cpu.lock")
    assert cpu_builds == {name: f"{locked[name]}+cpu" for name in ("torch", "torchvision")}


def test_the_cpu_builds_have_hashes_for_each_python_on_x86_and_arm():
    for requirement in requirements(ROOT / "envs/torch-cpu.lock"):
        assert len(set(re.findall("sha256:([0-9a-f]+)", requirement))) >= 6
