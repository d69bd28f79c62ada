"""What people get wrong in a configuration of the shipped papers: one line each, before a run."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from fedsampling.cli import main

ROOT = Path(__file__).parents[1]

# Lines below `scale: reduced`, and their errors. Errors that do not depend on the papers are in
# the tests of records, configuration and specs.
WRONG = [
    (
        "overrides: {fraboni2021clustered: {figure1: {seeds: 1}}}",
        "overrides.fraboni2021clustered.figure1: is a figure; use its experiment 'mnist'",
    ),
    (
        "overrides: {harshvardhan2025latency: {links_model: {seeds: 1}}}",
        "overrides.harshvardhan2025latency.links_model: not at reduced scale; change the scale, or "
        "leave it out",
    ),
    # values that are too large: all of fraboni2021clustered
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


# Changes of fraboni2021clustered's `mnist` that contradict its data.
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
    content = "scale: quick\ndata: embedded\npapers: [fraboni2021clustered]\n"
    result = complaint(f"{content}overrides: {wrong}\n", tmp_path)
    begins(result, tmp_path, f"overrides.fraboni2021clustered.mnist.{line}")


@pytest.mark.parametrize(("content", "line"), WRONG, ids=[content for content, _ in WRONG])
def test_an_error_is_one_line_with_file_and_key(content, line, tmp_path):
    if content.startswith(("mnist", "work", "alpha")):
        content = (
            f"papers: [fraboni2021clustered]\noverrides: {{fraboni2021clustered: {{{content}}}}}"
        )
        line = f"overrides.fraboni2021clustered.{line}"
    elif content.startswith("overrides"):
        content += "\npapers: [fraboni2021clustered, harshvardhan2025latency]"
    begins(complaint(f"scale: reduced\n{content}\n", tmp_path), tmp_path, line)


def test_a_missing_gpu_is_an_error_unless_a_cluster_has_one(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    content = "scale: quick\ndata: embedded\npapers: [rizk2022importance]\ndevice: cuda\n"
    line = "device: 'cuda' needs a GPU, and PyTorch sees…"
    begins(complaint(content, tmp_path), tmp_path, line)
    path = tmp_path / "cluster.yaml"
    path.write_text(f"{content}cluster: {{gpu: gres}}\n")
    result = CliRunner().invoke(main, ["check", "--config", str(path), "--papers", ROOT / "papers"])
    assert result.exit_code == 0, result.output


@pytest.mark.usefixtures("forget_own_files")  # a copied paper defines the kinds of its original
class TestPapers:
    """`check` reports errors that a report or a figure would only meet later."""

    @pytest.fixture
    def folder(self, tmp_path):
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


def complaint(content, folder):
    """Return the one line that `check` says of a configuration."""
    path = folder / "mine.yaml"
    path.write_text(content)
    result = CliRunner().invoke(main, ["check", "--config", str(path), "--papers", ROOT / "papers"])
    assert result.exit_code == 2, result.output
    (output,) = result.stderr.splitlines()
    return output


def begins(printed, folder, line):
    start, cut, _ = f"fedsampling: {folder}/mine.yaml: {line}".partition("…")
    assert (printed[: len(start)] if cut else printed) == start
