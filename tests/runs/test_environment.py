"""What a run records of its surroundings: commit, device, and the libraries that compute."""

import os
import re
import subprocess

import pytest

from fedsampling.experiments.config import PRODUCTS_VARIABLE, Config
from fedsampling.learning.models import products
from fedsampling.runs import environment


def checkout(folder, *files):
    """Create a Git repository with one commit of `files`."""
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("", encoding="utf-8")
    author = ["-c", "user.name=Author", "-c", "user.email=author@example.org"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "Add files"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True)


@pytest.mark.parametrize(
    ("edited", "commit"),
    [
        (None, "[0-9a-f]{12}"),
        ("published_runs/index.json", "[0-9a-f]{12}"),  # as after "fedsampling publish"
        ("src/module.py", "[0-9a-f]{12}-dirty"),
        ("papers/paper.yaml", "[0-9a-f]{12}-dirty"),
        ("src/installed.py", "None"),  # a package installed in another checkout
    ],
)
def test_a_run_names_its_commit_and_whether_code_or_papers_differed(
    tmp_path, monkeypatch, edited, commit
):
    checkout(tmp_path, "src/module.py", "papers/paper.yaml", "published_runs/index.json")
    module = "src/installed.py" if commit == "None" else "src/module.py"
    monkeypatch.setattr(environment, "__file__", str(tmp_path / module))
    if edited:
        (tmp_path / edited).write_text("changed", encoding="utf-8")
    assert re.fullmatch(commit, str(environment._commit()))


def test_the_configured_library_of_products_is_chosen_over_the_variables(monkeypatch):
    monkeypatch.setenv(PRODUCTS_VARIABLE, "mkl")
    for configured, chosen in (("auto", "mkl"), ("onednn", "onednn")):
        environment.choose_products(Config(products=configured))
        assert os.environ[PRODUCTS_VARIABLE] == chosen


def test_runs_of_networks_record_the_library_of_products():
    assert environment.environment(networks=True)["kernels"]["products"] == products.library()
    assert "products" not in environment.environment(networks=False)["kernels"]
