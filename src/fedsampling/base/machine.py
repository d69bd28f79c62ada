"""What the operating system says about this machine: processor, cores and memory.

Modules that only some systems have are imported where they are used, so that the library also works
on Windows.  The pipeline needs file locks and signals, which Windows has in WSL2 only.
"""

import os
import platform
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from fedsampling.base.errors import InputError

CPUINFO = Path("/proc/cpuinfo")  # Linux
WSL_COMMANDS = "/usr/lib/wsl/lib"  # has nvidia-smi in WSL2, where GPUs have no files in /dev


def check_platform() -> None:
    """Refuse to run the pipeline on Windows outside WSL2."""
    if sys.platform == "win32":
        raise InputError(
            "Windows: the pipeline runs in WSL2 ('wsl --install', then clone and `make reproduce` "
            "there); in Python, `import fedsampling` works without it"
        )


def processor() -> str:
    """Return the name of the processor."""
    if sys.platform == "darwin":
        return output("sysctl", "-n", "machdep.cpu.brand_string").strip() or platform.machine()
    try:
        names = re.search(r"^model name\s*: (.*)$", CPUINFO.read_text("utf-8"), flags=re.MULTILINE)
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    # Linux on ARM lists numbers, which lscpu converts.
    names = names or re.search(r"^Model name: +(\S.*)$", output("lscpu"), flags=re.MULTILINE)
    return names[1] if names else platform.machine()


def instructions() -> str:
    """Return Linux's description of the first core: vendor and instructions; empty elsewhere."""
    try:
        return CPUINFO.read_text(encoding="utf-8").partition("\n\n")[0]
    except OSError:
        return ""


def cores() -> int:
    """Return the number of cores that this process may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return allowed or 1


def total_memory() -> int | None:
    """Return the memory in bytes; None if it is unknown, as on Windows."""
    with suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def peak_megabytes() -> float:
    """Return the largest memory that this process has had; NaN if unknown, as on Windows."""
    try:
        import resource
    except ImportError:
        return float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in kilobytes; on macOS in bytes
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


def output(*command: str) -> str:
    """Return the output of a command; empty if it fails or is not installed."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return ""
    return "" if result.returncode else result.stdout
