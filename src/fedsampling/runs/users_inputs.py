"""Inputs of users' code.

The package's own code reads nothing but data that are compared with a digest in the settings.
Users' samplers, models and run kinds may read anything: it goes into the records of their runs.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from fedsampling.base import inputs
from fedsampling.experiments.fingerprints import PAPERS
from fedsampling.experiments.specs import Job, users_files
from fedsampling.samplers.users.files import read_at_load

_records: list[inputs.Recording] = []  # of all simulations of this process


@contextmanager
def recording_of_users(observed: bool) -> Iterator[None]:
    """Record what is read during the ``with`` block, if users' code takes part in it."""
    with inputs.recording() if observed else nullcontext() as record:
        yield
    if record:
        _records.append(record)


def users_code(job: Job) -> bool:
    """Whether users' code takes part in the runs of a job."""
    return bool(users_files(job.simulation)) or job.kind.__module__.startswith(f"{PAPERS}.")


def read_by_users(job: Job) -> dict[str, str]:
    """Return the inputs that users' code read in this process, also while it was imported.

    All that it read so far counts, because what one run reads may be remembered for the next one.
    """
    at_load = read_at_load() if users_files(job.simulation) else {}
    return inputs.merged(at_load, *(record.states() for record in _records))
