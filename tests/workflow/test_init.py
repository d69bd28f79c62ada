"""Working folders, created from a checkout and from a wheel."""

import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from tests.processes import run_python
from tests.shared import ROOT

from fedsampling.base.errors import InputError
from fedsampling.workflow.init import create_working_folder, project_files

TOP = sorted(project_files())
MAKE = re.compile(r"(?:`|^    )make [a-z-]+", re.MULTILINE)  # a command of the repository


def run(*command, folder, package):
    return run_python("-m", *command, cwd=folder, PYTHONPATH=str(package))


def test_a_new_folder_has_what_the_pipeline_needs(tmp_path):
    create_working_folder(tmp_path / "new")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == TOP
    with pytest.raises(InputError, match=f"^{tmp_path}: is not empty; name a new folder$"):
        create_working_folder(tmp_path)
    no_folder = r"cannot be written \(Not a directory\); name another folder$"
    with pytest.raises(InputError, match=no_folder):
        create_working_folder(tmp_path / "new" / "Snakefile")


def test_the_wheel_contains_what_the_pipeline_needs(tmp_path):
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in (*TOP, "src", "pyproject.toml"):
        origin = ROOT / name
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        if origin.is_dir():
            shutil.copytree(origin, checkout / name, ignore=ignored)
        else:
            shutil.copy(origin, checkout / name)
    pip = ["pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", tmp_path]
    run(*pip, ".", folder=checkout, package=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size < 25e6
    package = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as content:
        content.extractall(package)
    shutil.rmtree(checkout)

    project = tmp_path / "project"
    run("fedsampling.cli", "init", project, folder=tmp_path, package=package)
    pages = [project / "README.md", *(project / "docs").glob("*.md")]
    commands = {page.name: MAKE.findall(page.read_text("utf-8")) for page in pages}
    assert not [name for name, calls in commands.items() if calls]
    only = ["--config", "papers=[fraboni2022general]"]
    planned = run("snakemake", "-n", *only, folder=project, package=package)
    assert "fraboni2022general/table1" in planned
    shape = "import fedsampling as fs; print(fs.summary('fraboni2022general', 'weights').shape)"
    assert run_python("-c", shape, cwd=tmp_path, PYTHONPATH=str(package)).startswith("(")
    environment = os.environ | {"PYTHONPATH": str(package)}
    code = [sys.executable, "-m", "fedsampling.cli", "schema", "--check"]
    result = subprocess.run(code, cwd=project, env=environment, capture_output=True, text=True)
    assert result.returncode == 2
    assert "not available in an installed package; run it in the repository" in result.stderr
    copied_into_an_environment_of_conda(tmp_path / "conda", project, package)


def copied_into_an_environment_of_conda(environment, project, package):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    outer = environment.with_name("outer")
    outer.mkdir()
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "pip.py").write_text("")  # installs nothing
    (outer / "fedsampling").write_text(f"#!{sys.executable}\n")
    (outer / "fedsampling").chmod(0o755)
    variables = {
        "PYTHONPATH": str(package),
        "CONDA_PREFIX": str(environment),
        "PATH": os.pathsep.join((str(environment / "bin"), str(outer), os.environ["PATH"])),
    }
    command = ["bash", "envs/fedsampling.post-deploy.sh"]
    subprocess.run(command, cwd=project, env=os.environ | variables, check=True)
    (copy,) = environment.glob("lib/python*/site-packages/fedsampling/cli")
    assert copy.parent.with_name("fedsampling-0.1.0.dist-info").is_dir()
    verb = (environment / "bin/fedsampling").read_text().splitlines()
    assert verb[0] == f"#!{environment / 'bin/python'}"
