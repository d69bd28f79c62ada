"""The plan, and the work behind the commands and the Snakefile; modules load at their first use."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedsampling.workflow import checking as checking
    from fedsampling.workflow import comparing as comparing
    from fedsampling.workflow import data_files as data_files
    from fedsampling.workflow import doctor as doctor
    from fedsampling.workflow import drawing as drawing
    from fedsampling.workflow import listing as listing
    from fedsampling.workflow import project as project
    from fedsampling.workflow import publishing as publishing
    from fedsampling.workflow import reporting as reporting
    from fedsampling.workflow import running as running
    from fedsampling.workflow import status as status


def __getattr__(name: str) -> ModuleType:
    module = f"{__name__}.{name}"
    if find_spec(module) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(module)
