"""The first screen and the README's table count verdicts by paper and grade."""

from dataclasses import replace
from types import SimpleNamespace

from fedsampling.evidence.verdicts import Claim, Declaration, Interval
from fedsampling.report.content import Chapter
from fedsampling.report.overview import answers, headline, main_outcomes, readme_table, summary

UNVERIFIED = "paper's size on unverified data"


def claim(verdict, grade="paper's size", kind="empirical"):
    return Claim("c", "", "", "", "", "", verdict, "", "", grade=grade, kind=kind)


def test_a_row_counts_the_verdicts_of_each_grade_and_the_code_checks():
    claims = [
        claim("reproduced"),
        claim("reproduced"),
        claim("contradicted"),
        claim("supports", "preliminary"),
        claim("not run", "not run"),
        claim("reproduced", kind="code check"),
        claim("supports", "preliminary", kind="code check"),
        claim("contradicted", kind="code check"),
        claim("reproduced", UNVERIFIED),
        claim("contradicted", kind="text against tables"),
    ]
    paper = SimpleNamespace(authors="A B, C D", year=2022)
    *_, row = readme_table({"ours": (paper, []), "a2022b": (paper, claims)}).splitlines()
    assert row == (
        "| [B et al., 2022](papers/a2022b/paper.yaml) | 2 reproduced, 1 contradicted "
        "| 1 reproduced |  | 1 supports | 1 | 0 of 1 agree | 2 of 3 pass |"
    )


def paper(*claims):
    spec = SimpleNamespace(key="a2022b", authors="A B", year=2022)
    return Chapter(spec, "", (), claims)


def test_the_first_screen_names_claims_that_hold_and_those_that_do_not():
    held, failed = claim("reproduced", "transfer"), claim("contradicted")
    first = paper(held, failed, claim("reproduced", kind="code check"), claim("not run", "not run"))
    second = paper(claim("inconclusive"), claim("opposes", "preliminary"))
    outcomes = main_outcomes([first, second])
    assert outcomes == {"Holds": ((first, held),), "Does not hold": ((first, failed),)}
    assert summary([first, second]) == [
        "We tested 4 of 5 empirical claims of 2 papers.",
        "At the paper's size on verified data: 1 contradicted and 1 inconclusive.",
        "The evidence map shows the other 2, with weaker evidence.",
    ]


def test_the_summary_says_when_rules_were_written():
    assert main_outcomes([paper()]) == {}
    seen = replace(claim("inconclusive"), declared=Declaration("after seeing", "2026-11-22", "."))
    before = replace(seen, declared=Declaration("before", "2026-11-22", "."))
    *_, last = summary([paper(seen, before)])
    assert last.startswith("1 of the 2 rules that decide were written or changed after")


def test_a_claim_that_holds_shows_our_number_with_the_papers_and_its_parts():
    ours = Interval("random over FLANP", "times", 3.52, 3.31, 3.74, paper=3.12)
    held = replace(
        claim("reproduced"), topic="Rotated MNIST", reason="FLANP is fastest.", drawn=(ours,),
        parts={"FLANP first": "holds", "the gain of the new sampler": "fails"},
    )  # fmt: skip
    assert headline(held) == (
        "Rotated MNIST. FLANP is fastest. Random over FLANP: 3.52 [3.31, 3.74] (paper 3.12)."
    )
    assert answers(held) == "Holds: FLANP first. Fails: the gain of the new sampler."
