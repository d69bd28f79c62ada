"""The runs that a claim without verdict still requires."""

import json

from tests.shared import PAPERS

from fedsampling.evidence.provenance import UNVERIFIED, RunEvidence
from fedsampling.workflow.judge import _settles
from fedsampling.workflow.plan import plan

LATENCY = "harshvardhan2025latency"


def test_missing_runs_command_and_unverified_copies_are_shown():
    jobs = plan({"papers": [LATENCY], "scale": "paper"}, PAPERS).jobs.values()
    due = [job for job in jobs if job.experiment == "femnist" and job.case == "synthetic"]
    command = f"snakemake --cores all {LATENCY} --config scale=paper"
    assert _settles(LATENCY, due, RunEvidence()) == f"24 runs of the paper's size: {command}"
    sentence = _settles(LATENCY, due[:1], RunEvidence(obstacles=(UNVERIFIED,)))
    assert sentence.startswith("1 run of the paper's size: ")
    assert sentence.endswith("this copy has none")


def test_a_claim_with_published_runs_needs_no_more_runs(pipeline):
    path = pipeline.results / "claims" / "rizk2022importance.json"
    claims = json.loads(path.read_text(encoding="utf-8"))["claims"]
    assert {claim["settles"] for claim in claims} == {"snakemake --cores all --config scale=best"}
