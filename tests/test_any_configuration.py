"""Whatever a configuration says, the command line ends in an answer or in single lines."""

import math
import random

import pytest
import yaml
from click.testing import CliRunner
from tests.test_wrong_inputs import PAPER, ROOT

from fedsampling.cli import main
from fedsampling.experiments.config import Cluster, Config

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
