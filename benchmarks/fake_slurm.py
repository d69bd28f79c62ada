"""Stand-ins for SLURM's clients, which record submissions, and a copy of the project to run in.

``sbatch`` numbers a job and keeps its script in ``jobs/NUMBER``; ``squeue`` prints the lines of
``states``.  The calling script executes the jobs and writes these lines.
"""

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PAPER = "fraboni2022general"
COMBINATIONS = 28  # of case and sampler in its experiment `weights`
COPIED = ("Snakefile", "workflow", "profiles", "papers", "envs", "src", "CITATION.cff")

# Counting needs a lock, because Snakemake may submit while an earlier call still runs.
SBATCH = """\
#!/bin/sh
exec 9>>{folder}/lock
flock 9
cat >{folder}/script
[ -s {folder}/script ] || exit 1  # Snakemake was killed before it wrote the script
n=$(($(cat {folder}/count) + 1))
mv {folder}/script {folder}/jobs/$n
echo $n >{folder}/count
echo $n
"""
SQUEUE = """\
#!/bin/sh
echo >>{folder}/queries
cat {folder}/states
"""
CONFIGURATION = """\
#!/bin/sh
echo "MinJobAge = 86400 sec"
"""
# A job step: the options end where the command begins.
SRUN = """\
#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
exec "$@"
"""


@dataclass(frozen=True)
class Usage:
    """Seconds of CPU time and peak memory in MB of a process."""

    cpu: float
    mb: float


@dataclass(frozen=True)
class Submission:
    """A submitted job.

    Parameters
    ----------
    number : int
    when : float
        Unix time of the submission.
    command : str
        Shell command of the job.
    """

    number: int
    when: float
    command: str

    @property
    def rule(self) -> str:
        """Name of the rule."""
        return self._target[0]

    @property
    def name(self) -> str:
        """Name of the simulation."""
        wildcards = dict(pair.split("=") for pair in self._target[1].split(","))
        return "{paper}/{experiment}/{case}/{sampler}/block-{block}".format(**wildcards)

    @property
    def _target(self) -> tuple[str, str]:
        (target,) = re.findall(r"--target-jobs '([^']*)'", self.command)
        rule, _, wildcards = target.partition(":")
        return rule, wildcards


def plan_of(weights: Mapping[str, int]) -> dict[str, object]:
    """Return a configuration of the experiment `weights` alone, which needs no data."""
    return {
        "scale": "paper",
        "data": "official",
        "papers": [PAPER],
        "experiments": [f"{PAPER}/weights"],
        "overrides": {PAPER: {"weights": dict(weights)}},
        "shipped": False,
    }


def prepare(folder: Path, config: Mapping[str, object]) -> dict[str, str]:
    """Copy the project and write the stand-ins; return the environment to start Snakemake in."""
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name)
    (folder / "config.yaml").write_text(yaml.safe_dump(dict(config)))
    bins = folder / "bin"
    bins.mkdir()
    scripts = {"sbatch": SBATCH, "squeue": SQUEUE, "scontrol": CONFIGURATION, "srun": SRUN}
    for name in ("scancel", "sinfo", "sacct"):
        scripts[name] = "#!/bin/sh\n"
    for name, text in scripts.items():
        (bins / name).write_text(text.format(folder=folder))
        (bins / name).chmod(0o755)
    (folder / "jobs").mkdir()
    (folder / "count").write_text("0")
    for name in ("states", "queries"):
        (folder / name).touch()
    path = os.pathsep.join([str(bins), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}


def usage(pid: int) -> Usage:
    """Return the CPU time and memory of a running process; zero if it has ended."""
    try:
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return Usage(0, 0)
    peak = sum(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return Usage(sum(map(int, times)) / os.sysconf("SC_CLK_TCK"), peak / 1024)


def submissions(folder: Path, after: int = 0) -> list[Submission]:
    """Return the jobs submitted after a number, in order."""
    result = []
    for number in range(after + 1, int((folder / "count").read_text() or after) + 1):
        path = folder / "jobs" / str(number)
        result.append(Submission(number, path.stat().st_mtime, path.read_text()))
    return result


def finish(folder: Path, job: Submission) -> None:
    """Let ``squeue`` report a job as completed."""
    with (folder / "states").open("a") as file:
        file.write(f"{job.number}|COMPLETED\n")
