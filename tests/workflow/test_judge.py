"""The runs that a claim still requires: of the paper's size, and of fresh seeds."""

import json
from dataclasses import replace

from tests.shared import PAPERS

from fedsampling.evidence.provenance import UNVERIFIED, RunEvidence
from fedsampling.evidence.verdicts import Finding
from fedsampling.experiments.papers import load_paper
from fedsampling.workflow.claim_context import Context
from fedsampling.workflow.confirm import FreshSeeds
from fedsampling.workflow.judge import Explored, _price, _settles
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


class TestPrice:
    PAPER = load_paper(LATENCY, PAPERS)
    CONTEXT = Context(PAPER, PAPER, None, {}, {})
    EXPLORED = Explored(Finding("inconclusive", "", ""), RunEvidence(seeds=2), seconds=7_200)

    def price(self, fresh, explored=EXPLORED):
        return _price("c7", self.CONTEXT, explored, fresh)

    def test_the_first_look_takes_as_long_as_exploring(self):
        price = self.price(FreshSeeds(looks_left=(3, 5)))
        assert (price.seeds, price.look, price.looks, price.hours) == (3, 1, 2, 3.0)
        assert price.command == f"fedsampling decide {LATENCY}/c7"
        unknown = Explored(self.EXPLORED.finding)
        assert self.price(FreshSeeds(looks_left=(3, 5)), unknown).hours is None

    def test_a_later_look_takes_as_long_as_the_fresh_seeds_before(self, seen):
        price = self.price(FreshSeeds(replace(seen, hours=0.3), looks_left=(5,)))
        assert (price.seeds, price.look, price.looks, price.hours) == (5, 2, 2, 0.2)

    def test_after_the_last_look_no_command_decides_it(self, seen):
        price = self.price(FreshSeeds(seen))
        assert price.command == ""
        assert price.unreachable.startswith("No look of its plan is left; to go on, give")
        assert self.price(FreshSeeds()) is None
