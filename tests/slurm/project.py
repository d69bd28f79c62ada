"""A copy of the project in which a test runs Snakemake on the cluster, or without it."""

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.checkout import Checkout, copy_project

CACHES = ("XDG_CACHE_HOME", "MPLCONFIGDIR")
TOY = "fraboni2022general"  # whose one experiment the toy stands in for
PATIENCE = 300.0  # seconds that a test waits for anything


@dataclass(frozen=True)
class User:
    """Who runs Snakemake, and with which Python."""

    name: str | None  # None for who runs the tests
    python: str
    packages: str  # folder of the packages that it reads

    @property
    def identity(self):
        """What subprocess takes to run something as this user."""
        if self.name is None:
            return {}
        return {"user": self.name, "group": pwd.getpwnam(self.name).pw_gid, "extra_groups": []}


class Project(Checkout):
    """A copy that belongs to a user; `environment` says where the cluster's clients are."""

    def __init__(self, root, environment, user):
        copy_project(root, "papers")
        bins = root / "bin"
        bins.mkdir()
        for name, module in (("snakemake", "snakemake"), ("fedsampling", "fedsampling.cli")):
            (bins / name).write_text(f'#!/bin/sh\nexec {user.python} -m {module} "$@"\n')
            (bins / name).chmod(0o755)
        path = f"{bins}{os.pathsep}{environment.get('PATH', os.environ['PATH'])}"
        own = {"PATH": path, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{user.packages}"}
        own |= {"HOME": str(root)} | dict.fromkeys(CACHES, str(root / "cache"))
        super().__init__(root, **environment | own)
        self.user, self.identity = user.name, user.identity
        self.target = ()
        self.live = []
        self.give_to_user()

    def give_to_user(self):
        """Give everything to the user, also what the test has written since."""
        if self.user:
            owner = pwd.getpwnam(self.user)
            for path in (self.root, *self.root.rglob("*")):
                os.chown(path, owner.pw_uid, owner.pw_gid, follow_symlinks=False)

    def configure(self, **content):
        (self.root / "config.yaml").write_text(
            yaml.safe_dump({"scale": "quick", "data": "embedded"} | content)
        )
        self.give_to_user()

    def play(self, behaviours, **config):
        """Put the toy in place of an experiment, with one job for each behaviour."""
        shutil.copy2(
            Path(__file__).with_name("toy.py"),
            self.root / "src/fedsampling/experiments/simulations",
        )
        self.edit(
            "src/fedsampling/experiments/simulations/weights.py",
            'name="weights"',
            'name="replaced"',
        )

        def replace(paper):
            weights = paper["experiments"]["weights"]
            weights |= {
                "cases": {"toy": next(iter(weights["cases"].values()))},
                "samplers": {name: {"name": name} for name in behaviours},
                "quick": {},
            }

        self.keep(TOY, "weights", replace)
        self.toy(behaviours)
        # An experiment with an override has a process for each job.
        overrides = {TOY: {"weights": {"title": "Toy"}}}
        self.configure(papers=[TOY], overrides=overrides, **config)

    def keep(self, paper, experiment, change):
        """Change an experiment of a paper, and leave nothing else of it."""

        def leave(content):
            change(content)
            experiments = {experiment: content["experiments"][experiment]}
            content |= {"experiments": experiments, "artefacts": {}, "claims": {}, "confirm": {}}

        self.edit_paper(paper, leave)
        self.target = (paper,)

    def toy(self, behaviours):
        """Say what the toy's jobs do from now on."""
        (self.root / "toy.json").write_text(json.dumps(behaviours))

    def command(self, *arguments, slurm=True, jobs=6):
        """Return how Snakemake is called."""
        cluster = ("--workflow-profile", "profiles/slurm", "--jobs", str(jobs))
        cluster += ("--slurm-init-seconds-before-status-checks", "2", "--latency-wait", "10")
        how = cluster if slurm else ("--cores", "2")
        arguments = (str(self.root / "bin" / "snakemake"), *how, *arguments, *self.target)
        return super().command(*arguments) | self.identity

    def snakemake(self, *arguments, **options):
        """Run Snakemake, which must succeed; return its output."""
        status, output = self.call(*arguments, **options)
        assert status == 0, output[-6000:]
        return output

    def started(self, *arguments, jobs=6):
        """Start Snakemake and go on."""
        self.live.append(Started(self, *arguments, jobs=jobs))
        return self.live[-1]

    def end(self):
        """End what a failed test has left running."""
        for started in self.live:
            if started.process.poll() is None:
                started.process.kill()
                started.process.wait()

    def computed(self):
        """Return the rounds that the toy computed: sampler, seed, round."""
        path = self.root / "toy.log"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(name, int(seed), int(t)) for name, seed, t, _ in map(str.split, lines)]

    def jobs(self, sampler):
        """Return the SLURM jobs that computed a toy's rounds, in order."""
        lines = (self.root / "toy.log").read_text().splitlines()
        return list(dict.fromkeys(line.split()[3] for line in lines if line.startswith(sampler)))

    def results(self):
        """Return all that must not depend on where it was made: tables, digests and verdicts."""
        return self.made_files("runs/**/*.json", "claims/*.json", "artefacts/**/*.csv")


class Started:
    """A Snakemake that runs beside the test, in a session of its own."""

    def __init__(self, project, *arguments, jobs):
        self.project, self.path = project, project.root / "snakemake.out"
        # Where the tests are a shell's background job, Ctrl-C would be ignored in here as well.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with self.path.open("w") as output:
            self.process = subprocess.Popen(
                **project.command(*arguments, jobs=jobs),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self):
        return self.path.read_text()

    def end(self, how=None):
        """Wait for its end, after a signal if one is given; return its exit status."""
        if how:
            os.kill(self.process.pid, how)
        try:
            return self.process.wait(timeout=2 * PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(self.output[-6000:]) from None

    def until(self, happened, description):
        """Wait for something that cannot happen any more once it has ended."""

        def seen():
            ended = self.process.poll() is not None  # checked first: it may happen just before
            result = happened()
            assert result or not ended, (
                f"Snakemake ended before {description}:\n{self.output[-6000:]}"
            )
            return result

        return until(seen, description)

    def failures(self):
        """Count the failures of jobs that it has noticed."""
        return len(re.findall(r"SLURM-job '\d+' failed", self.output))


def until(happened, description, seconds=PATIENCE):
    """Wait for something; return it."""
    deadline = time.monotonic() + seconds
    while not (result := happened()):
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain: {description}"
        time.sleep(0.3)
    return result
