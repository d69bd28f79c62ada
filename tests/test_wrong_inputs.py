"""What people get wrong in a configuration of the shipped papers: one line each, before a run."""

import shutil
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from tests.processes import complaint_of

from fedsampling.cli import main

ROOT = Path(__file__).parents[1]
PAPER, CLUSTERED = "rizk2022importance", "fraboni2021clustered"
LATENCY = "harshvardhan2025latency"
QUICK, REDUCED = {"scale": "quick", "data": "embedded"}, {"scale": "reduced"}


def check(content, folder):
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(content))
    return CliRunner().invoke(main, ["check", "--config", str(path), "--papers", ROOT / "papers"])


def complaint(content, folder):
    """Return what `check` says of a configuration, in one line."""
    return complaint_of(check(content, folder))


# Errors that do not depend on the papers are in the tests of records, configuration and specs.
@pytest.mark.parametrize(
    ("scale", "paper", "override", "line"),
    [
        (
            REDUCED,
            CLUSTERED,
            "figure1: {seeds: 1}",
            "figure1: is a figure; use its experiment 'mnist'",
        ),
        (REDUCED, LATENCY, "links_model: {seeds: 1}", "links_model: not at reduced scale; change"),
        # what has no effect, and what takes too much memory
        (
            REDUCED,
            CLUSTERED,
            "alpha: {dataset: {partition: {alpha: 3}}}",
            "alpha.dataset.partition.alpha: each case sets its own value; override it below cases",
        ),
        (QUICK, CLUSTERED, "mnist: {work: {batch: 100000000000}}", "mnist.memory: not"),
        # what contradicts the data
        (QUICK, CLUSTERED, "mnist: {model: {name: lstm}}", "mnist.model.name: lstm requires seque"),
        (QUICK, CLUSTERED, "mnist: {dataset: {fraction: 1.0e-7}}", "mnist.fraction: 1e-07 of the"),
        (QUICK, CLUSTERED, "mnist: {work: {batch: 100000}}", "mnist.work.batch: 100000 exceeds th"),
        (
            QUICK,
            CLUSTERED,
            "mnist: {dataset: {partition: {clients_per_label: 1000}}}",
            "mnist.clients_per_label: 1000 clients ",
        ),
    ],
)
def test_an_error_is_one_line_with_the_key(scale, paper, override, line, tmp_path):
    overrides = {paper: yaml.safe_load(f"{{{override}}}")}
    result = complaint({**scale, "papers": [paper], "overrides": overrides}, tmp_path)
    assert result.startswith(f"overrides.{paper}.{line}")


def test_a_missing_gpu_is_an_error_unless_a_cluster_has_one(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    content = {**QUICK, "papers": [PAPER], "device": "cuda"}
    assert complaint(content, tmp_path).startswith("device: 'cuda' needs a GPU, and PyTorch sees")
    result = check({**content, "cluster": {"gpu": "gres"}}, tmp_path)
    assert result.exit_code == 0, result.output


@pytest.mark.usefixtures("forget_own_files")  # a copied paper defines the kinds of its original
class TestPapers:
    """`check` reports errors that a report or a figure would only meet later."""

    @pytest.fixture
    def folder(self, tmp_path, forget_own_files):
        copied = tmp_path / "mine2026"
        shutil.copytree(ROOT / "papers" / PAPER, copied)
        for name in ("paper.yaml", "paper.bib"):
            text = (copied / name).read_text(encoding="utf-8")
            (copied / name).write_text(text.replace(PAPER, "mine2026"))
        return copied

    @pytest.mark.parametrize(
        ("file", "old", "new", "line"),
        [
            ("paper.bib", "{mine2026,", "{other,", "paper.bib: holds entries ['other']; must be "),
            ("figures.py", "def figure1(", "def figure9(", "no figures*.py has a function 'f"),
            ("claims.py", "def ", "def def ", "claims.py: is not Python (invalid syntax"),
            ("reported.csv", "id,", '"id,', "reported.csv: cannot be read (unexpected end"),
            ("paper.yaml", "  regression:", f"  {'r' * 300}:", "experiments: 'rrrrrrrrrr"),
        ],
    )
    def test_it_is_one_line(self, folder, tmp_path, file, old, new, line):
        text = (folder / file).read_text(encoding="utf-8")
        assert old in text
        (folder / file).write_text(text.replace(old, new, 1), encoding="utf-8")
        assert line in complaint({**QUICK, "papers": [str(folder)]}, tmp_path)
