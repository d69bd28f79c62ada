"""The steps of envs/Containerfile, in a root file system that debootstrap makes."""

import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.shared import ROOT

CONTAINERFILE = (ROOT / "envs/Containerfile").read_text("utf-8")
# Where this machine's package managers find packages; all of them exist on some machines only.
SETTINGS = ["/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/xdg/pip", "/etc/ssl/certs"]


def steps():
    """Commands of RUN, in order, after the one that debootstrap does."""
    text = CONTAINERFILE.replace("\\\n", " ")
    return re.findall(r"^RUN (?!apt-get)(.*)$", text, flags=re.MULTILINE)


def packages():
    (line,) = re.findall(r"apt-get install (.*?)\s*\\$", CONTAINERFILE, flags=re.MULTILINE)
    return [word for word in line.split() if not word.startswith("-")]


def copy_settings(root):
    home = Path.home()
    for name in [*SETTINGS, *(str(home / part) for part in (".config/pip", ".pip"))]:
        target = root / name.replace(str(home), "/root").lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        # Absolute links in the new root, such as those of certificates, lead to this machine's.
        if Path(name).is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(name, target, ignore_dangling_symlinks=True)
        elif Path(name).is_file():
            target.unlink(missing_ok=True)
            shutil.copy(name, target)


@contextmanager
def folders_of_packages(root):
    """Show local folders of packages, which pip's settings name, at the same place.

    The pages of an index, in a folder ``simple``, link to files beside it.
    """
    listed = subprocess.run(["pip", "config", "list"], capture_output=True, text=True).stdout
    named = map(Path, re.findall(r"(?:file://)?(/[^'\s,]+)", listed))
    folders = {path.parent if path.name == "simple" else path for path in named if path.is_dir()}
    mounted = []
    try:
        for folder in folders:
            (root / str(folder)[1:]).mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "--bind", folder, root / str(folder)[1:]], check=True)
            mounted.append(root / str(folder)[1:])
        yield
    finally:
        for folder in mounted:
            subprocess.run(["umount", folder], check=True)


@pytest.mark.long
def test_the_container_s_steps_make_an_environment_that_computes(tmp_path):
    if not shutil.which("debootstrap") or os.geteuid():
        pytest.skip("debootstrap is not installed, or this is not root")
    assert "FROM debian:bookworm-slim\n" in CONTAINERFILE
    root = tmp_path / "root"
    include = f"--include={','.join(packages())}"
    subprocess.run(
        ["debootstrap", "--variant=minbase", include, "bookworm", root],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    copy_settings(root)
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, tracked.split("\0")):
        (root / "fedsampling" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / "fedsampling" / name)

    def run(command):
        environment = {name: value for name, value in os.environ.items() if "PIP_" in name}
        environment |= {"PATH": "/fedsampling/.venv/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        environment |= {"TORCH": "cpu", "HOME": "/root", "OMP_NUM_THREADS": "1"}
        shell = ["chroot", root, "sh", "-c", f"cd /fedsampling && {command}"]
        result = subprocess.run(shell, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
        return result.stdout

    with folders_of_packages(root):
        for step in steps():
            run(step)
        assert "All checks pass." in run("fedsampling doctor")
