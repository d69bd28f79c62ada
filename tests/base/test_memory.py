"""Errors for runs that need more memory, before and while they run."""

import numpy as np
import pytest

from fedsampling.base import memory
from fedsampling.base.errors import InputError


def test_a_run_is_refused_only_if_it_needs_more_than_the_machine_has():
    assert memory.available() > 1e8
    assert memory.lacking(memory.available() - 1) == ""
    line = memory.lacking(3e15)
    assert line.startswith("memory: at least 3,000,000 GB needed, ")
    assert "give a smaller model or batch" in line


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_out_of_memory_errors_of_libraries_are_one_line(library):
    torch = pytest.importorskip("torch")
    ask = {"numpy": np.ones, "torch": torch.ones}[library]
    little = r"^memory: not enough for this run; give"
    with pytest.raises(InputError, match=little), memory.in_a_line():
        ask((10**7, 10**7))


V2_JOB = {
    "list": "0::/system.slice/slurmstepd.scope/job_7/step_0\n",
    "system.slice/slurmstepd.scope/job_7/memory.max": "2000\n",
    "system.slice/slurmstepd.scope/job_7/step_0/memory.max": "max\n",
}
V1_JOB = {
    "list": "5:cpu,cpuacct:/slurm/job_7\n4:memory:/slurm/job_7/step_0\n",
    "memory/slurm/job_7/memory.limit_in_bytes": "2000\n",
    "memory/slurm/job_7/step_0/memory.limit_in_bytes": "9223372036854771712\n",
}
CONTAINERS = {
    "v2": {"list": "0::/\n", "memory.max": "2000\n"},
    "v1": {"list": "4:memory:/docker/5f\n", "memory/memory.limit_in_bytes": "2000\n"},
}


@pytest.mark.parametrize("files", [V2_JOB, V1_JOB, *CONTAINERS.values()])
def test_control_groups_limit_the_memory(monkeypatch, tmp_path, files):
    monkeypatch.setattr(memory, "total_memory", lambda: 10**9)
    monkeypatch.setattr(memory, "_MOUNT", tmp_path)
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "list")
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    assert memory.available() == 2000


@pytest.mark.parametrize(
    ("variables", "megabytes"),
    [
        ({"SLURM_MEM_PER_NODE": "500"}, 500),
        ({"SLURM_MEM_PER_CPU": "200", "SLURM_CPUS_ON_NODE": "4"}, 800),
        ({"SLURM_MEM_PER_NODE": "0"}, 1000),  # all of the node
        ({}, 1000),
    ],
)
def test_slurm_limits_the_memory(monkeypatch, tmp_path, variables, megabytes):
    monkeypatch.setattr(memory, "total_memory", lambda: 1000 * 2**20)
    monkeypatch.setattr(memory, "_MOUNT", tmp_path)
    for name in ("SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert memory.available() == megabytes * 2**20


def test_without_any_figure_no_run_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "total_memory", lambda: None)
    monkeypatch.setattr(memory, "_MOUNT", tmp_path)
    assert memory.lacking(1e15) == ""
