"""What the Makefile gives to its commands."""

import os
import subprocess

import pytest
from tests.shared import ROOT


@pytest.mark.parametrize("home", ["/proc/none", None])
def test_caches_are_in_the_home_folder_if_it_can_be_written(home, tmp_path):
    dropped = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    environment["HOME"] = home or str(tmp_path)
    result = subprocess.run(
        ["make", "--print-data-base", "--dry-run", "help"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    within = f"XDG_CACHE_HOME := {ROOT}/.snakemake/cache\n"
    assert (within in result.stdout) == bool(home)
    assert (tmp_path / ".cache").is_dir() != bool(home)
