"""README's installation of a wheel works in an empty environment with the newest packages."""

import os
import re
import subprocess
import sys

import pytest
from tests.shared import ROOT

README = (ROOT / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Run commands in a working folder of a wheel; return their output."""
    base = tmp_path_factory.mktemp("wheel")
    build = ["uv", "build", "--quiet", "--no-build-isolation", "--python", sys.executable]
    subprocess.run([*build, "--out-dir", base], cwd=ROOT, check=True)  # as `make dist`
    (wheel,) = base.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", base / "environment"], check=True)
    folder = base / "mine"
    path = f"{base / 'environment/bin'}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)

    def run(*command, cwd=folder, **variables):
        result = subprocess.run(
            command, cwd=cwd, env=environment | variables, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
        return result.stdout

    (torch,) = re.findall(r"^torch==\S+", (ROOT / "envs/torch-cpu.lock").read_text(), re.MULTILINE)
    pip = ["python", "-m", "pip", "install", "--quiet"]
    if subprocess.run([*pip, torch], env=environment).returncode:
        pytest.skip("no index in reach has PyTorch's CPU build for this Python")
    run(*pip, wheel, cwd=base)
    run("fedsampling", "init", folder, cwd=base)
    return run


@pytest.mark.long
def test_all_papers_are_drawn_with_the_verdicts_of_the_readme(project):
    project("snakemake", "--cores", "2")
    (sentence,) = re.findall(r"^Of \d+ experimental claims in [^:]+: [^;]+;", README, re.MULTILINE)
    assert sentence in project("fedsampling", "verdicts")


@pytest.mark.long
def test_the_readme_s_example_trains_and_plots(project, mirror, tmp_path):
    (example,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    printed = project("python", "-c", example, cwd=tmp_path, FEDSAMPLING_MIRROR=mirror)
    assert "clustered_size" in printed
    assert (tmp_path / "accuracy.pdf").is_file()
