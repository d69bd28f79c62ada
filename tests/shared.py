"""What tests of all folders share: where the project's files are, and errors as lines."""

from pathlib import Path

import pytest

from fedsampling.base.errors import InputError

ROOT = Path(__file__).parents[1]
PAPERS = ROOT / "papers"


def lines_of(call, *arguments, **settings):
    """Return the lines of the error in which a call must end."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **settings)
    return [*caught.value.lines]


def line_of(call, *arguments, **settings):
    """Return the only line of the error in which a call must end."""
    (line,) = lines_of(call, *arguments, **settings)
    return line
