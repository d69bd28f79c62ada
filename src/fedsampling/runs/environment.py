"""The environment of a run: device, kernels, versions and commit."""

import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from fedsampling.base import machine
from fedsampling.base.errors import InputError
from fedsampling.base.lazy import torch
from fedsampling.experiments.config import PRODUCTS_VARIABLE, Config

LIBRARIES = ("numpy", "scipy", "pandas", "pyarrow", "torch")
# Environment variables that select kernels, and so the rounding, of libraries.
KERNELS = (
    "ATEN_CPU_CAPABILITY",
    PRODUCTS_VARIABLE,
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "NPY_DISABLE_CPU_FEATURES",
    "ONEDNN_MAX_CPU_ISA",
    "OPENBLAS_CORETYPE",
)


def choose_products(config: Config) -> None:
    """Use the configured library for matrix products; must be called before the first product."""
    if config.products != "auto":
        os.environ[PRODUCTS_VARIABLE] = config.products


def device(config: Config) -> str:
    """Return the device that trains networks, by PyTorch's name."""
    if config.device == "cpu":
        return "cpu"
    if torch.cuda.is_available():
        return "cuda"
    if config.device == "cuda":
        raise InputError("device: 'cuda' needs a GPU, and PyTorch sees none; use cpu or auto")
    return "cpu"


@cache
def environment(device: str = "cpu", networks: bool = False) -> dict[str, Any]:
    """Return the environment of a run: package, commit, libraries, kernel settings, device."""
    kernels = {name: os.environ[name] for name in KERNELS if os.environ.get(name)}
    if networks and device == "cpu":
        from fedsampling.learning.models import products

        kernels["products"] = products.library()
    return {
        "package": metadata.version("fedsampling"),
        "commit": _commit(),
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in LIBRARIES},
        "kernels": kernels,
        "device": _device(device),
    }


def _commit() -> str | None:
    """Return the checkout's commit, with "-dirty" if tracked files differ from it.

    Published runs do not count: publishing one experiment must not mark the next one's runs.
    None outside a checkout, and for an installed package inside another project's checkout.
    """
    no_published_runs = [":/", ":(top,exclude)published_runs"]
    try:
        _git("ls-files", "--error-unmatch", __file__)
        commit = _git("rev-parse", "--short=12", "HEAD")
        changes = _git("status", "--porcelain", "--untracked-files=no", "--", *no_published_runs)
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}-dirty" if changes else commit


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=10
    ).stdout.strip()


def _device(device: str) -> str:
    if device == "cuda":
        return f"cuda: {torch.cuda.get_device_name()}"
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    return f"cpu: {machine.processor()}, {threads} thread{'' if threads == '1' else 's'}"
