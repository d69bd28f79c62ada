"""The Flower strategy in Flower's simulation agrees with our own loop."""

import json
import os
import subprocess
import sys

import pytest
from tests.helpers.small_rounds import SCHEMES, check_rounds
from tests.shared import ROOT


def test_flower_moves_the_model_as_our_own_loop_does():
    for framework in ("flwr", "ray"):
        pytest.importorskip(framework, reason="needs Flower: make test-adapters")
    process = subprocess.run(
        [sys.executable, "-m", "tests.helpers.flower_rounds"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    print(process.stderr[-3000:])  # is shown where the test fails
    lines = [line for line in process.stdout.splitlines() if line.startswith("found ")]
    assert lines
    rounds = json.loads(lines[0].removeprefix("found "))
    assert {name for name, *_ in rounds} == set(SCHEMES)
    for name, failing, played in rounds:
        check_rounds(played, name, failing)
