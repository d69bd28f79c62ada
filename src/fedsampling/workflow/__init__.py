"""The plan, and the work behind the commands and the Snakefile; modules load at their first use."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from fedsampling.base.inputs import observe

if TYPE_CHECKING:
    from . import check as check
    from . import check_sampler as check_sampler
    from . import comparing as comparing
    from . import data_files as data_files
    from . import deciding as deciding
    from . import doctor as doctor
    from . import drawing as drawing
    from . import estimate as estimate
    from . import judging as judging
    from . import listing as listing
    from . import project as project
    from . import publishing as publishing
    from . import registering as registering
    from . import reporting as reporting
    from . import running as running
    from . import status as status

observe()  # before this package's own files are read


def __getattr__(name: str) -> ModuleType:
    module = f"{__name__}.{name}"
    if find_spec(module) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(module)
