"""One cluster for all tests, and an ordinary user who works on it."""

import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from pathlib import Path

import pytest
from tests.slurm import cluster
from tests.slurm.project import Project, User

USER = "fedsampling"
created = []  # users that were not there before


def pytest_collection_modifyitems(items):
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.slurm)


def pytest_sessionfinish():
    for name in reversed(created):
        subprocess.run(["userdel", name], check=False, capture_output=True)


@pytest.fixture(scope="session")
def slurm():
    if reason := cluster.obstacle():
        pytest.skip(f"no SLURM: {reason}")
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/var/tmp"))
    with cluster.running(folder) as started:
        yield started
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def user():
    """Return a user who is not root, with a Python that they can run; else who runs the tests."""
    return ordinary(USER, "--user-group")


@pytest.fixture(scope="session")
def colleague(user):
    """Return another user of the same group."""
    if user.name is None:
        pytest.skip("no ordinary users here")
    return ordinary(f"{USER}2", "--gid", USER)


def ordinary(name, *options):
    try:
        pwd.getpwnam(name)
    except KeyError:
        if subprocess.run(["useradd", "--system", *options, name], check=False).returncode == 0:
            created.append(name)
    # The tests' Python may be in root's home; another of the same version reads the same packages.
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = sysconfig.get_path("purelib")
    for python in (sys.executable, shutil.which(version, path="/usr/local/bin:/usr/bin")):
        candidate = User(name, str(python), packages)
        try:
            subprocess.run(
                [python or "", "-c", "import snakemake, pyarrow"],
                env={"PYTHONPATH": packages, "HOME": "/nonexistent"},
                cwd="/",
                check=True,
                capture_output=True,
                **candidate.identity,
            )
        except (KeyError, OSError, subprocess.SubprocessError):
            continue
        return candidate
    warnings.warn(f"{name} can run no Python with Snakemake: tests run as root", stacklevel=1)
    return User(None, sys.executable, packages)


@pytest.fixture(scope="session")
def project(slurm, user):
    """Make projects in a folder that all users can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="fedsampling-", dir="/var/tmp"))
    folder.chmod(0o755)

    projects = []

    def make(name, where=slurm, who=user):
        projects.append(Project(folder / name, where.environment, who))
        return projects[-1]

    yield make
    for created_project in projects:
        created_project.end()
    slurm.cancel()
    if "FEDSAMPLING_KEEP" not in os.environ:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def local_files(project):
    """Return what a run without SLURM makes of the toy's behaviours, without its pauses."""

    def made_files(name, behaviours):
        local = project(f"{name}-local")
        local.environment["TOY_SECONDS"] = "0"
        local.play(behaviours)
        local.snakemake(slurm=False)
        return local.results()

    return made_files
