"""Run ``fedsampling check-sampler`` in a separate process with a time limit.

If the sampler loops forever, calls ``sys.exit`` or crashes, only that process ends.  The error is
one line.
"""

import re
import signal
import subprocess
import sys
from collections.abc import Sequence

from fedsampling.base.errors import InputError

_CHECK = [sys.executable, "-P", "-X", "faulthandler", "-m", "fedsampling.cli", "check-sampler"]
_TRACE_SECONDS = 10.0  # time for an interrupted process to print its stack
_CALL = re.compile(r'^  File "(.+)", line (\d+) in (\w+)$', re.MULTILINE)


def check_in_subprocess(seconds: float, name: str, options: Sequence[str]) -> tuple[int, str, str]:
    """Check a sampler within a time limit.

    `seconds`: time limit. `name`: name of a sampler, or path of a Python file that defines a
    sampler. `options`: settings of the sampler, such as ``m=4``. Returns `out`, `err`: output of
    the check.
    """
    command = [*_CHECK, "--timeout", "0", "--", name, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        place = _place(_interrupted(process), name)
        raise InputError(
            f"{name}: no result after {seconds:g} s{place}; look for an endless loop, "
            "put code that trains below if __name__ == '__main__', "
            f"or use --timeout {2 * seconds:g}"
        ) from None
    except BaseException:
        process.kill()
        raise
    if process.returncode < 0:
        cause = signal.Signals(-process.returncode).name
        raise InputError(f"{name}: the check ended with {cause}{_place(err, name)}; fix the file")
    if process.returncode not in (0, 2) or (process.returncode and not err):
        raise InputError(
            f"{name}: the check ended with status {process.returncode} and no result; "
            "a sampler must not end the process"
        )
    return process.returncode, out, err


def _interrupted(process: "subprocess.Popen[str]") -> str:
    """End a process and return its stack trace, innermost call first."""
    process.send_signal(signal.SIGABRT)  # makes faulthandler print the stack in any state
    try:
        return process.communicate(timeout=_TRACE_SECONDS)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[1]


def _place(report: str, name: str) -> str:
    """Return the innermost call within the user's file, from faulthandler's report."""
    for file, line, function in _CALL.findall(report):
        if file.endswith(name.rpartition("/")[2]):
            return f", in {function} ({name}:{line})"
    return ""
