"""One cluster for all tests, and an ordinary user who works on it."""

import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import cluster
import pytest
from project import Project, User

USER = "fedsampling"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.slurm)


@pytest.fixture(scope="session")
def slurm() -> Iterator[cluster.Cluster]:
    if reason := cluster.obstacle():
        pytest.skip(f"no SLURM: {reason}")
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/var/tmp"))
    with cluster.running(folder) as found:
        yield found
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def user() -> User:
    """Return a user who is not root, with a Python that they can run; else who runs the tests."""
    try:
        pwd.getpwnam(USER)
    except KeyError:
        subprocess.run(["useradd", "--system", "--user-group", USER], check=False)
    # The tests' Python may be in root's home; another of the same version reads the same packages.
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = sysconfig.get_path("purelib")
    for python in (sys.executable, shutil.which(version, path="/usr/local/bin:/usr/bin")):
        try:
            subprocess.run(
                [python or "", "-c", "import snakemake, pyarrow"],
                env={"PYTHONPATH": packages, "HOME": "/nonexistent"},
                cwd="/",
                user=USER,
                group=USER,
                extra_groups=[],
                check=True,
                capture_output=True,
            )
        except (KeyError, OSError, subprocess.SubprocessError):
            continue
        return User(USER, str(python), packages)
    warnings.warn(f"{USER} can run no Python with Snakemake: tests run as root", stacklevel=1)
    return User(None, sys.executable, packages)


@pytest.fixture(scope="session")
def project(slurm: cluster.Cluster, user: User) -> Iterator[Callable[..., Project]]:
    """Make projects in a folder that all users can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="fedsampling-", dir="/var/tmp"))
    folder.chmod(0o755)

    made: list[Project] = []

    def make(name: str, where: cluster.Cluster = slurm) -> Project:
        made.append(Project.made(folder / name, where.environment, user))
        return made[-1]

    yield make
    for each in made:
        each.end()
    slurm.cancel()
    if "FEDSAMPLING_KEEP" not in os.environ:
        shutil.rmtree(folder, ignore_errors=True)
