"""suitable.py FIRST LAST: print why this Python is unsuitable; any Python can run the check.

It must be CPython 3.FIRST to 3.LAST with venv, on a platform for which PyTorch has packages.
"""

import platform
import sys
import sysconfig

first, last = (3, int(sys.argv[1])), (3, int(sys.argv[2]))


def reason():
    """Return the reason in one line; None if there is none."""
    name = "%s is %s %s" % (  # noqa: UP031 (also runs on Python 2)
        sys.executable,
        platform.python_implementation(),
        platform.python_version(),
    )
    if not first <= sys.version_info[:2] <= last:
        return name + ", not 3.%d to 3.%d" % (first[1], last[1])
    if platform.python_implementation() != "CPython" or sys.maxsize < 2**32:
        return name + ", not a 64-bit CPython"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return name + " without the global lock, for which few packages exist"
    if sys.platform == "darwin" and platform.machine() == "x86_64":
        return name + " for Intel, for which PyTorch 2.13 has no package; use an Apple silicon Python"
    if sys.platform.startswith("linux") and platform.libc_ver()[0] != "glibc":
        return name + " on a system without glibc, such as Alpine, for which PyTorch has no package"
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return name + " without venv (Debian: apt install python%d.%d-venv)" % sys.version_info[:2]
    return None


print(reason() or "")
