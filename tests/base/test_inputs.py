"""What a step reads is recorded, with a state that shows whether it has changed."""

import importlib
import os
import sys

import numpy as np
import pytest

from fedsampling.base import input_states, inputs
from fedsampling.base.code import helpers, with_helpers

GUEST = """
import json, os
from pathlib import Path
import numpy as np

HERE = Path(__file__).parent


def read():
    json.loads((HERE / "values.json").read_text())
    np.load(HERE / "values.npy")
    os.listdir(HERE / "listed")
    os.environ.get("A_LEVEL"), os.getenv("B_LEVEL"), "C_LEVEL" in os.environ
    (HERE / "written.txt").write_text("1")
    (HERE / "written.txt").read_text()
"""


@pytest.fixture
def guest(tmp_path, monkeypatch):
    """Return a user's module that reads files, and its folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest_of_a_test.py").write_text(GUEST)
    (tmp_path / "values.json").write_text("[1]")
    np.save(tmp_path / "values.npy", np.ones(2))
    (tmp_path / "listed").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("guest_of_a_test")
    del sys.modules["guest_of_a_test"]


def test_files_folders_and_variables_that_users_code_reads_are_recorded(guest):
    with inputs.recording() as record:
        guest.read()
    variables = {f"variable {name}_LEVEL" for name in "ABC"}
    files = {"file values.json", "file values.npy", "folder listed"}
    assert record.states().keys() == variables | files


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda root: (root / "values.json").write_text("[2]"), "file values.json"),
        (lambda root: (root / "values.npy").unlink(), "file values.npy"),
        (lambda root: (root / "listed" / "new").touch(), "folder listed"),
        (lambda root: os.environ.__setitem__("A_LEVEL", "1"), "variable A_LEVEL"),
    ],
)
def test_a_change_of_an_input_is_seen_and_nothing_else(guest, tmp_path, monkeypatch, change, key):
    monkeypatch.setenv("A_LEVEL", "0")
    with inputs.recording() as record:
        guest.read()
    states = record.states()
    assert input_states.changed(states) == []
    change(tmp_path)
    assert input_states.changed(states) == [key]


def test_the_same_size_and_date_do_not_hide_a_change(guest, tmp_path):
    with inputs.recording() as record:
        guest.read()
    states, path = record.states(), tmp_path / "values.json"
    status = path.stat()
    path.write_text("[2]")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert input_states.changed(states) == ["file values.json"]


def test_a_file_that_changes_while_it_is_read_counts_as_changed(guest, tmp_path):
    with inputs.recording() as record:
        guest.read()
        os.truncate(tmp_path / "values.json", 1)  # as another process would
    assert input_states.changed(record.states()) == ["file values.json"]


def test_comments_of_code_do_not_matter(tmp_path):
    path = tmp_path / "code.py"
    path.write_text("X = 1\n")
    states = input_states.states_of([path])
    path.write_text("# A comment.\nX = 1\n")
    assert input_states.changed(states) == []
    path.write_text("X = 2\n")
    assert input_states.changed(states) == [*states]


def test_helpers_of_a_file_are_found_to_any_depth(tmp_path):
    texts = {
        "mine.py": "import importlib, numpy, fedsampling, one\nfrom pack.sub import deep\n"
        "importlib.import_module('literal')\n",
        "one.py": "def f():\n    import two\n",
        "two.py": "import three\n",
        "three.py": "",
        "literal.py": "",
        "unrelated.py": "",
        "pack/__init__.py": "",
        "pack/sub/__init__.py": "",
        "pack/sub/deep.py": "from ..near import X\n",
        "pack/near.py": "X = 1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    mine = tmp_path / "mine.py"
    found = {path.relative_to(tmp_path).as_posix() for path in helpers(mine).values()}
    assert found == texts.keys() - {"mine.py", "unrelated.py"}
    before = with_helpers(mine, "0" * 16)
    (tmp_path / "pack" / "near.py").write_text("X = 2\n")
    assert with_helpers(mine, "0" * 16) != before


def test_a_file_without_helpers_keeps_its_digest(tmp_path):
    (tmp_path / "mine.py").write_text("import numpy\nfrom fedsampling import Sampler\n")
    assert with_helpers(tmp_path / "mine.py", "abc") == "abc"


def test_comparing_the_package_with_its_state_uses_none_of_its_files():
    used = inputs.loaded_code()
    input_states.package_files()
    assert inputs.loaded_code() == used
