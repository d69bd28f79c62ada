"""Errors for runs that need more memory, before and while they run."""

import numpy as np
import pytest

from fedsampling.base import memory
from fedsampling.base.errors import InputError


def test_a_run_is_refused_only_if_it_needs_more_than_the_machine_has():
    assert memory.available() > 1e8
    assert memory.lacking(memory.available() - 1) == ""
    line = memory.lacking(3e15)
    assert line.startswith("memory: at least 3,000,000 GB needed, ")
    assert "give a smaller model or batch" in line


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_out_of_memory_errors_of_libraries_are_one_line(library):
    torch = pytest.importorskip("torch")
    ask = {"numpy": np.ones, "torch": torch.ones}[library]
    little = r"^memory: not enough for this run; give"
    with pytest.raises(InputError, match=little), memory.in_a_line():
        ask((10**7, 10**7))
