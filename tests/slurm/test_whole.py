"""The pipeline on SLURM, as an ordinary user: the same tables as without it, and nothing twice."""

import re
import shutil

import pandas as pd
import pytest
from tests.checkout import ROOT

from fedsampling.experiments.papers import load_paper

RIZK = "rizk2022importance"
SMALL = {
    "papers": [RIZK],
    "overrides": {
        RIZK: {
            **dict.fromkeys(load_paper(RIZK, ROOT / "papers").experiments),
            "classification": {"rounds": 100, "seeds": 3, "seed_block": 3},
        }
    },
}


@pytest.fixture(scope="module")
def finished(project):
    """Return a project that has run on the cluster, and Snakemake's output."""
    on_cluster = project("all of $HOME")  # which a shell would expand
    on_cluster.configure(**SMALL)
    return on_cluster, on_cluster.snakemake()


def test_results_equal_those_of_a_local_run_byte_for_byte(finished, project):
    local = project("local")
    local.configure(**SMALL)
    local.snakemake(slurm=False)
    files = finished[0].results()
    assert any(name.endswith(".csv") for name in files)
    assert files == local.results()


def test_simulations_and_drawing_were_submitted_and_the_report_was_not(finished):
    rules = {path.name for path in (finished[0].root / "logs" / "slurm").iterdir()}
    assert {"rule_simulate", "rule_cards_without_files", f"rule_draw_{RIZK}"} <= rules
    assert "rule_report" not in rules


def test_submitted_jobs_belong_to_the_user(finished, slurm):
    on_cluster, output = finished
    jobs = re.findall(r"submitted with SLURM jobid (\d+)", output)
    job = slurm.call("scontrol", "show", "job", jobs[0])
    assert f"UserId={on_cluster.user or 'root'}(" in job


def test_a_second_call_finds_nothing_to_do(finished):
    assert "Nothing to be done" in finished[0].snakemake()


def test_a_request_beyond_the_partitions_limit_is_named_at_once(finished):
    """It would be queued for ever; retries may ask for three times the 31 minutes of these jobs."""
    before = finished[1].partition("has been submitted")[0]
    assert re.search(r"jobs may request \d+ minutes, but partition cpu allows 60", before)


@pytest.fixture
def store(project, user):
    """Return a folder in which the users' group may write, as docs/cluster.md makes it."""
    folder = project("store-owner").root.with_name("store")
    folder.mkdir()
    shutil.chown(folder, group=user.name)
    folder.chmod(0o2775)
    return folder


@pytest.mark.long
def test_two_users_compute_each_run_once_and_get_the_same_results(project, store, user, colleague):
    copies = [project("store-one", who=user), project("store-two", who=colleague)]
    for copy in copies:
        copy.play({"full": {"rounds": 40}, "md": {"rounds": 40}}, store=str(store))
    for started in [copy.started() for copy in copies]:
        assert started.end() == 0, started.output[-6000:]
    assert sorted(copies[0].computed() + copies[1].computed()) == [
        (name, seed, t) for name in ("full", "md") for seed in [0] for t in range(40)
    ]
    assert copies[0].results() == copies[1].results()
    stored = [path for path in store.rglob("*") if path.is_file()]
    assert len(stored) == 2  # no lock, nothing half-written
    assert all(len(pd.read_parquet(path)) == 40 for path in stored)
