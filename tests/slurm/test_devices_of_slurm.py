"""Jobs that ask for a GPU, in both ways that sites know."""

from collections.abc import Callable

import pytest
from cluster import Cluster
from project import TOY, Project

KIND = '"weights": Need(20, 1500)'


@pytest.mark.parametrize(
    ("how", "asked"),
    [
        ({"gpu": "gpu"}, "TresPerJob=gres:gpu:1"),
        pytest.param({"gpu": "gres"}, "TresPerNode=gres:gpu:1", marks=pytest.mark.long),
    ],
    ids=["--gpus", "--gres"],
)
def test_a_job_gets_the_device_and_the_partition_that_are_configured(
    slurm: Cluster, project: Callable[..., Project], how: dict[str, str], asked: str
):
    made = project(f"devices-{how['gpu']}")
    made.play({"full": {}}, cluster={**how, "gpu_partition": "gpu"})
    made.edit("src/fedsampling/resources.py", KIND, '"weights": Need(5, 1000, 4000)')
    made.snakemake("--until", "simulate")
    shown = slurm.call("scontrol", "show", "job", made.jobs("full")[0])
    assert asked in shown
    assert "Partition=gpu" in shown
    assert made.root.joinpath(f"results/runs/{TOY}").exists()
