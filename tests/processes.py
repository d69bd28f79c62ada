"""Python programs that tests run, in a separate process or as if they were in one."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

from fedsampling.samplers.protocol.base import Scheme


def run_python(*arguments, cwd=None, **variables):
    """Run Python, which must succeed; return its output.

    `variables` change the environment, None removes a variable.
    """
    environment = {k: v for k, v in {**os.environ, **variables}.items() if v is not None}
    process = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout[-3000:] + process.stderr[-3000:]
    return process.stdout


def complaint_of(result):
    """Return the one line with which a command that Click's runner has called ends."""
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("fedsampling: ")
    return line.removeprefix("fedsampling: ")


def run_as_if_alone(program, folder):
    """Run Python in a folder; return its output, and forget its samplers and the folder's modules.

    It takes seconds less than a separate process, which imports PyTorch again.
    """
    samplers, path = {*Scheme.members().values()}, [*sys.path]
    sys.path.insert(0, str(folder))
    try:
        with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(program, "program", "exec"), {"__name__": "program"})
    finally:
        sys.path[:] = path
        for member in {*Scheme.members().values()} - samplers:
            member.named = ""
        for name, module in [*sys.modules.items()]:
            if folder in Path(getattr(module, "__file__", None) or "/").parents:
                del sys.modules[name]
    return printed.getvalue()
