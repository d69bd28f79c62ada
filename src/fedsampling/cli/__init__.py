"""The command line: one thin command for each rule of the workflow, and some for inspection.

Each step of the pipeline also runs by hand.  Heavy imports wait for their first use: ``--help`` and
the workflow's calls must start quickly.  Each module adds its commands to the group.
"""

from fedsampling.cli.group import SECTIONS as SECTIONS
from fedsampling.cli.group import main as main

from . import datasets as datasets
from . import maintain as maintain
from . import own_work as own_work
from . import prepare as prepare
from . import results as results
from . import steps as steps
