"""Commands of PBS, LSF and HTCondor: submit a job with its resources, ask for its state, cancel it.

The scheduler is the one whose command is installed, or that FEDSAMPLING_SCHEDULER names.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAME = "fedsampling"
LOGS = Path("logs/cluster")


@dataclass(frozen=True)
class Request:
    """What a job asks for."""

    script: str
    cores: int
    minutes: int
    megabytes: int
    gpus: int


@dataclass(frozen=True)
class Scheduler:
    """Commands of a scheduler, and patterns of what they print."""

    submit: Callable[[Request], Sequence[str]]
    description: Callable[[Request], str]  # the submitting command's input
    number: str  # pattern of the job's number in the submitting command's output
    state: Sequence[Sequence[str]]  # commands that print the state; later ones know ended jobs
    success: str  # pattern of a successful job in their output
    failed: str
    unknown: str  # in the errors of a command that does not know the job
    cancel: str


def pbs(request: Request) -> list[str]:
    """Return qsub's command; -V passes the environment."""
    gpus = f":ngpus={request.gpus}" if request.gpus else ""
    chunk = f"select=1:ncpus={request.cores}:mem={request.megabytes}mb{gpus}"
    limits = ["-l", chunk, "-l", f"walltime={request.minutes * 60}"]
    return ["qsub", "-V", "-N", NAME, *limits, "-j", "oe", "-o", f"{LOGS}/", request.script]


def lsf(request: Request) -> list[str]:
    """Return bsub's command; it passes the environment."""
    memory = ["-M", f"{request.megabytes}MB", "-R", f"rusage[mem={request.megabytes}MB]"]
    gpus = ["-gpu", f"num={request.gpus}"] if request.gpus else []
    limits = ["-n", str(request.cores), "-W", str(request.minutes), *memory, *gpus]
    return ["bsub", "-J", NAME, *limits, "-o", f"{LOGS}/%J.log", "sh", request.script]


def htcondor(request: Request) -> str:
    """Return the description of a job for condor_submit; folders are shared with the nodes."""
    gpus = f"request_gpus = {request.gpus}\n" if request.gpus else ""
    return (
        f"executable = /bin/sh\narguments = {request.script}\ninitialdir = {Path.cwd()}\n"
        f"getenv = True\nshould_transfer_files = NO\nlog = {LOGS}/htcondor.log\n"
        f"output = {LOGS}/$(Cluster).log\nerror = {LOGS}/$(Cluster).log\n"
        f"request_cpus = {request.cores}\nrequest_memory = {request.megabytes}\n{gpus}"
        f"allowed_job_duration = {request.minutes * 60}\nqueue\n"
    )


SCHEDULERS = {
    "qsub": Scheduler(
        submit=pbs,
        description=lambda request: "",
        number=r"(\S+)",
        state=[["qstat", "-x", "-f"]],
        success=r"job_state = F\b.*Exit_status = 0\b",
        failed=r"job_state = F\b",
        unknown="Unknown Job",
        cancel="qdel",
    ),
    "bsub": Scheduler(
        submit=lsf,
        description=lambda request: "",
        number=r"Job <(\d+)>",
        state=[["bjobs", "-noheader", "-o", "stat"]],
        success="DONE",
        failed="EXIT",
        unknown="is not found",
        cancel="bkill",
    ),
    "condor_submit": Scheduler(
        submit=lambda request: ["condor_submit", "-terse", "-"],
        description=htcondor,
        number=r"(\d+)\.",
        state=[
            ["condor_q", "-af", "JobStatus", "ExitCode"],
            ["condor_history", "-limit", "1", "-af", "JobStatus", "ExitCode"],
        ],
        success=r"^4 0\b",
        failed=r"^[345]\b",  # removed, completed, held
        unknown="$.",  # nothing: condor_q and condor_history then succeed
        cancel="condor_rm",
    ),
}


def scheduler() -> Scheduler:
    """Return the installed scheduler."""
    names = [os.environ.get("FEDSAMPLING_SCHEDULER"), *filter(shutil.which, SCHEDULERS)]
    for name in filter(None, names):
        if name in SCHEDULERS:
            return SCHEDULERS[name]
        sys.exit(f"FEDSAMPLING_SCHEDULER={name}: must be {', '.join(SCHEDULERS)}")
    sys.exit(f"no scheduler: none of {', '.join(SCHEDULERS)} is installed")


def submit(script: str) -> str:
    """Submit a job script of Snakemake; return the job's number."""
    request = requested(Path(script).read_text("utf-8"), script)
    LOGS.mkdir(parents=True, exist_ok=True)
    # By this the job knows when to save a checkpoint and stop.
    limit = {"FEDSAMPLING_SECONDS_LEFT": str(request.minutes * 60)}
    used = scheduler()
    result = subprocess.run(
        used.submit(request),
        input=used.description(request),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | limit,
    )
    match = re.search(used.number, result.stdout)
    if not match:
        sys.exit(f"the scheduler printed no number of a job: {result.stdout}")
    return match[1]


def requested(text: str, script: str) -> Request:
    """Return what a job script asks for, from the line that Snakemake writes into it."""
    line = re.search(r"^# properties = (.*)$", text, flags=re.MULTILINE)
    properties: Mapping[str, Any] = json.loads(line[1]) if line else {}
    resources = properties.get("resources", {})
    return Request(
        script=script,
        cores=properties.get("threads", 1),
        minutes=resources.get("runtime", 30),
        megabytes=resources.get("mem_mb", 2000),
        gpus=resources.get("gpu", 0),
    )


def status(number: str) -> str:
    """Return ``running``, ``success`` or ``failed``; a job that nobody knows has failed.

    If the scheduler does not answer, the job may still run.
    """
    used = scheduler()
    answers = True
    for command in used.state:
        result = subprocess.run([*command, number], capture_output=True, text=True)
        if result.returncode:
            answers &= re.search(used.unknown, result.stdout + result.stderr) is not None
            continue
        if not result.stdout.strip():
            continue
        if re.search(used.success, result.stdout, flags=re.DOTALL):
            return "success"
        return "failed" if re.search(used.failed, result.stdout) else "running"
    return "failed" if answers else "running"


def cancel(numbers: Sequence[str]) -> None:
    """Cancel jobs."""
    subprocess.run([scheduler().cancel, *numbers], check=False)
