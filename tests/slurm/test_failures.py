"""What goes wrong on a cluster, one by one: the run ends well, and nothing is computed twice."""

import os
import re
import signal
from pathlib import Path

import pytest
from filelock import SoftFileLease
from tests.slurm.project import until

PAPER = "fraboni2021clustered"  # a network in training, not the toy

# A sampler's job, and what befalls it.
BEHAVIOURS = {
    "full": {"once": "fail"},
    "md": {"once": "sleep"},  # over its time limit
    "uniform": {"once": "memory", "mb": 2500},
    "poisson": {"rounds": 110, "checkpoints": True},  # 55 s and more, with a limit of a minute
    "binomial": {"rounds": 40},  # cancelled
}
ROUNDS = {"full": 2, "md": 2, "uniform": 2, "poisson": 110}


def running(slurm, sampler):
    """Return the running jobs of a sampler, by the comment that the executor gives them."""
    lines = slurm.call("squeue", "-h", "-t", "RUNNING", "-o", "%i %k").splitlines()
    return [line.split()[0] for line in lines if f"_{sampler}_" in line]


@pytest.mark.long
class TestJobs:
    """All in one run, which takes about four minutes."""

    @pytest.fixture(scope="class")
    @staticmethod
    def ended(slurm, project):
        copy = project("jobs")
        copy.play(BEHAVIOURS, cluster={"max_runtime": 1, "margin": 1})
        started = copy.started()
        started.until(lambda: "binomial" in str(copy.computed()), "the job that is cancelled")
        (job,) = running(slurm, "binomial")
        slurm.call("scancel", job)
        assert started.end() == 0, started.output[-6000:]
        return started

    @pytest.mark.parametrize("sampler", ["full", "md", "uniform"])
    def test_failed_jobs_are_repeated_once(self, ended, sampler):
        computed = [t for name, _, t in ended.project.computed() if name == sampler]
        assert computed == list(range(ROUNDS[sampler]))

    @pytest.mark.parametrize("state", ["FAILED", "TIMEOUT", "CANCELLED"])
    def test_each_cause_is_named(self, ended, state):
        assert f"SLURM status is: '{state}'" in ended.output

    def test_memory_is_named_in_the_log(self, ended):
        """Its status is OUT_OF_MEMORY only where cgroups watch; polling says FAILED."""
        logs = (ended.project.root / "logs" / "slurm").rglob("*_uniform_*/*.log")
        assert any("exceeded memory limit" in path.read_text() for path in logs)

    def test_a_repeated_job_asks_for_more(self, ended, slurm):
        (job,) = ended.project.jobs("uniform")
        assert "MinMemoryNode=3000M" in slurm.call("scontrol", "show", "job", job)

    def test_a_cancelled_job_is_repeated(self, ended):
        computed = [t for name, _, t in ended.project.computed() if name == "binomial"]
        assert computed[-40:] == list(range(40))

    def test_a_job_near_its_time_limit_is_queued_again_and_continues(self, ended, slurm):
        computed = [t for name, _, t in ended.project.computed() if name == "poisson"]
        assert computed == list(range(110))
        (job,) = ended.project.jobs("poisson")
        # Once; more often where starting up takes most of the minute.
        assert re.search("Restarts=[1-9]", slurm.call("scontrol", "show", "job", job))

    def test_only_four_jobs_failed(self, ended):
        """The job that was handed back is none of them."""
        assert ended.failures() == 4

    def test_results_equal_those_of_a_local_run(self, ended, local_files):
        rounds = {name: {"rounds": n} for name, n in {**ROUNDS, "binomial": 40}.items()}
        assert ended.project.results() == local_files("jobs", rounds)


@pytest.mark.long
def test_a_drained_node_and_a_restarted_slurmctld_cost_nothing(slurm, project, local_files):
    copy = project("daemons")
    behaviours = {name: {"rounds": 30} for name in ("full", "md", "uniform", "poisson")}
    copy.play(behaviours)
    started = copy.started(jobs=4)
    started.until(copy.computed, "a first round")
    slurm.call("scontrol", "update", "NodeName=node0", "State=DRAIN", "Reason=test")
    assert "drain" in slurm.call("sinfo", "-h", "-n", "node0", "-o", "%T")
    slurm.stop_one("slurmctld")
    before = len(copy.computed())
    started.until(lambda: len(copy.computed()) > before + 10, "rounds without slurmctld")
    slurm.start_controller()
    # It may know the node as drained still, or have it back already.
    if "drain" in slurm.call("sinfo", "-h", "-n", "node0", "-o", "%T"):
        slurm.call("scontrol", "update", "NodeName=node0", "State=RESUME", check=False)
    until(lambda: "drain" not in slurm.call("sinfo", "-h", "-n", "node0", "-o", "%T"), "the node")
    assert started.end() == 0, started.output[-6000:]
    assert started.failures() == 0
    assert len(copy.computed()) == len(set(copy.computed())) == 4 * 30
    assert copy.results() == local_files("daemons", behaviours)


@pytest.mark.long
def test_ctrl_c_cancels_the_jobs_and_the_next_start_completes(slurm, project, local_files):
    copy = project("interrupted")
    copy.play({"full": {"rounds": 400}, "md": {"rounds": 2}})
    started = copy.started()
    started.until(lambda: {"full", "md"} <= {name for name, *_ in copy.computed()}, "two jobs")
    started.until(copy.stored, "the short job's result")
    before = copy.stored()
    assert started.end(signal.SIGINT) != 0
    until(lambda: not slurm.call("squeue", "-h").strip(), "an empty queue", 60)
    rest = {"full": {"rounds": 3}, "md": {"rounds": 2}}
    copy.toy(rest)
    copy.snakemake()
    assert before.items() <= copy.stored().items()
    assert copy.results() == local_files("interrupted", rest)


def test_a_job_of_a_killed_snakemake_is_not_repeated(project, local_files):
    copy = project("orphan")
    behaviours = {"full": {"rounds": 80}, "md": {"rounds": 2}}
    copy.play(behaviours)
    started = copy.started()
    started.until(lambda: "full" in str(copy.computed()), "the long job")
    started.until(copy.stored, "the short job's result")
    before = copy.stored()
    started.end(signal.SIGKILL)
    copy.snakemake()
    # The orphan and its double met at the run's lock: every round once, by one job.
    assert len(copy.computed()) == len(set(copy.computed())) == 82
    assert len(copy.jobs("full")) == 1
    assert before.items() <= copy.stored().items()
    assert copy.results() == local_files("orphan", behaviours)


def trains(copy):
    """Leave one job of one experiment."""

    def shorten(paper):
        mnist = paper["experiments"]["mnist"]
        mnist |= {"samplers": {"md": {"name": "md", "m": 10}}, "rounds": 400, "seeds": 2}
        mnist["quick"] = {"work": mnist["quick"]["work"]}

    copy.keep(PAPER, "mnist", shorten)
    limits = {"max_runtime": 60, "max_mem_mb": 4000}  # of the test cluster
    copy.configure(papers=[PAPER], checkpoint_seconds=1, cluster=limits)


@pytest.mark.long
def test_stopped_training_continues_in_the_same_job_bit_for_bit(slurm, project):
    copy = project("training")
    trains(copy)
    started = copy.started()
    results = copy.root / "results"
    started.until(lambda: list(results.glob("checkpoints/*.npz")), "some rounds are done")
    owner = SoftFileLease(next(results.glob("store/*/*.lock"))).pid
    assert owner is not None
    variables = Path(f"/proc/{owner}/environ").read_bytes().decode().split("\0")
    job = dict(variable.split("=", 1) for variable in variables if variable)["SLURM_JOB_ID"]
    os.kill(owner, signal.SIGUSR1)
    assert started.end() == 0, started.output[-6000:]
    assert started.failures() == 0
    assert "Restarts=1" in slurm.call("scontrol", "show", "job", job)
    assert not list(results.glob("checkpoints/*.npz"))
    local = project("training-local")
    trains(local)
    local.snakemake(slurm=False)
    assert copy.results() == local.results()
