"""The first screen and the README's table count verdicts by paper and grade."""

from types import SimpleNamespace

from fedsampling.evidence.verdicts import Claim
from fedsampling.report.content import Chapter
from fedsampling.report.overview import main_outcomes, readme_table, summary


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
        claim("contradicted", kind="code check"),
    ]
    *_, row = readme_table({"ours": [], "a2022b": claims}).splitlines()
    assert row == (
        "| [a2022b](papers/a2022b/paper.yaml) | 2 reproduced, 1 contradicted |  | 1 supports | 1 "
        "| 1 of 2 pass |"
    )


def paper(*claims):
    spec = SimpleNamespace(key="a2022b", authors="A B", year=2022)
    return Chapter(spec, "", (), claims, {})


def test_the_first_screen_names_claims_that_hold_and_those_that_do_not():
    held, failed = claim("reproduced", "transfer"), claim("contradicted")
    first = paper(held, failed, claim("reproduced", kind="code check"), claim("not run", "not run"))
    second = paper(claim("inconclusive"), claim("opposes", "preliminary"))
    by_title = {outcome.title: outcome for outcome in main_outcomes([first, second])}
    assert by_title["Holds"].claims == ((first, held),)
    assert by_title["Does not hold"].claims == ((first, failed),)
    assert summary([first, second]) == [
        "Two papers make 5 empirical claims about client sampling; we tested 4.",
        "Of the 3 tested at the paper's size (1 on other data), 1 holds, 1 is contradicted and 1 "
        "has no clear answer.",
        "Of the 1 tested in smaller runs, 1 is opposed.",
    ]


def test_the_summary_says_if_no_claim_is_contradicted():
    assert main_outcomes([paper()]) == ()
    assert summary([paper(claim("reproduced"), claim("inconclusive"))])[1] == (
        "Of the 2 tested at the paper's size, 1 holds, none is contradicted and 1 has no clear "
        "answer."
    )


def test_without_a_contradiction_the_first_screen_names_preliminary_evidence_against():
    opposed = claim("opposes", "preliminary")
    chapter = paper(claim("reproduced"), opposed)
    failing = {outcome.title: outcome for outcome in main_outcomes([chapter])}["Does not hold"]
    assert failing.claims == ((chapter, opposed),)
    assert failing.text == "No claim at the paper's size. Smaller runs give evidence against:"
