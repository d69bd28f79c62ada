"""The plan, and the work behind the commands and the Snakefile; modules load at their first use."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from fedsampling.base.inputs import observe

if TYPE_CHECKING:
    from . import check as check
    from . import check_sampler as check_sampler
    from . import cite as cite
    from . import comparing as comparing
    from . import decide as decide
    from . import doctor as doctor
    from . import draw as draw
    from . import estimate as estimate
    from . import export as export
    from . import fetch_data as fetch_data
    from . import findings as findings
    from . import init as init
    from . import judge as judge
    from . import listing as listing
    from . import project as project
    from . import publish as publish
    from . import recheck as recheck
    from . import register as register
    from . import report as report
    from . import run as run
    from . import schema as schema
    from . import show as show
    from . import status as status
    from . import tune as tune
    from . import verdicts as verdicts
    from . import verify_data as verify_data

observe()  # before this package's own files are read


def __getattr__(name: str) -> ModuleType:
    module = f"{__name__}.{name}"
    if find_spec(module) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(module)
