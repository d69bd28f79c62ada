"""A verdict is withheld where the evidence is not of the paper's scale or data."""

import numpy as np
import pytest

from fedsampling.evidence.provenance import Standing
from fedsampling.evidence.statistics import Estimate
from fedsampling.evidence.verdicts import (
    INDICATIONS,
    VERDICTS,
    Finding,
    above,
    beyond,
    close,
    judge,
    stated,
    verdict,
)


@pytest.mark.parametrize("verdict", VERDICTS[:-1])
def test_a_finding_without_obstacles_stands(verdict):
    finding = Finding(verdict, "5 dB", "Because.")
    assert judge(finding, Standing("paper", seeds=10)) == finding


@pytest.mark.parametrize("verdict", VERDICTS[:-1])
def test_smaller_runs_indicate_and_never_judge(verdict):
    standing = Standing("reduced", ("reduced scale",), True, 5, "2 of 4 experiments")
    found = judge(Finding(verdict, "5 dB", "Because."), standing)
    assert (found.verdict, found.indication) == ("not evaluated", INDICATIONS[verdict])
    assert found.ours == "5 dB"
    assert found.reason == "No verdict: reduced scale. Because."


def test_runs_that_indicate_nothing_say_no_more_than_that():
    found = judge(
        Finding("reproduced", "5 dB", "Because."),
        Standing("quick", ("quick scale", "embedded data")),
    )
    assert (found.verdict, found.indication) == ("not evaluated", "")
    assert found.reason == "Runs, not evidence: quick scale and embedded data."


def test_smaller_runs_of_other_cases_than_the_rule_asks_for_are_no_evidence():
    standing = Standing("reduced", ("reduced scale",), True, 5)
    found = judge(verdict({}, "–", {}), standing)
    assert (found.verdict, found.indication) == ("not evaluated", "")
    assert found.reason == "No verdict: reduced scale. There is nothing to compare."


def test_parts_hold_fail_or_stay_open_by_their_intervals():
    wide, high, low = Estimate(0.1, -1, 1, 5), Estimate(2, 1.5, 2.5, 5), Estimate(-2, -3, -1, 5)
    assert [above(each, 0.5) for each in (wide, high, low)] == ["open", "holds", "fails"]
    assert [beyond(each, 2) for each in (wide, high, low)] == ["fails", "open", "fails"]
    assert [close(each, each, 2, 0.6) for each in (wide, high, low)] == ["fails", "holds", "fails"]
    assert [stated(each) for each in (True, False, None)] == ["holds", "fails", "open"]
    nothing = Estimate(1, np.nan, np.nan, 1)
    assert [above(nothing, 0), beyond(nothing, 0), close(nothing, nothing, 1, 9)] == ["open"] * 3


@pytest.mark.parametrize(
    ("parts", "rule", "expected"),
    [
        (["holds", "holds"], {}, "reproduced"),
        (["holds", "open"], {}, "partly"),
        (["holds", "open"], {"partly": False}, "inconclusive"),
        (["holds", "fails"], {}, "contradicted"),
        (["holds", "fails"], {"contrary_decides": False}, "partly"),
        (["open", "fails"], {"contrary_decides": False}, "contradicted"),
        (["open", "open"], {}, "inconclusive"),
        ([], {}, "not evaluated"),
    ],
)
def test_verdict_of_parts(parts, rule, expected):
    found = verdict(dict(zip("ab", parts, strict=False)), "ours", {}, **rule)
    assert found.verdict == expected


def test_reason_names_the_parts_unless_it_is_given():
    parts = {"n = 10": "holds", "n = 20": "open"}
    assert verdict(parts, "", {}).reason == "It holds for n = 10; open for n = 20."
    assert verdict(parts, "", {"partly": "Only the small one."}).reason == "Only the small one."
