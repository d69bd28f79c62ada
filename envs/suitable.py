"""suitable.py FIRST LAST: print why this Python is unsuitable, if it is; any Python can run this.

Suitable is CPython 3.FIRST to 3.LAST with venv, on a platform for which PyTorch has packages.
"""

import platform
import sys
import sysconfig

FIRST, LAST = (3, int(sys.argv[1])), (3, int(sys.argv[2]))


def reason():
    """Return the reason, which follows the Python's name; empty if it is suitable."""
    if not FIRST <= sys.version_info[:2] <= LAST:
        return ", not 3.%d to 3.%d" % (FIRST[1], LAST[1])
    if platform.python_implementation() != "CPython" or sys.maxsize < 2**32:
        return ", not a 64-bit CPython"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return " without the global lock, for which few packages exist"
    if sys.platform == "darwin" and platform.machine() == "x86_64":
        return " for Intel, for which PyTorch has no package; use a Python for Apple silicon"
    if sys.platform == "darwin" and int(platform.mac_ver()[0].partition(".")[0]) < 14:
        return " on macOS %s; PyTorch needs macOS 14" % platform.mac_ver()[0]
    if sys.platform == "linux" and platform.libc_ver()[0] != "glibc":
        return " without glibc (such as on Alpine), for which PyTorch has no package"
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return " without venv (on Debian: apt install python%d.%d-venv)" % sys.version_info[:2]
    return ""


name = "%s is %s %s"
name %= sys.executable, platform.python_implementation(), platform.python_version()
print(reason() and name + reason())
