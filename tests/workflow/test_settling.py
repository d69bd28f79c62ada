"""The runs that a claim without verdict still requires."""

import json
import re
from pathlib import Path

import pytest

from fedsampling.evidence.provenance import UNVERIFIED, RunEvidence
from fedsampling.runs import resources
from fedsampling.runs.resources import Measured
from fedsampling.workflow import drawing
from fedsampling.workflow.plan import plan

PAPERS = Path(__file__).parents[2] / "papers"
LATENCY = "harshvardhan2025latency"


@pytest.fixture
def due(tmp_path, monkeypatch):
    """Jobs of 24 runs in all, whose speeds are shipped: a second for each round of a job."""
    monkeypatch.setattr(drawing, "PUBLISHED", tmp_path)
    jobs = plan({"papers": [LATENCY], "scale": "paper"}, PAPERS).jobs.values()
    femnist = [job for job in jobs if job.experiment == "femnist" and job.case == "synthetic"]
    resources.save_measurements(
        {resources.measurement_key(job): Measured(1.0) for job in femnist}, tmp_path
    )
    return femnist


def test_missing_runs_hours_and_command_are_shown(due):
    hours = sum(job.steps for job in due) / 3600
    sentence = drawing._settles(LATENCY, due, RunEvidence())
    assert sentence.startswith("24 runs of the paper's size (up to about ")
    (number,) = re.findall(r"about ([\d.,]+) hours", sentence)
    assert float(number.replace(",", "")) == pytest.approx(hours, 0.05)
    assert sentence.endswith(f": snakemake --cores all {LATENCY} --config scale=paper")


def test_unknown_times_and_unverified_copies_are_shown(due, tmp_path):
    (tmp_path / resources.MEASURED).unlink()
    sentence = drawing._settles(LATENCY, due[:1], RunEvidence(obstacles=(UNVERIFIED,)))
    assert sentence.startswith("1 run of the paper's size: ")
    assert sentence.endswith("this copy has none")


def test_a_claim_with_published_runs_needs_no_more_runs(pipeline):
    path = pipeline.results / "claims" / "rizk2022importance.json"
    claims = json.loads(path.read_text(encoding="utf-8"))["claims"]
    assert {claim["settles"] for claim in claims} == {"snakemake --cores all --config scale=best"}
