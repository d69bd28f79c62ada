"""What people get wrong in a configuration of the shipped papers: one line each, before a run."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from fedsampling.cli import main
from fedsampling.learning.training.network import gpu

ROOT = Path(__file__).parents[1]

# What stands in the file below `scale: reduced`, and what its line says of it; what is wrong in
# itself, whatever the papers are, is told by the tests of records, configuration and specs.
WRONG = [
    (
        "overrides: {fraboni2021clustered: {figure1: {seeds: 1}}}",
        "overrides.fraboni2021clustered.figure1: is a figure; use its experiment 'mnist'",
    ),
    (
        "overrides: {harshvardhan2025latency: {femnist: {seeds: 1}}}",
        "overrides.harshvardhan2025latency.femnist: not at reduced scale; change the scale, or "
        "leave it out",
    ),
    # what it says: all of fraboni2021clustered
    ("mnist: {work: {batch: 100000000}}", "mnist: memory: at least 8,000 GB needed, …"),
    # a sampler that compares all pairs of clients
    (
        "mnist: {dataset: {partition: {clients_per_label: 100000}}, "
        "samplers: {algorithm2-code: null}}",
        "mnist.samplers.algorithm2.name: clustered_similarity needs …",
    ),
    # what has no effect
    (
        "alpha: {dataset: {partition: {alpha: 3}}}",
        "alpha.dataset.partition.alpha: each case sets its own value; override it below cases",
    ),
]


# Of all of fraboni2021clustered's `mnist`, what its data say, which are here.
DISAGREEING = [
    (
        "model: {name: lstm}",
        "model.name: lstm requires sequences, but the dataset's samples have …",
    ),
    ("dataset: {fraction: 1.0e-7}", "fraction: 1e-07 of the images leaves none; give more"),
    ("work: {batch: 100000}", "work.batch: 100000 exceeds the samples of every client; must be …"),
    ("dataset: {partition: {clients_per_label: 1000}}", "clients_per_label: 1000 clients …"),
]


@pytest.mark.parametrize(("content", "line"), DISAGREEING)
def test_settings_that_contradict_the_data_are_one_line(content, line, tmp_path):
    wrong = f"{{fraboni2021clustered: {{mnist: {{{content}}}}}}}"
    asked = "scale: quick\ndata: embedded\npapers: [fraboni2021clustered]\n"
    result = complaint(f"{asked}overrides: {wrong}\n", tmp_path)
    begins(
        result, f"fedsampling: {tmp_path}/mine.yaml: overrides.fraboni2021clustered.mnist.{line}"
    )


@pytest.mark.parametrize(("content", "line"), WRONG, ids=[content for content, _ in WRONG])
def test_an_error_is_one_line_with_file_and_key(content, line, tmp_path):
    if content.startswith(("mnist", "work", "alpha")):
        content = (
            f"papers: [fraboni2021clustered]\noverrides: {{fraboni2021clustered: {{{content}}}}}"
        )
        line = f"overrides.fraboni2021clustered.{line}"
    said = complaint(f"scale: reduced\n{content}\n", tmp_path)
    begins(said, f"fedsampling: {tmp_path}/mine.yaml: {line}")


def test_a_missing_gpu_is_an_error_unless_a_cluster_has_one(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "available", lambda: False)
    asked = "scale: quick\ndata: embedded\npapers: [rizk2022importance]\ndevice: cuda\n"
    line = complaint(asked, tmp_path)
    begins(
        line, f"fedsampling: {tmp_path}/mine.yaml: device: 'cuda' needs a GPU, and PyTorch sees…"
    )
    path = tmp_path / "cluster.yaml"
    path.write_text(f"{asked}cluster: {{gpu: gres}}\n")
    result = CliRunner().invoke(main, ["check", "--config", str(path), "--papers", ROOT / "papers"])
    assert result.exit_code == 0, result.output


@pytest.mark.usefixtures("forget_own_files")  # a copied paper defines the kinds of its original
class TestPapers:
    """`check` reports errors that a report or a figure would only meet later."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        copied = tmp_path / "mine2026"
        shutil.copytree(ROOT / "papers" / "rizk2022importance", copied)
        for name in ("paper.yaml", "paper.bib"):
            text = (copied / name).read_text(encoding="utf-8")
            (copied / name).write_text(text.replace("rizk2022importance", "mine2026"))
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
        result = complaint(f"scale: quick\ndata: embedded\npapers: ['{folder}']\n", tmp_path)
        assert line in result


def test_an_option_of_the_plan_without_effect_is_refused():
    result = CliRunner().invoke(main, ["plan", "--gpus", "3"])
    assert result.exit_code == 2
    assert "--gpus: no effect without --slurm; add it, or remove --gpus" in result.stderr


def complaint(content: str, folder: Path) -> str:
    """Return the one line that `check` says of a configuration."""
    path = folder / "mine.yaml"
    path.write_text(content)
    result = CliRunner().invoke(main, ["check", "--config", str(path), "--papers", ROOT / "papers"])
    assert result.exit_code == 2, result.output
    (output,) = result.stderr.splitlines()
    return output


def begins(said: str, line: str) -> None:
    start, cut, _ = line.partition("…")
    assert (said[: len(start)] if cut else said) == start
