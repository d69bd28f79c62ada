"""What envs/install.py asks uv and pip for, depending on what the indexes offer."""

import runpy
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.shared import ROOT

LOCK = ROOT / "envs/requirements.lock"
NOT_OFFERED = "error: No solution found\n  cause: Because there is no version of torch==2.13.0+cpu"
OFFLINE = "error: Request failed after 3 retries\n  cause: failed to lookup address information"


class Machine:
    """Answers uv and pip; `cpu` and `torchs` are packages with a CPU build at its indexes."""

    def __init__(self, cpu=(), pytorchs_index=False, gpu=False):
        self.cpu, self.pytorchs_index, self.gpu = cpu, pytorchs_index, gpu
        self.uv_error = self.pip_error = self.cache = ""
        self.installed, self.tools, self.removed = "", [], ()
        self.without_cache = set()  # uv's commands

    def run(self, command, **options):
        tool, words = Path(command[0]).name, list(map(str, command))
        if tool == "nvidia-smi":
            return answer(returncode=0 if self.gpu else 9)
        if tool == "uv" and "UV_NO_CACHE" in (options.get("env") or ()):
            self.without_cache.add(words[2])
        if "uninstall" in words:
            self.removed = words[-2:]
        if words[1:3] == ["cache", "dir"]:
            return answer(stdout=self.cache)
        if "--requirement" not in words:
            return answer()
        self.tools.append("uv" if tool == "uv" else "pip")
        if error := self.uv_error if tool == "uv" else self.pip_error:
            return answer(error)
        text = Path(words[-1]).read_text("utf-8")
        cpu = {name for name in ("torch", "torchvision") if f"{name}==" in text and "+cpu" in text}
        if "--torch-backend=cpu" in words:
            if not self.pytorchs_index:
                return answer(OFFLINE)
        elif not cpu <= set(self.cpu):
            return answer(NOT_OFFERED)
        self.installed += text + "\n"
        return answer()


def answer(stderr="", returncode=None, stdout=""):
    failed = bool(stderr) if returncode is None else returncode
    return SimpleNamespace(returncode=int(failed), stderr=stderr, stdout=stdout)


@pytest.fixture
def install(monkeypatch, tmp_path):
    """Run install.py on a machine, on Linux and in an empty environment."""

    def on(machine, build="", uv=True, project=(), **variables):
        for name in ("TORCH", "INSTALLER"):
            monkeypatch.setenv(name, "")
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        (tmp_path / "uv").touch() if uv else (tmp_path / "uv").unlink(missing_ok=True)
        monkeypatch.setattr("sys.platform", "linux")
        monkeypatch.setattr("sys.prefix", str(tmp_path))
        monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
        monkeypatch.setattr("shutil.which", lambda name, path=None: name)
        monkeypatch.setattr(subprocess, "run", machine.run)
        script = runpy.run_path(str(ROOT / "envs/install.py"))
        script["main"].__globals__["installed_build"] = lambda: build
        script["main"](str(LOCK), *project)
        return (tmp_path / "torch").read_text()

    return on


def has_cuda(machine):
    return "nvidia-cublas==" in machine.installed and "\ntriton==" in machine.installed


def test_without_a_gpu_both_packages_are_cpu_builds(install):
    machine = Machine(cpu=("torch", "torchvision"))
    assert install(machine) == "cpu\n"
    assert "torch==2.13.0+cpu" in machine.installed
    assert "torchvision==0.28.0+cpu" in machine.installed
    assert not has_cuda(machine)


def test_torchvision_of_another_kind_is_left_out(install, capsys):
    machine = Machine(cpu=("torch",))
    install(machine)
    assert "torch==2.13.0+cpu" in machine.installed
    assert "torchvision==" not in machine.installed
    assert "torchvision is left out" in capsys.readouterr().err


def test_pytorchs_own_index_is_asked_if_no_other_has_the_cpu_build(install):
    machine = Machine(pytorchs_index=True)
    assert install(machine) == "cpu\n"
    assert "torchvision==0.28.0+cpu" in machine.installed
    assert not has_cuda(machine)


def test_a_download_of_gigabytes_is_announced(install, capsys):
    machine = Machine()
    assert install(machine) == "cuda\n"
    assert has_cuda(machine)
    assert "\ntorchvision==0.28.0 " in machine.installed
    assert "the CUDA build is 2.7 GB" in capsys.readouterr().err


def test_a_visible_gpu_gets_the_cuda_build_of_both(install, capsys):
    machine = Machine(cpu=("torch", "torchvision"), gpu=True)
    assert install(machine) == "cuda\n"
    assert has_cuda(machine)
    assert "+cpu" not in machine.installed
    assert "TORCH=cpu" in capsys.readouterr().err


@pytest.mark.parametrize("gpu", [True, False])
@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_torch_chooses_the_build(install, kind, gpu):
    machine = Machine(cpu=("torch", "torchvision"), gpu=gpu)
    assert install(machine, TORCH=kind) == f"{kind}\n"
    assert has_cuda(machine) == (kind == "cuda")


def test_another_build_replaces_the_installed_one(install):
    machine = Machine(cpu=("torch", "torchvision"))
    install(machine, build="cuda", TORCH="cpu")
    assert machine.removed == ["torch", "torchvision"]


def test_an_update_keeps_the_build_of_the_environment(install):
    machine = Machine(cpu=("torch", "torchvision"))
    assert install(machine, build="cuda") == "cuda\n"
    assert not machine.removed


def test_a_build_that_no_index_has_is_one_line(install):
    with pytest.raises(SystemExit, match="TORCH=cuda installs it"):
        install(Machine(), TORCH="cpu")


def test_an_unknown_build_is_one_line_before_anything_is_installed(install):
    machine = Machine()
    with pytest.raises(SystemExit, match="TORCH=gpu: must be cpu, cuda or auto"):
        install(machine, TORCH="gpu")
    assert not machine.tools


def test_a_failure_of_the_network_installs_nothing_else(install):
    machine = Machine(cpu=("torch", "torchvision"))
    machine.uv_error, machine.pip_error = OFFLINE, "ERROR: Could not fetch URL"
    with pytest.raises(SystemExit, match="pip failed\nERROR: Could not fetch URL"):
        install(machine)
    assert not machine.installed


def test_pip_installs_everything_where_uv_fails(install, capsys):
    machine = Machine(cpu=("torch", "torchvision"))
    machine.uv_error = "error: failed to lock the cache"
    install(machine)
    assert machine.tools == ["pip", "uv", "pip", "pip", "pip"]  # uv itself, and three steps
    assert "uv failed" in capsys.readouterr().err
    assert "pandas==" in machine.installed


@pytest.mark.parametrize("variables", [{"uv": False}, {"INSTALLER": "pip"}])
def test_pip_installs_everything_without_uv(install, variables):
    machine = Machine(cpu=("torch", "torchvision"))
    install(machine, **variables)
    assert set(machine.tools) == {"pip"}
    assert "pandas==" in machine.installed


def test_packages_without_a_wheel_are_built_by_the_lock_s_setuptools(install):
    machine = Machine(cpu=("torch", "torchvision"))
    install(machine)
    assert machine.installed.index("setuptools==") < machine.installed.index("docopt==")


def test_uv_learns_pips_indexes(monkeypatch, tmp_path):
    links = tmp_path / "links"
    links.mkdir()
    listed = (
        f":env:.find-links='{links} /nowhere'\nglobal.cert='/etc/ca.crt'\n"
        "global.index-url='https://mirror/simple'\ninstall.extra-index-url='\\nhttps://a\\nhttps://b'\n"
    )
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=listed))
    for name in ("SSL_CERT_FILE", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    variables = runpy.run_path(str(ROOT / "envs/install.py"))["uv_variables"]()
    assert variables["UV_DEFAULT_INDEX"] == "https://mirror/simple"
    assert variables["UV_INDEX"] == "https://a https://b"
    assert variables["UV_FIND_LINKS"] == str(links)
    assert variables["SSL_CERT_FILE"] == "/etc/ca.crt"


def test_a_cache_that_cannot_be_written_is_not_used(monkeypatch, tmp_path):
    folder = tmp_path / "file"
    folder.touch()  # no folder can be made in it
    monkeypatch.setattr(
        subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=f"{folder}/cache")
    )
    assert runpy.run_path(str(ROOT / "envs/install.py"))["uv_variables"]()["UV_NO_CACHE"] == "1"


def test_no_command_of_uv_uses_that_cache(install, tmp_path):
    machine = Machine(cpu=("torch", "torchvision"))
    machine.cache = "/proc/none/cache"
    install(machine, project=["."])
    assert machine.without_cache == {"install", "check"}


@pytest.fixture
def check(monkeypatch):
    """Check an environment of which uv or pip says a line."""
    script = runpy.run_path(str(ROOT / "envs/install.py"))

    def on(line):
        monkeypatch.setattr(
            subprocess, "run", lambda *_, **__: answer(f"1 incompatibility\n{line}")
        )
        script["check_dependencies"](["uv", "pip", "check"], {})

    return on


@pytest.mark.parametrize(
    "line",
    [
        "The package `requests` requires `idna`, but it is not installed",
        "requests 2.32.0 has requirement urllib3<3, but you have urllib3 4.0.",
    ],
)
def test_packages_that_do_not_fit_together_stop_the_installation(check, line):
    with pytest.raises(SystemExit, match="do not fit together") as error:
        check(line)
    assert line in str(error.value)


def test_a_wheel_that_names_another_platform_inside_does_not(check):
    check("The package `nvidia-x` was built for a different platform")
