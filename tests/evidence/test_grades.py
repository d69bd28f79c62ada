"""A verdict is withheld where the evidence is not of the paper's scale or data."""

import pytest

from fedsampling.evidence.grades import PRELIMINARY, graded, not_run
from fedsampling.evidence.provenance import RunEvidence
from fedsampling.evidence.rules import verdict
from fedsampling.evidence.verdicts import Finding

SMALLER = RunEvidence("reduced", ("reduced scale",), True, 5, "2 of 4 experiments")
RULES = ("reproduced", "partly reproduced", "contradicted", "inconclusive")
PAPER, UNVERIFIED = RunEvidence("paper"), RunEvidence("paper", ("unverified copy",), True, 3)


@pytest.mark.parametrize(
    ("evidence", "transfer", "grade", "prefix"),
    [
        (PAPER, False, "paper's size", ""),
        (PAPER, True, "transfer", ""),
        (UNVERIFIED, False, "paper's size on unverified data", ""),
        (SMALLER, False, "preliminary", "Preliminary (reduced scale). "),
    ],
)
@pytest.mark.parametrize("verdict", RULES)
def test_only_smaller_runs_have_words_of_their_own(verdict, evidence, transfer, grade, prefix):
    result = graded(Finding(verdict, "5 dB", "Because."), evidence, transfer)
    expected = PRELIMINARY[verdict] if evidence is SMALLER else verdict
    assert (result.verdict, result.grade, result.ours) == (expected, grade, "5 dB")
    assert result.reason == f"{prefix}Because."


def test_runs_that_are_no_evidence_or_of_other_cases_give_no_verdict():
    quick = RunEvidence("quick", ("quick scale", "embedded data"))
    result = graded(Finding("reproduced", "5 dB", "Because."), quick)
    assert (result.verdict, result.grade) == ("not run", "not run")
    reason = "These runs are not evidence: quick scale and embedded data. Trial of the rule: "
    assert result.reason == f"{reason}reproduced."
    result = graded(verdict({}, "–", {}), SMALLER)
    assert (result.verdict, result.grade) == ("not run", "not run")
    assert result.reason == "There is nothing to compare."


def test_experiments_that_were_not_run_are_named():
    reasons = {"mnist": "too long", "cifar": "no data", "femnist": "too long"}
    reason = "Not run: mnist, femnist: too long; cifar: no data."
    assert not_run(reasons) == Finding("not run", "–", reason, grade="not run")
