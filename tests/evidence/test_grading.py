"""A verdict is withheld where the evidence is not of the paper's scale or data."""

import pytest

from fedsampling.evidence.grading import PRELIMINARY, graded, not_run
from fedsampling.evidence.provenance import RunEvidence
from fedsampling.evidence.verdicts import Finding, verdict

SMALLER = RunEvidence("reduced", ("reduced scale",), True, 5, "2 of 4 experiments")
RULES = ("reproduced", "partly reproduced", "contradicted", "inconclusive")


@pytest.mark.parametrize(("transfer", "grade"), [(False, "paper's size"), (True, "transfer")])
@pytest.mark.parametrize("verdict", RULES)
def test_a_finding_without_obstacles_keeps_its_verdict(verdict, transfer, grade):
    finding = Finding(verdict, "5 dB", "Because.")
    result = graded(finding, RunEvidence("paper", seeds=10), transfer)
    assert (result.verdict, result.grade, result.reason) == (verdict, grade, "Because.")


@pytest.mark.parametrize("verdict", RULES)
def test_data_without_a_publishers_checksum_have_a_grade_of_their_own(verdict):
    evidence = RunEvidence("paper", ("unverified copy",), True, 3)
    result = graded(Finding(verdict, "5 dB", "Because."), evidence)
    assert (result.verdict, result.grade) == (verdict, "paper's size on unverified data")


@pytest.mark.parametrize("verdict", RULES)
def test_smaller_runs_are_preliminary_and_have_words_of_their_own(verdict):
    result = graded(Finding(verdict, "5 dB", "Because."), SMALLER)
    assert (result.verdict, result.grade) == (PRELIMINARY[verdict], "preliminary")
    assert result.ours == "5 dB"
    assert result.reason == "Preliminary (reduced scale). Because."


def test_runs_that_are_no_evidence_give_no_verdict():
    result = graded(
        Finding("reproduced", "5 dB", "Because."),
        RunEvidence("quick", ("quick scale", "embedded data")),
    )
    assert (result.verdict, result.grade) == ("not run", "not run")
    assert result.reason == "These runs are not evidence: quick scale and embedded data."


def test_runs_of_other_cases_than_the_rule_asks_for_are_no_evidence():
    result = graded(verdict({}, "–", {}), SMALLER)
    assert (result.verdict, result.grade) == ("not run", "not run")
    assert result.reason == "There is nothing to compare."


def test_experiments_that_were_not_run_are_named():
    reasons = {"mnist": "too long", "cifar": "no data", "femnist": "too long"}
    reason = "Not run: mnist, femnist: too long; cifar: no data."
    assert not_run(reasons) == Finding("not run", "–", reason, grade="not run")
