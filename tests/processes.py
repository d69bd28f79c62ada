"""Python programs that tests run in a separate process."""

import os
import subprocess
import sys


def run_python(*arguments, cwd=None, text=None, **variables):
    """Run Python, which must succeed; return its output.

    `text` is its standard input; `variables` change the environment, None removes a variable.
    """
    environment = {k: v for k, v in {**os.environ, **variables}.items() if v is not None}
    process = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout[-3000:] + process.stderr[-3000:]
    return process.stdout
