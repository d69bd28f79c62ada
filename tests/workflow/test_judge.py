"""The runs that a claim still requires: those of the paper's size, and those with fresh seeds."""

import json
from types import SimpleNamespace

import pandas as pd
import pytest
from tests.shared import PAPERS

from fedsampling.evidence.provenance import UNVERIFIED, RunEvidence
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import Finding
from fedsampling.experiments.config import parse
from fedsampling.experiments.papers import load_paper
from fedsampling.workflow.claim_context import Context
from fedsampling.workflow.confirm import FreshSeeds
from fedsampling.workflow.judge import _explored, _price, _settles
from fedsampling.workflow.plan import plan
from fedsampling.workflow.project import Project

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


@pytest.mark.parametrize(("changed", "grade"), [("", "paper's size"), ("m 5 (10)", "not run")])
def test_variants_that_a_rule_reads_are_assessed_like_its_experiments(monkeypatch, changed, grade):
    paper = load_paper(LATENCY, PAPERS)
    claim = paper.claims["c4"]
    assert claim.variants

    def summary(name):
        settings = {"seeds": [0, 1, 2], "cases": {"base": None}, "settings": {}}
        rows = pd.DataFrame({"case": "base", "sampler": "md", "seed": [0, 1, 2]})
        known = {"scale": "paper", "run_data": ["official"], "unverified": False, "seconds": 1.0}
        known["changed"] = [changed] if changed and name == claim.variants[-1] else []
        return Summary(rows, settings, known, {"base": known})

    monkeypatch.setattr(Context, "apply_rule", lambda *_: Finding("reproduced", "", ""))
    monkeypatch.setattr(Summary, "only", lambda self, _: self)
    names = [*claim.experiments, *claim.variants]
    project = SimpleNamespace(facts={"scale": "paper"})
    context = Context(paper, paper, project, {name: summary(name) for name in names}, {})
    explored = _explored("c4", context)
    assert explored.finding.grade == grade
    assert changed in explored.finding.reason


class TestPrice:
    PAPER = load_paper(LATENCY, PAPERS)

    def price(self, fresh, results):
        """Price c7 in a project without any finished run."""
        project = Project(parse({"papers": [LATENCY], "shipped": False}), results, PAPERS)
        return _price("c7", Context(self.PAPER, self.PAPER, project, {}, {}), fresh)

    def test_of_the_first_look(self, tmp_path):
        price = self.price(FreshSeeds(looks_left=(3, 5)), tmp_path)
        assert (price.seeds, price.look, price.looks, price.hours) == (3, 1, 2, None)
        assert price.command == f"fedsampling decide {LATENCY}/c7"

    def test_of_a_later_look(self, seen, tmp_path):
        price = self.price(FreshSeeds(seen, looks_left=(5,)), tmp_path)
        assert (price.seeds, price.look, price.looks) == (5, 2, 2)

    def test_after_the_last_look_no_command_decides_it(self, seen, tmp_path):
        price = self.price(FreshSeeds(seen), tmp_path)
        assert price.command == ""
        assert price.unreachable.startswith("No look of its plan is left; to go on, give")
        assert self.price(FreshSeeds(), tmp_path) is None
