import platform
import subprocess
import sys

import pytest

MEASURE = """
import resource, torch
from fedsampling.models.memory import keep_memory
assert keep_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.empty(2**23).fill_(1)  # 32 MiB, 8,192 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(min(faults() for _ in range(10)))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's setting")
def test_freed_memory_is_used_again_without_page_faults():
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 100
