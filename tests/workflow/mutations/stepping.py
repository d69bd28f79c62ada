"""The steps of the workflow without Snakemake: which are due, as Snakemake decides it, and running.

A step is due if its parameters differ from those of its last run, if an output is missing, or if a
step before it runs.  Each runs in a process of its own, which is forked, so that it starts at once.
"""

import contextlib
import io
import json
import os
import re
import sys
import traceback
from pathlib import Path

import matplotlib.pyplot  # noqa: F401 -- imported once, before the processes are forked
import torch
import torch.func

from fedsampling.base import machine
from fedsampling.base.errors import InputError
from fedsampling.experiments import config as configuration
from fedsampling.learning.training import checkpoint
from fedsampling.report import site  # noqa: F401
from fedsampling.runs import execute
from fedsampling.workflow import comparing, draw, fetch_data, recheck, report  # noqa: F401
from fedsampling.workflow.project import Project
from fedsampling.workflow.run import run_jobs

LAST = Path(".steps.json")  # parameters of the last runs, as in Snakemake's folder .snakemake
RESULTS = Path("results")


class Clock:
    """Times and memory are the same in all runs, so that equal results have equal bytes."""

    def __getattr__(self, name):
        return lambda *_, **__: self if name == "now" else 0.0

    def __sub__(self, other):
        return 0.0

    def __format__(self, spec):
        return "2026-01-01T00:00:00Z"


def alone(function, *arguments):
    """Run a function in a forked process; return its value, or raise an error with its output."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                torch.set_num_threads(1)
                execute.datetime = checkpoint.datetime = Clock()
                checkpoint.Checkpoint.seconds_so_far = lambda _: 1.0
                machine.peak_megabytes = lambda: 1.0
                value = function(*arguments)
            answer = {"value": value}
        except InputError as error:
            answer = {"error": "\n".join(error.lines)}
        except BaseException:
            answer = {"error": traceback.format_exc() + out.getvalue()}
        if answer.get("value") == 1:
            answer = {"error": out.getvalue()}
        with os.fdopen(write, "w") as stream:
            json.dump(answer, stream)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        answer = json.loads(stream.read() or '{"error": "killed"}')
    os.waitpid(child, 0)
    if "error" in answer:
        raise StepError(answer["error"])
    return answer["value"]


class StepError(Exception):
    """A step failed."""


def project():
    """Open the project of the working folder, as a job does."""
    sys.path.insert(0, str(Path("site-packages").absolute()))
    file = RESULTS / "config.json"
    if os.environ.get("FEDSAMPLING_CALL"):
        return Project.open(file)
    opened = Project(configuration.load(Path("config.yaml")), writes=True)
    opened.write()
    return opened


def planned():
    """Return each step's parameters, outputs and function, in their order."""
    opened = project()
    opened.write()  # as the Snakefile does
    plan = opened.plan
    made_from = getattr(opened, "made_from", opened.digests.get)
    of_job = getattr(opened, "job_made_from", plan.made_from)
    steps = []
    for name in plan.due:
        steps.append([f"run {name}", of_job(name), [f"runs/{name}.json"], []])
    for key in plan.papers:
        due = [f"run {job}" for job in plan.jobs_to_run(key)]
        steps.append([f"draw {key}", made_from(f"papers/{key}"), plan.report_inputs(key), due])
    for name in plan.cards:
        steps.append([f"card {name}", made_from(f"cards/{name}"), [f"cards/{name}.json"], []])
    before = [step[0] for step in steps if not step[0].startswith("run ")]
    if opened.config.computes is False:
        checked = made_from("recheck") if hasattr(opened, "made_from") else ""
        steps.append(["recheck", checked, ["recheck.json"], []])
        before.append("recheck")
    steps.append(["report", made_from("report"), ["report/index.html"], before])
    folder = str(opened.folder)
    return {"steps": steps, "call": opened.call, "folder": folder}


def run(name, opened=None):
    """Run a step, as its command does; return 1 if it fails."""
    opened = opened or project()
    kind, _, what = name.partition(" ")
    if kind == "run":
        return run_jobs([what], opened)
    if kind == "draw":
        return draw.draw(what, opened)
    if kind == "card":
        return len([*fetch_data.describe_each([what], opened, as_json=True, ship=False)]) * 0
    if kind == "recheck":
        return len(recheck.recheck(opened, seed=1)) * 0
    return len(str(report.build_report(opened))) * 0


def update(root):
    """Run the steps that are due; return their names, and the error that ended it, or ""."""
    last = json.loads((root / LAST).read_text()) if (root / LAST).is_file() else {}
    ran = []
    with contextlib.chdir(root):
        os.environ.pop("FEDSAMPLING_CALL", None)
        try:
            plan = alone(planned)
            os.environ["FEDSAMPLING_CALL"] = plan["call"]
            folder = Path(plan["folder"])
            of_folder = last.setdefault(plan["folder"], {})
            for name, params, outputs, before in plan["steps"]:
                missing = not all((folder / output).is_file() for output in outputs)
                if missing or of_folder.get(name) != params or set(before) & set(ran):
                    of_folder.pop(name, None)
                    if not name.startswith("draw "):  # whose outputs are updated
                        for output in outputs:
                            (folder / output).unlink(missing_ok=True)
                    ran.append(name)
                    alone(run, name)
                    of_folder[name] = params
            error = ""
        except StepError as failure:
            error = str(failure)
        finally:
            os.environ.pop("FEDSAMPLING_CALL", None)
            (root / LAST).write_text(json.dumps(last))
    return ran, error


def build(root):
    """Run all steps in a folder without results, in one process; return the error, or ""."""

    def run_all():
        plan = planned()
        os.environ["FEDSAMPLING_CALL"] = plan["call"]
        opened = project()
        return max(run(name, opened) for name, *_ in plan["steps"])

    with contextlib.chdir(root):
        os.environ.pop("FEDSAMPLING_CALL", None)
        try:
            alone(run_all)
        except StepError as failure:
            return str(failure)
    return ""


IGNORED = ("runs/", "made/", "plan.jsonl", "store/", "checkpoints/", "config.json", "data/", ".")


def results(root):
    """Return what readers see of the results: bytes by name."""
    folder = root / RESULTS
    content = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not name.startswith(IGNORED) and not name.endswith(".lock"):
            content[name] = path.read_bytes()
    return content


def differing(first, second):
    """Return the names of the results that differ."""
    return sorted(n for n in first.keys() | second.keys() if first.get(n) != second.get(n))


def message(error):
    """Return an error without folders."""
    return re.sub(r"/\S+/", "", error)
