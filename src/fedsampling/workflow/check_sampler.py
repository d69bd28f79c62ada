"""Check of a sampler in a separate process, with a time limit: ``fedsampling check-sampler``.

If the sampler loops forever, calls ``sys.exit`` or crashes, only that process ends.  The error is
one line.
"""

import re
import signal
import subprocess
import sys
from collections.abc import Sequence

from fedsampling.base.errors import InputError

# The time limit is for the sampler: it begins after imports, which take long on a busy machine.
_CHECK = """import faulthandler, sys
from fedsampling.cli import main
import fedsampling.samplers.checks.check, fedsampling.samplers.users.one_run
faulthandler.dump_traceback_later(float(sys.argv.pop(1)), exit=True)
main()"""
MAX_SECONDS = 86_400
_CALL = re.compile(r'^  File "(.+)", line (\d+) in (\w+)$', re.MULTILINE)


def check_in_subprocess(
    seconds: float, name: str, options: Sequence[str], failures: str | None = None
) -> int:
    """Check a sampler, by name or file and settings such as ``m=4``; return the exit status.

    `failures`: text of this setting, as in YAML.
    """
    if not 0 < seconds <= MAX_SECONDS:  # also NaN
        raise InputError(f"--timeout {seconds:g}: invalid; must be at most {MAX_SECONDS}, or 0")
    python = [sys.executable, "-P", "-X", "faulthandler", "-c", _CHECK, str(seconds)]
    with_failures = [] if failures is None else [f"--failures={failures}"]
    command = [*python, "check-sampler", "--timeout", "0", *with_failures, "--", name, *options]
    process = subprocess.run(command, capture_output=True, text=True)
    status, err = process.returncode, process.stderr
    if status == 1 and "Timeout (" in err:
        raise InputError(
            f"{name}: no result after {seconds:g} s{_place(err, name)}; look for an endless loop, "
            "put code that trains below if __name__ == '__main__', "
            f"or use --timeout {2 * seconds:g}"
        )
    if status < 0:
        cause = signal.Signals(-status).name
        raise InputError(f"{name}: the check ended with {cause}{_place(err, name)}; fix the file")
    if status not in (0, 2) or (status and not err):
        reason = "and no result; a sampler must not end the process"
        if "Traceback (" in err:
            reason = f"({err.strip().splitlines()[-1]}); report it, or change the sampler"
        raise InputError(f"{name}: the check ended with status {status} {reason}")
    print(process.stdout, end="")
    print(err, end="", file=sys.stderr)
    return status


def _place(report: str, name: str) -> str:
    """Return the innermost call within the user's file, from faulthandler's report."""
    for file, line, function in _CALL.findall(report):
        if file.endswith(name.rpartition("/")[2]):
            return f", in {function} ({name}:{line})"
    return ""
