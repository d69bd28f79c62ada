"""The content of users' objects follows users' code, but not installed libraries."""

import importlib
import sys

import pytest

from fedsampling.base.contents import content_of


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_content_does_not_follow_installed_libraries(folder, tmp_path, monkeypatch):
    file = tmp_path / folder / "installed_module.py"
    file.parent.mkdir()
    file.write_text("def double(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(file.parent)
    module = importlib.import_module(file.stem)
    assert content_of(module.double) == "double"
    del sys.modules[file.stem]
