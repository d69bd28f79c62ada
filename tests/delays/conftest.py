import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def mirror() -> str:
    """The folder of real files, where this machine has one."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    folder = os.environ.get("FEDSAMPLING_MIRROR") or str(beside)
    if not Path(folder, "nycmesh").is_dir():
        pytest.skip(f"no real data: neither FEDSAMPLING_MIRROR nor {beside} holds nycmesh/")
    return folder
