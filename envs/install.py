"""install.py LOCK [PROJECT]: install a lock's packages for this Python, and a project as editable.

Every file is checked against its hashes.  uv, itself in the main lock, installs them from the
indexes that pip is configured for.  If uv is not available or fails, or if INSTALLER=pip, pip does.

The variable TORCH chooses the build of PyTorch on Linux: cpu, cuda, or auto (the default).  auto is
the build that is installed, or else CUDA if a GPU is visible.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NoReturn

MAIN_LOCK = Path(__file__).with_name("requirements.lock")
CPU_LOCK = Path(__file__).with_name("torch-cpu.lock")  # PyPI has no CPU builds for Linux
UV = Path(sys.executable).with_name("uv")
PIP = [sys.executable, "-m", "pip"]
OPTIONS = ["--quiet", "--no-deps", "--no-build-isolation"]  # a lock has all dependencies
OF_CUDA = ("torch", "torchvision", "triton", "cuda-", "nvidia-")
NOT_OFFERED = (
    "No matching distribution|conflicting dependencies|no version of|has no (usable )?wheels"
)
CUDA_SIZE, CPU_SIZE = "2.7 GB of downloads", "0.2 GB"
# pip's settings by the variables through which uv learns them.
SETTINGS = {
    "UV_DEFAULT_INDEX": "index-url",
    "UV_INDEX": "extra-index-url",
    "UV_FIND_LINKS": "find-links",
    "UV_NO_INDEX": "no-index",
    "UV_INSECURE_HOST": "trusted-host",
    "SSL_CERT_FILE": "cert",
    "HTTPS_PROXY": "proxy",
}
Entries = dict[str, str]  # lines of a lock by package


def main(lock: str, *project: str) -> None:
    """Install uv, PyTorch, all other packages, and the project."""
    choice = os.environ.get("TORCH") or "auto"
    if choice not in ("cpu", "cuda", "auto"):
        stop(f"TORCH={choice}: must be cpu, cuda or auto")
    packages = entries(Path(lock))
    pip_install(select(entries(MAIN_LOCK), "uv"))  # if it fails, pip installs all
    install(select(packages, "setuptools"))  # builds the packages that have no wheel
    if "torch" in packages and sys.platform == "linux":
        install_torch(packages, choice)
        packages = {name: packages[name] for name in packages if not name.startswith(OF_CUDA)}
    if not install(packages):
        stop("no index in reach has all packages of the lock for this Python and platform")
    tool = [str(UV), "pip"] if is_uv_used() else PIP
    python = ["--python", sys.executable] if is_uv_used() else []
    variables = uv_variables() if is_uv_used() else os.environ
    if project:
        command = [*tool, "install", *python, *OPTIONS, "--editable", *project]
        if subprocess.run(command, env=variables).returncode:
            stop("the project could not be installed")
    check_dependencies([*tool, "check", *python], variables)


def entries(lock: Path) -> Entries:
    """Return the entries of a lock, with their hashes; a package may have one for some Pythons."""
    packages: Entries = {}
    for block in re.findall(r"^[a-z0-9].*(?:\n .*)*", lock.read_text("utf-8"), flags=re.MULTILINE):
        name = block.partition("==")[0]
        packages[name] = f"{packages[name]}\n{block}" if name in packages else block
    return packages


def select(packages: Entries, *names: str) -> Entries:
    """Return the entries of these packages."""
    return {name: packages[name] for name in names if name in packages}


def install_torch(packages: Entries, choice: str) -> None:
    """Install torch and torchvision, both with CUDA or both without."""
    kind = installed_build() or build_for_this_machine() if choice == "auto" else choice
    if installed_build() not in ("", kind):
        uninstall("torch", "torchvision")
    cpu_build = select(entries(CPU_LOCK), *packages)
    if kind == "cpu" and not install_cpu_build(cpu_build):
        line = f"no index in reach has PyTorch's CPU build; the CUDA build is {CUDA_SIZE}"
        if choice == "cpu":
            stop(f"{line}: TORCH=cuda installs it")
        say(f"{line}, which follow")
        kind = "cuda"
    if kind == "cuda":
        names = (name for name in packages if name.startswith(OF_CUDA))
        if not install(select(packages, *names)):
            stop("no index in reach has PyTorch's CUDA build for this Python and platform")
    (Path(sys.prefix) / "torch").write_text(f"{kind}\n", "utf-8")  # which the Makefile reads


def build_for_this_machine() -> str:
    """Return CUDA if a GPU is visible, and say what else is possible."""
    if is_gpu_visible():
        say(f"a GPU is visible: PyTorch's CUDA build, {CUDA_SIZE} (TORCH=cpu: {CPU_SIZE})")
        return "cuda"
    say(f"no GPU is visible: PyTorch's CPU build, {CPU_SIZE} (TORCH=cuda: {CUDA_SIZE})")
    return "cpu"


def installed_build() -> str:
    """Return the build of the installed PyTorch; "" if there is none."""
    try:
        return "cpu" if metadata.version("torch").endswith("+cpu") else "cuda"
    except metadata.PackageNotFoundError:
        return ""


def is_gpu_visible() -> bool:
    """Whether NVIDIA's driver lists a GPU; in WSL2, its command may not be on the PATH."""
    command = shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path="/usr/lib/wsl/lib")
    return (
        bool(command) and not subprocess.run([str(command), "-L"], capture_output=True).returncode
    )


def install_cpu_build(packages: Entries) -> bool:
    """Install the CPU build from the configured indexes, or else from PyTorch's, which uv knows."""
    if install(packages):
        return True
    if install(select(packages, "torch")):
        if "torchvision" in packages:  # beside this torch, another build cannot be imported
            say("no index in reach has torchvision's CPU build: torchvision is left out")
            uninstall("torchvision")
        return True
    return is_uv_used() and not uv_install(packages, "--torch-backend=cpu")


def install(packages: Entries) -> bool:
    """Install packages; return False if the configured indexes do not offer one of them."""
    if not packages:
        return True
    error = uv_install(packages) if is_uv_used() else pip_install(packages)
    if error and not re.search(NOT_OFFERED, error):
        if not is_uv_used():
            lines = [line for line in error.splitlines() if not line.startswith("WARNING")]
            stop("\n".join(["pip failed", *lines]))
        say(f"uv failed, so pip installs the packages: {error.splitlines()[0]}")
        os.environ["INSTALLER"] = "pip"
        return install(packages)
    return not error


def is_uv_used() -> bool:
    """Whether uv installs the packages."""
    return UV.exists() and os.environ.get("INSTALLER") != "pip"


def uv_install(packages: Entries, *options: str) -> str:
    """Install packages with uv; return its error, if any."""
    command = [str(UV), "pip", "install", "--python", sys.executable, *options]
    return _error_of(command, packages, uv_variables())


def pip_install(packages: Entries) -> str:
    """Install packages with pip; return its error, if any."""
    return _error_of([*PIP, "install", "--disable-pip-version-check"], packages, os.environ)


def _error_of(command: list[str], packages: Entries, variables: Mapping[str, str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "requirements.txt"
        file.write_text("\n".join(packages.values()), "utf-8")
        command = [*command, *OPTIONS, "--require-hashes", "--requirement", str(file)]
        result = subprocess.run(command, stderr=subprocess.PIPE, text=True, env=variables)
    return (result.stderr.strip() or "no message") if result.returncode else ""


def uninstall(*names: str) -> None:
    """Remove packages if they are installed."""
    subprocess.run([*PIP, "uninstall", "--quiet", "--yes", *names], stderr=subprocess.DEVNULL)


@cache
def uv_variables() -> dict[str, str]:
    """Return the environment of uv, which does not read pip's settings."""
    listed = subprocess.run([*PIP, "config", "list"], stdout=subprocess.PIPE, text=True).stdout
    pip: dict[str, list[str]] = {}  # those of the environment are listed first and override files
    for name, value in re.findall(r"^\S*\.([a-z-]+)=(.+)$", listed, flags=re.MULTILINE):
        pip.setdefault(name, str(ast.literal_eval(value)).split())
    pip["find-links"] = [folder for folder in pip.get("find-links", []) if Path(folder).is_dir()]
    variables = {
        variable: (", " if variable == "UV_FIND_LINKS" else " ").join(pip[name])
        for variable, name in SETTINGS.items()
        if pip.get(name)
    }
    variables = {"UV_INDEX_STRATEGY": "unsafe-best-match", **variables, **os.environ}
    cache = subprocess.run([str(UV), "cache", "dir"], stdout=subprocess.PIPE, text=True).stdout
    try:
        Path(cache.strip()).mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=cache.strip()).close()
    except OSError:  # for example a home folder that is read-only
        variables["UV_NO_CACHE"] = "1"
    return variables


def check_dependencies(command: list[str], variables: Mapping[str, str]) -> None:
    """Stop if an installed package lacks one that it needs, or has another version of it.

    Some wheels of CUDA name another platform inside than in their file name, on aarch64; they work.
    """
    result = subprocess.run(command, capture_output=True, text=True, env=variables)
    lines = (result.stdout + result.stderr).splitlines()
    if problems := [line for line in lines if re.search(" requires | has requirement ", line)]:
        stop("\n".join(["the packages do not fit together", *problems]))


def say(line: str) -> None:
    """Print a line."""
    print(f"install.py: {line}", file=sys.stderr, flush=True)


def stop(line: str) -> NoReturn:
    """End with a line."""
    sys.exit(f"install.py: {line}")


if __name__ == "__main__":
    main(*sys.argv[1:])
