"""The Snakemake workflow on a small checkout of its own, above all when it is interrupted."""

import compileall
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from tests.checkout import ROOT, Checkout, copy_project

PAPER = "rizk2022importance"
REGRESSION = {
    "dataset": {"agents": 20, "samples": 12},
    "samplers": {"isfedavg-approximate": None, "isfedavg-tracked-estimated": None},
    "rounds": 600,
    "every": 100,
    "seeds": [0, 1],
    "seed_block": 2,
}
ALL = {"simulate": 3, f"draw_{PAPER}": 1, "cards_without_files": 1, "report": 1, "all": 1}
NOTHING = "Nothing to be done"


class OnePaper(Checkout):
    """A checkout with one experiment of one paper."""

    def snakemake(self, *arguments):
        status, output = self.call("snakemake", "--cores", "2", *arguments)
        assert status == 0, output
        return output

    def due(self, *arguments):
        """Number of jobs by rule in a dry run."""
        output = self.snakemake("-n", *arguments)
        if NOTHING in output:
            return {}
        table = output.split("Job stats:")[1].split("total")[0]
        return {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", table, re.M)}

    def configure(self, **changes):
        """Write config.yaml."""
        overrides = {PAPER: {"regression": REGRESSION | changes.pop("regression", {})}}
        content = {
            "scale": "quick",
            "data": "embedded",
            "papers": [PAPER],
            "overrides": overrides,
        } | changes
        (self.root / "config.yaml").write_text(yaml.safe_dump(content))

    def manifests(self):
        """Return what was computed: runs and their digests by job."""
        return self.made_files("runs/**/*.json")

    @contextmanager
    def started(self, *arguments):
        """Start a command, and wait until its first run is stored."""
        with subprocess.Popen(
            **self.command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # A shell that starts the tests in the background ignores SIGINT, also for this command.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process:
            try:
                deadline = time.monotonic() + 200
                while not self.stored() and process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.05)
                yield process
            finally:
                process.kill()  # has no effect unless the test failed

    def interrupted(self, stop, *arguments):
        """Start a command, and send a signal to it and all its children in the second job."""
        with self.started(*arguments) as process:
            time.sleep(1.0)
            assert process.poll() is None, process.communicate()[0]
            os.killpg(process.pid, stop)
            output, _ = process.communicate(timeout=60)
        return process.returncode, output


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """Return a checkout where nothing has run; use :func:`copied` to change it."""
    root = tmp_path_factory.mktemp("workflow") / "fresh"
    copy_project(root, f"papers/{PAPER}")
    checkout = OnePaper(root)
    checkout.edit_paper(PAPER, shorten)
    for module in (root / "papers" / PAPER).glob("*.py"):  # the small run stands for the long ones
        text = module.read_text(encoding="utf-8")
        module.write_text(re.sub('"(longer|steady)"', '"regression"', text), encoding="utf-8")
    compileall.compile_dir(root / "src", quiet=1)  # its many processes then start sooner
    (root / ".venv").mkdir()  # so that the Makefile does not install: the tests' Python is ready
    (root / ".venv" / "ready").touch()
    checkout.configure()
    return checkout


def shorten(paper):
    """Leave one experiment, two artefacts and a claim."""
    del paper["confirm"]
    for part, *names in (
        ("experiments", "regression"),
        ("artefacts", "table1", "probabilities"),
        ("claims", "c2"),
    ):
        paper[part] = {name: paper[part][name] for name in names}
    paper["artefacts"]["probabilities"]["experiments"] = ["regression"]
    paper["claims"]["c2"] |= {"artefact": "probabilities", "experiments": ["regression"]}
    paper["claims"]["c2"]["variants"] = []


@pytest.fixture(scope="module")
def finished(fresh):
    """Return a checkout where everything has run; use :func:`copied` to change it."""
    root = fresh.root.parent / "finished"
    shutil.copytree(fresh.root, root)
    checkout = OnePaper(root)
    checkout.snakemake()
    return checkout


@pytest.fixture
def copied(tmp_path):
    def copy(checkout):
        shutil.copytree(checkout.root, tmp_path / "copy", symlinks=True)
        return OnePaper(tmp_path / "copy")

    return copy


def one_line(output):
    """Return the one line of ours in Snakemake's output, which holds no traceback."""
    assert "Traceback" not in output
    (line,) = {line for line in output.splitlines() if line.startswith("fedsampling: ")}
    return line


class TestWhole:
    def test_dry_run_lists_every_job_and_makes_nothing(self, fresh):
        assert fresh.due() == ALL
        assert not (fresh.root / "results").exists()

    def test_one_call_makes_every_result(self, finished):
        results = finished.root / "results"
        assert (results / "report" / "index.html").is_file()
        assert (results / "report" / f"{PAPER}.html").is_file()
        assert (results / "report" / "data.html").is_file()
        assert len(finished.stored()) == 6
        assert len(finished.manifests()) == 3
        claims = json.loads((results / "claims" / f"{PAPER}.json").read_text())["claims"]
        assert [claim["verdict"] for claim in claims] == ["not run"]
        benchmark = results / "benchmarks" / "simulate" / PAPER / "regression" / "base"
        assert len(list(benchmark.rglob("*.tsv"))) == 3

    def test_a_paper_is_a_target(self, fresh):
        assert fresh.due(PAPER) == {"simulate": 3, f"draw_{PAPER}": 1, PAPER: 1}


@pytest.mark.long
def test_unfinished_parts_are_reported_with_the_reason_and_in_the_status(
    fresh, copied, monkeypatch
):
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # where nobody listens
    checkout = copied(fresh)
    original = yaml.safe_load((ROOT / "papers" / PAPER / "paper.yaml").read_text())
    additions = {"experiments": "classification", "artefacts": "figure2", "claims": "c5"}
    for part, name in additions.items():
        checkout.edit_paper(
            PAPER, lambda paper, p=part, n=name: paper[p].update({n: original[p][n]})
        )
    checkout.configure(data="official", regression={"rounds": 100})
    status, output = checkout.call("snakemake", "--cores", "4", "--logger", "fedsampling")
    assert status == 1
    assert "steps that depend on them did not run" in output.splitlines()[-1]
    assert f"\n{PAPER}: unfinished: classification\n" in output
    assert "\nReport of the finished part, with the reasons: results/unfinished/" in output
    assert not (checkout.root / "results" / "report").exists()
    page = (checkout.root / "results" / "unfinished" / f"{PAPER}.html").read_text()
    assert "probabilities.svg" in page
    assert 'id="claim-c5"' in page
    assert "set mirror to that folder; run the same command to resume" in page


@pytest.mark.long(ci=True)
def test_an_added_seed_is_computed_alone_and_the_baseline_unchanged(finished, copied):
    checkout = copied(finished)
    results = checkout.root / "results"
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*.*")}
    checkout.configure(run="my-try", regression={"seeds": [0, 1, 2]})
    checkout.snakemake()
    after = {path: path.stat().st_mtime_ns for path in results.rglob("*.*")}
    assert before.items() <= after.items()
    new = {path.relative_to(results).parts[0] for path in after.keys() - before.keys()}
    assert new == {"my-try", "store"}
    assert len(checkout.stored()) == 9  # the six of the baseline are found
    page = (results / "my-try" / "report" / f"{PAPER}.html").read_text()
    assert "seeds 0, 1, 2 (" in page
    checkout.configure()
    assert checkout.due() == {}


def test_rules_quote_all_shell_arguments():
    rules = [ROOT / "Snakefile", *(ROOT / "workflow" / "rules").glob("*.smk")]
    calls = [
        line
        for path in rules
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\bfedsampling [a-z]+ ", line) and "{" in line
    ]
    assert len(calls) > 5
    assert [line for line in calls if re.search(r"\{[^}]*(?<!:q)\}", line)] == []


def test_files_of_any_name_reach_compare_as_one_argument(fresh, copied):
    checkout = copied(fresh)
    files = ["my scheme.py", "a$(touch HACKED).py", "it's`touch HACKED`;#.py", "--help.py"]
    for number, name in enumerate(files):
        (checkout.root / name).write_text(
            "from fedsampling import Scheme\n\n\n"
            f'class Mine(Scheme, name="mine{number}"):\n    """Everybody."""\n'
        )
    checkout.configure(schemes=files)
    stub = checkout.root / "bin" / "fedsampling"  # notes its arguments, and makes nothing
    stub.parent.mkdir()
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >>"$0.calls"\n')
    stub.chmod(0o755)
    path = f"PATH={stub.parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
    checkout.call("env", path, "snakemake", "--cores", "1", "--keep-going", "compare")
    calls = stub.with_suffix(".calls").read_text()
    assert all(f"\n--\n{name}\n" in calls for name in files)
    assert calls.count("--cores\n1\n") == len(files)  # as many as Snakemake has, not all
    assert not (checkout.root / "HACKED").exists()


class TestWhatRunsAgain:
    """Changes to what is asked for, in dry runs of a finished checkout."""

    def test_dates_comments_and_mirrors_do_not_matter(self, finished, copied):
        checkout = copied(finished)
        for path in (checkout.root / "src" / "fedsampling").rglob("*.py"):
            path.write_text(f"# Changed.\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
        for folder in ("papers", "workflow", "envs"):
            for path in (checkout.root / folder).rglob("*"):
                path.touch()
        (checkout.root / "Snakefile").touch()
        checkout.configure(mirror="/tmp", reuse=["/usr"])
        assert checkout.due() == {}

    @pytest.mark.long
    def test_a_drawing_process_that_never_started_is_repeated(self, finished, copied, tmp_path):
        """Snakemake forgets what it knew of the old files of a job that fails."""
        checkout = copied(finished)
        checkout.edit_paper(PAPER, lambda paper: paper.update(title="Another title"))
        path = checkout.environment["PATH"]
        program = tmp_path / "fedsampling"
        program.write_text(
            f'#!/bin/sh\n[ "$1" = draw ] && exit 137\nPATH="{path}" exec fedsampling "$@"\n'
        )
        program.chmod(0o755)
        checkout.environment["PATH"] = f"{tmp_path}:{path}"
        assert checkout.call("snakemake", "--cores", "1")[0] != 0
        checkout.environment["PATH"] = path
        assert checkout.due()[f"draw_{PAPER}"] == 1


class TestTwoCalls:
    """A folder of results has one plan at a time, even on a file system without locks."""

    @pytest.mark.long(ci=True)
    def test_a_second_call_is_refused_unless_it_is_named(self, fresh, finished, copied):
        checkout = copied(fresh)
        (checkout.root / "other.yaml").write_text("scale: quick\ndata: embedded\n")
        with checkout.started("snakemake", "--cores", "1", "--until", "simulate") as first:
            first.send_signal(signal.SIGSTOP)
            for command in (
                ("make", "smoke", "PYTHON=false"),
                ("fedsampling", "draw", PAPER, "--config", "other.yaml"),
            ):
                status, output = checkout.call(*command)
                assert status == 2, output
                owner = f"process {first.pid} on {platform.node()}"
                assert f"results: another call is running in this folder ({owner})" in output
            checkout.snakemake("--config", "run=other", "--until", "cards_without_files")
            first.send_signal(signal.SIGCONT)
            output, _ = first.communicate(timeout=400)
        assert first.returncode == 0, output
        assert checkout.manifests() == finished.manifests()


class TestInterruptions:
    @pytest.mark.long
    def test_after_sigint_the_next_start_completes(self, fresh, finished, copied):
        checkout = copied(fresh)
        make = ("make", "smoke", "CORES=1", "PYTHON=false")
        status, output = checkout.interrupted(signal.SIGINT, *make)
        assert status != 0
        assert "Traceback" not in output
        assert "Error in rule" not in output
        lines = [line for line in output.splitlines() if not line.startswith("make: ***")]
        assert lines[-1].startswith("Interrupted after ")
        assert "; run the same command to resume. Log: .snakemake/" in lines[-1]
        assert checkout.stored()
        assert checkout.due()["simulate"] == 2
        checkout.snakemake()
        assert checkout.manifests() == finished.manifests()

    @pytest.mark.long(ci=True)
    def test_after_sigkill_make_completes_with_the_same_results(self, fresh, finished, copied):
        checkout = copied(fresh)
        # PYTHON=false: should the Makefile think that it must install, it fails at once.
        make = ("make", "smoke", "CORES=1", "PYTHON=false")
        status, _ = checkout.interrupted(signal.SIGKILL, *make)
        assert status == -signal.SIGKILL
        before = checkout.stored()
        assert before
        assert len(checkout.manifests()) < 3
        status, output = checkout.call(*make)
        assert status == 0, output
        assert "Report: results/report/index.html" in output.splitlines()
        assert checkout.manifests() == finished.manifests()
        assert before.items() <= checkout.stored().items()
        assert NOTHING in checkout.snakemake()


def test_an_unknown_target_is_one_line_with_similar_names(fresh):
    status, output = fresh.call("snakemake", "-n", "results/claims/rizk.json")
    assert status == 2
    assert one_line(output).startswith(
        "fedsampling: target: 'results/claims/rizk.json' is unknown; "
        f"did you mean 'results/claims/{PAPER}.json' or "
    )
