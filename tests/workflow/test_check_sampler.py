"""`fedsampling check-sampler`: every error in a user's file is one line."""

import pytest
from click.testing import CliRunner
from tests.processes import complaint_of
from tests.shared import line_of

from fedsampling.cli import main
from fedsampling.samplers.checks.check import check_sampler, from_words

SCHEME = '''"""Uniform sampling."""
from dataclasses import dataclass
import numpy as np
from fedsampling import Scheme, Slots
from fedsampling.samplers.protocol.draws import distinct

@dataclass
class Memory:
    rounds: int

class Mine(Scheme, name="mine"):
    """m clients, all alike."""

    m: int = 4
    {settings}

    def initial_state(self, setup):
        {initial_state}

    def learn(self, state, slots, view):
        {learn}

    def select(self, state, view, rng):
        {select}
        return Slots.stack(distinct(len(view.p), rng.uniforms("clients", self.m)))

    def weigh(self, state, slots, view, rng):
        {weigh}
        return len(view.p) / self.m * view.p[slots.client]
'''


def sampler_file(tmp_path, **parts):
    bodies = {"initial_state": "pass", "learn": "return state", "select": "pass", "weigh": "pass"}
    settings = {"settings": "", **bodies, **parts}
    file = tmp_path / "mine.py"
    file.write_text(SCHEME.format(**settings))
    return file


def checked(tmp_path, *options, **parts):
    file = sampler_file(tmp_path, **parts)
    return CliRunner().invoke(main, ["check-sampler", str(file), *options], catch_exceptions=False)


def test_a_state_that_is_a_dataclass_passes_the_check(tmp_path):
    learn = "state.rounds += 1; return state"
    result = checked(tmp_path, initial_state="return Memory(0)", learn=learn)
    assert result.exit_code == 0, result.stderr
    assert "60 clients" in result.stdout


def test_wrong_settings_on_the_command_line_are_one_line(tmp_path, forget_own_files):
    assert complaint_of(checked(tmp_path, "m=-1"))  # found while the sampler plays
    file = str(sampler_file(tmp_path))
    for words in ("m=", "m=abc", "m=[4]", "m=4.5", "m", "m=4 x=1", "name=uniform"):
        assert line_of(from_words, file, words.split())


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (
            {"select": "return Slots.stack([[1, 2, 3]])"},
            "equal clients: select returned 3 slots of run 0 and none of 399 other runs; select",
        ),
        (
            {"settings": "unbiased = False", "weigh": "return np.full(len(slots), 50.0)"},
            "equal clients: weights: the mean of Σω is 200; expected 0.1 to 10",
        ),
        (
            {"initial_state": "return {'k': 0}"},
            "equal clients: sampler mine: initial_state returned a dict; must be a dataclass or",
        ),
        (
            {"initial_state": "return Memory(0)", "learn": "state.rounds += 1"},
            "equal clients: sampler mine, round 0: learn returned None; must return the state",
        ),
        (
            {"initial_state": "self.k = 0"},
            "equal clients: sampler mine: mine.py:18, in initial_state: AttributeError: self.k",
        ),
        # A file that cannot be loaded.
        ({"settings": "c = 3"}, ":11: class Mine: 'c' has no type; write 'c: int = 3' to make it"),
        ({"settings": "unbiased: bool = False"}, ":11: class Mine: unbiased cannot be a setting"),
        ({"settings": "g: np.random.Generator"}, ":11: class Mine: no setting can hold a numpy."),
        ({"settings": "import nothing_like_it"}, ":15, in Mine: ModuleNotFoundError: No module"),
        ({"learn": "k = = 0"}, ": line 21: SyntaxError: invalid syntax; fix the file"),
        ({"settings": "raise SystemExit(3)"}, ":15, in Mine: SystemExit(3)"),
    ],
)
def test_an_error_is_one_line_with_its_root_cause(tmp_path, parts, text, forget_own_files):
    file = sampler_file(tmp_path, **parts)
    line = line_of(lambda: check_sampler(*from_words(str(file), []), runs=400))
    assert line.startswith(f"{file}{text}" if text.startswith(":") else text)


@pytest.mark.parametrize(
    ("select", "text"),
    [
        ("import os; os._exit(3)", ": the check ended with status 3 and no result"),
        ("raise BaseException('odd')", ": the check ended with status 1 (BaseException: odd); "),
        ("import ctypes; ctypes.string_at(0)", ": the check ended with SIGSEGV, in select ("),
    ],
)
def test_a_sampler_that_ends_its_process_is_one_line(tmp_path, select, text):
    line = complaint_of(checked(tmp_path, select=select))
    assert line.startswith(f"{tmp_path / 'mine.py'}{text}")


@pytest.mark.parametrize("seconds", ["inf", "nan", "1e10"])
def test_a_time_limit_that_is_none_is_refused(tmp_path, seconds):
    line = complaint_of(checked(tmp_path, "--timeout", seconds))
    assert line == f"--timeout {float(seconds):g}: invalid; must be at most 86400, or 0"


def test_an_endless_loop_is_located(tmp_path):
    loop = "import itertools; sum(itertools.count())"
    text = complaint_of(checked(tmp_path, "--timeout", "10", select=loop))
    assert text.startswith(f"{tmp_path / 'mine.py'}: no result after 10 s, in select (")
    assert "mine.py:24); look for an endless loop" in text
