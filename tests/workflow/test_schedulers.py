"""PBS, LSF and HTCondor: their commands are stand-ins that record calls and run jobs here."""

import importlib.util
import os
import shutil
import sys
import time

import pytest
from tests.checkout import Checkout, copy_project
from tests.shared import ROOT

SUBMITTERS = ["qsub", "bsub", "condor_submit"]
SCRIPT = (
    '#!/bin/sh\n# properties = {"threads": 2, "resources": {"mem_mb": 4000, "runtime": 90%s}}\n'
)
# Runs the job in the background; its number is that of its folder.
FAKE = {
    "qsub": """for script; do :; done; run "$script"; echo $number.server""",
    "bsub": """for script; do :; done; run "$script"; echo "Job <$number> is submitted to <x>." """,
    "condor_submit": """
run $(sed -n 's/^arguments = //p' call/$number.in); echo "$number.0 - $number.0" """,
    "qstat": """
code=$(cat call/$number.code 2>/dev/null)
[ -z "$code" ] && echo "job_state = R" || printf 'job_state = F\\n Exit_status = %s\\n' $code""",
    "bjobs": """
code=$(cat call/$number.code 2>/dev/null)
[ -z "$code" ] && echo RUN || { [ $code = 0 ] && echo DONE || echo EXIT; }""",
    "condor_q": """[ -e call/$number.code ] || echo 2 undefined""",
    "condor_history": """[ -e call/$number.code ] && echo 4 $(cat call/$number.code)""",
}
FAKE |= dict.fromkeys(["qdel", "bkill", "condor_rm"], "true")
OF = {
    "qsub": ["qsub", "qstat", "qdel"],
    "bsub": ["bsub", "bjobs", "bkill"],
    "condor_submit": ["condor_submit", "condor_q", "condor_history", "condor_rm"],
}
HEAD = """#!/bin/bash
cd {folder}
name=$(basename $0)
case $name in
    qsub | bsub | condor_submit)
        number=$$; cat > call/$number.in; echo "$name $*" > call/$number.call ;;
    *)
        for number; do :; done; number=${{number%.server}}; echo "$name $*" >> calls ;;
esac
run() {{
    echo "$FEDSAMPLING_SECONDS_LEFT" > call/$number.seconds
    ( cd {project} && sh "$1" > {folder}/call/$number.out 2>&1; echo $? > {folder}/call/$number.new
      mv {folder}/call/$number.new {folder}/call/$number.code ) > /dev/null 2>&1 &
}}
"""


def install(folder, submitter, project):
    (folder / "call").mkdir(parents=True)
    for name in OF[submitter]:
        (folder / name).write_text(HEAD.format(folder=folder, project=project) + FAKE[name] + "\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def schedulers(monkeypatch):
    spec = importlib.util.spec_from_file_location(
        "schedulers", ROOT / "profiles/generic/schedulers.py"
    )
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "schedulers", module)
    spec.loader.exec_module(module)
    monkeypatch.delenv("FEDSAMPLING_SCHEDULER", raising=False)
    return module


@pytest.fixture
def installed(tmp_path, monkeypatch):
    def add(submitter):
        folder = install(tmp_path / "bin", submitter, tmp_path)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.chdir(tmp_path)
        return folder

    return add


@pytest.mark.parametrize(
    ("submitter", "gpu", "words"),
    [
        ("qsub", 0, "select=1:ncpus=2:mem=4000mb -l walltime=5400 "),
        ("qsub", 1, "select=1:ncpus=2:mem=4000mb:ngpus=1 -l walltime=5400 "),
        ("bsub", 0, "-n 2 -W 90 -M 4000MB -R rusage[mem=4000MB] -o"),
        ("bsub", 1, "-n 2 -W 90 -M 4000MB -R rusage[mem=4000MB] -gpu num=1 "),
        ("condor_submit", 0, "request_memory = 4000\nallowed_job_duration = 5400\nqueue"),
        ("condor_submit", 1, "request_memory = 4000\nrequest_gpus = 1\n"),
    ],
)
def test_resources_arrive(schedulers, installed, tmp_path, submitter, gpu, words):
    folder = installed(submitter)
    script = tmp_path / "job.sh"
    script.write_text(SCRIPT % (', "gpu": 1' if gpu else ""))
    schedulers.submit(str(script))
    (call,) = folder.glob("call/*.call")
    assert words in call.read_text() + call.with_suffix(".in").read_text()
    (seconds,) = folder.glob("call/*.seconds")
    assert seconds.read_text() == "5400\n"  # when the job saves a checkpoint and stops


@pytest.mark.parametrize(("code", "state"), [(0, "success"), (75, "failed")])
@pytest.mark.parametrize("submitter", SUBMITTERS)
def test_the_state_of_a_job_is_that_of_its_script(
    schedulers, installed, tmp_path, submitter, code, state
):
    installed(submitter)
    (tmp_path / "job.sh").write_text(
        f"{SCRIPT % ''}while [ ! -e go ]; do sleep 0.05; done\nexit {code}"
    )
    number = schedulers.submit(str(tmp_path / "job.sh"))
    assert schedulers.status(number) == "running"
    (tmp_path / "go").touch()
    deadline = time.monotonic() + 60
    while (now := schedulers.status(number)) == "running" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert now == state


@pytest.mark.parametrize(
    ("submitter", "answer", "state"),
    [
        ("qsub", "echo qstat: cannot connect to server >&2; exit 1", "running"),
        ("qsub", "echo qstat: Unknown Job Id 7.server >&2; exit 153", "failed"),
        ("bsub", "echo LSF is down. Please wait ... >&2; exit 255", "running"),
        ("bsub", "echo 'Job <7> is not found' >&2; exit 255", "failed"),
        ("condor_submit", "echo Failed to connect >&2; exit 1", "running"),
        ("condor_submit", "true", "failed"),
    ],
)
def test_a_job_fails_only_if_the_scheduler_answers(schedulers, installed, submitter, answer, state):
    folder = installed(submitter)
    for name in OF[submitter]:
        (folder / name).write_text(f"#!/bin/sh\n{answer}\n")
    assert schedulers.status("7") == state


@pytest.mark.parametrize("submitter", SUBMITTERS)
def test_jobs_are_cancelled(schedulers, installed, submitter):
    folder = installed(submitter)
    schedulers.cancel(["7", "8"])
    assert (folder / "calls").read_text() == f"{OF[submitter][-1]} 7 8\n"


def test_without_a_scheduler_there_is_a_line(schedulers, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="no scheduler"):
        schedulers.scheduler()


@pytest.mark.long
@pytest.mark.parametrize("submitter", SUBMITTERS)
def test_the_profile_runs_an_experiment_on_the_scheduler(tmp_path, submitter):
    pytest.importorskip("snakemake_executor_plugin_cluster_generic")
    root = tmp_path / "project"
    copy_project(root, "papers/fraboni2022general")
    folder = install(tmp_path / "bin", submitter, root)
    path = f"{folder}{os.pathsep}{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    project = Checkout(root, PATH=path)
    shutil.copy(ROOT / "config.yaml", root)
    status, output = project.call(
        *("snakemake", "--workflow-profile", "profiles/generic", "--latency-wait", "5"),
        *("--config", "scale=quick", "data=embedded", "--", "fraboni2022general/weights"),
    )
    assert status == 0, output
    assert (root / "results/claims/fraboni2022general.json").is_file()
    calls = [path.read_text() for path in folder.glob("call/*.call")]
    assert calls
    assert not any(path.read_text().strip() != "0" for path in folder.glob("call/*.code"))


APPTAINER = """#!/bin/bash
[ "$1" = --version ] && { echo apptainer version 1.3.0; exit; }
echo "$*" >> %s/calls
for command; do :; done
for word; do [ "$word" = -c ] && exec bash -c "$command"; done
"""


@pytest.mark.long
def test_jobs_run_in_the_image_that_the_environment_names(tmp_path):
    root = tmp_path / "project"
    copy_project(root, "papers/fraboni2022general")
    shutil.copy(ROOT / "config.yaml", root)
    bins = tmp_path / "bin"
    bins.mkdir()
    (bins / "apptainer").write_text(APPTAINER % tmp_path)
    (bins / "apptainer").chmod(0o755)
    (tmp_path / "image.sif").touch()
    path = f"{bins}{os.pathsep}{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    project = Checkout(root, PATH=path, FEDSAMPLING_IMAGE=str(tmp_path / "image.sif"))
    status, output = project.call(
        *("snakemake", "--cores", "1", "--software-deployment-method", "apptainer"),
        *("--config", "scale=quick", "data=embedded", "--", "fraboni2022general/weights"),
    )
    assert status == 0, output
    calls = (tmp_path / "calls").read_text()
    assert "image.sif" in calls
    assert "fedsampling run" in calls
