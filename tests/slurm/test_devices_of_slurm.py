"""Jobs that ask for a GPU, in both ways that sites know."""

import pytest
from tests.slurm.project import TOY

KIND = '"weights": Need(20, 1500)'


def with_use_for_a_device(copy):
    copy.edit("src/fedsampling/runs/resources.py", KIND, '"weights": Need(5, 1000, 4000)')
    copy.edit(
        "src/fedsampling/experiments/simulations/toy.py",
        "gpu: ClassVar[bool] = False",
        "gpu: ClassVar[bool] = True",
    )


@pytest.mark.parametrize(
    ("how", "gpu_request"),
    [
        ({"gpu": "gpu"}, "TresPerJob=gres:gpu:1"),
        pytest.param({"gpu": "gres"}, "TresPerNode=gres:gpu:1", marks=pytest.mark.long),
    ],
    ids=["--gpus", "--gres"],
)
def test_a_failed_job_is_retried_with_more_memory_on_its_device(slurm, project, how, gpu_request):
    copy = project(f"devices-{how['gpu']}")
    copy.play({"full": {"once": "fail"}}, cluster={**how, "gpu_partition": "gpu"})
    with_use_for_a_device(copy)
    output = copy.snakemake("--until", "simulate")
    assert output.count("SLURM status is: 'FAILED'") == 1
    job = slurm.call("scontrol", "show", "job", copy.jobs("full")[0])
    assert gpu_request in job
    assert "Partition=gpu" in job
    assert "MinMemoryNode=2000M" in job  # twice of what it asked for at first
    assert copy.root.joinpath(f"results/runs/{TOY}").exists()
