"""What people get wrong in a configuration of the shipped papers: one line each, before a run."""

import math
import random
import shutil
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from tests.processes import complaint_of

from fedsampling.cli import main
from fedsampling.experiments.config import Cluster, Config

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
        (REDUCED, CLUSTERED, "figure1: {seeds: 1}", "figure1: no such experiment; known: "),
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
    def folder(self, tmp_path):
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


# Whatever a configuration says, the command line ends in an answer or in single lines.


VALUES = [
    *(None, True, False, 0, 1, -1, 2.5, -0.0, 1e300, math.inf, -math.inf, math.nan, 2**31, 2**63),
    *(10**4299, "", " ", "200", "1e9", "a\0b", "~", "~nobody/x", "..", "/", "/dev/null", "\u202e"),
    *("x" * 300, "a/" * 3000, "http://", "https://[", "$(touch X)", "{paper}", "<results>"),
    "é\ud7ff",
    *([], {}, [None], {"": None}, {1: 2}, [[]], [1, 1], ["a", "a"], {"name": "md"}, {"name": []}),
    *(PAPER, [PAPER], [PAPER, PAPER], "quick", "paper", "embedded", "cuda", "gpu", "results"),
]
SETTINGS = ["rounds", "seeds", "every", "cases", "samplers", "dataset", "kind", "settings", "title"]
TEXTS = [
    *("&a [*a]", "[" * 3000, "9" * 5000, "0x_", "2026-13-01", "!!python/name:os.system", "!!int x"),
    *("{<<: 1}", "? [a]", "'", "*b", "- a", "\t", "%", "a: b: c", '"\\ud800"', '"\\0"', "1:99:99"),
]


@pytest.mark.parametrize(
    "count", [25, pytest.param(500, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_any_configuration_is_valid_or_gives_one_line_errors(tmp_path, monkeypatch, count):
    monkeypatch.chdir(ROOT)
    rng = random.Random(28)
    path = tmp_path / "random.yaml"
    statuses = set()
    for _ in range(count):
        path.write_text(text(rng), encoding="utf-8")
        options = ["--config", str(path), "--results", str(tmp_path / "results")]
        result = CliRunner().invoke(main, ["check", *options])
        assert isinstance(result.exception, SystemExit | None), (path.read_text(), result.exception)
        statuses.add(result.exit_code)
        if result.exit_code:
            lines = result.stderr.splitlines()
            assert lines
            assert all(line.startswith("fedsampling: ") for line in lines), result.stderr
            assert max(map(len, lines)) < 1000
    assert statuses == {0, 2}


def text(rng):
    """Return a configuration with a few values, keys or characters that nobody expects."""
    content = {"scale": "quick", "data": "embedded", "papers": [PAPER]}
    for _ in range(rng.randrange(3)):
        value = rng.choice(VALUES)
        kind = rng.randrange(4)
        if kind == 0:
            content[rng.choice([*Config.model_fields])] = value
        elif kind == 1:
            content["cluster"] = {rng.choice([*Cluster.model_fields]): value}
        else:
            experiment = rng.choice(["regression", "few", "classification", "nothing"])
            changes = {rng.choice(SETTINGS): value} if kind == 2 else value
            content["overrides"] = {PAPER: {experiment: changes}}
    written = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    if rng.random() < 0.2:
        written += f"{rng.choice([*Config.model_fields, 'other'])}: {rng.choice(TEXTS)}\n"
    if rng.random() < 0.1:
        at = rng.randrange(len(written))
        written = written[:at] + chr(rng.randrange(1, 0x2FF)) + written[at + 1 :]
    return written
