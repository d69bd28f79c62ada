"""The first screen and the README's table count verdicts by paper and grade."""

from dataclasses import replace
from types import SimpleNamespace

from fedsampling.evidence.claims import Claim, Confirmation, Declaration
from fedsampling.report.content import Chapter
from fedsampling.report.overview import claim_groups, claim_parts, of_kind, readme_table, summary
from fedsampling.report.standing import segments

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


CONFIRMED = Confirmation(
    *("contradicted", "", "", {"order": "fails"}, (), (), "paper's size", "training"),
    *(5, 2, (3, 5, 10), 0.5, "2026-11-28T20:00:00+00:00", "ab" * 20, "2026-11-28T21:00:00+00:00"),
)


def test_the_first_sentences_count_claims_and_their_parts():
    held = replace(claim("reproduced", "transfer"), parts={"order": "holds", "size": "holds"})
    half = replace(claim("partly reproduced"), parts={"order": "holds", "size": "open"})
    fresh = replace(claim("inconclusive"), parts={"order": "open"}, confirmation=CONFIRMED)
    first = paper(held, half, claim("reproduced", kind="code check"), claim("not run", "not run"))
    second = paper(fresh, claim("opposes", "preliminary"))
    assert summary([first, second]) == [
        "Of 5 experimental claims in two papers, 3 are answered: 1 reproduces, 2 are contradicted "
        "(1 in smaller runs); 2 we cannot decide. 1 of the 3 is confirmed by rules fixed before "
        "the runs.",
        "A claim is answered if all its parts are decided: of 7 parts, 5 are.",
        "2 of the 3 answers rest on smaller runs, unverified data or other data.",
    ]
    bars = segments(of_kind("empirical", [first, second]))
    assert [(bar.key, bar.count, bar.confirmed) for bar in bars] == [
        ("reproduced", 1, 0),
        ("contradicted", 2, 1),
        ("open", 2, 0),
    ]


def test_the_verdict_of_fresh_seeds_stands_if_they_answer_the_claim():
    explored = replace(claim("reproduced"), parts={"order": "holds"})
    open_again = replace(CONFIRMED, verdict="inconclusive", parts={"order": "open"})
    assert replace(explored, confirmation=CONFIRMED).basis.verdict == "contradicted"
    assert replace(explored, confirmation=open_again).basis.verdict == "reproduced"


def test_the_summary_says_when_the_rules_of_explored_claims_were_written():
    assert summary([paper()]) == []
    seen = replace(claim("inconclusive"), declared=Declaration("after seeing", "2026-11-22", "."))
    before = replace(seen, declared=Declaration("before", "2026-11-22", "."))
    confirmed = replace(seen, confirmation=CONFIRMED)
    *_, last = summary([paper(seen, before, confirmed)])
    assert last.startswith("Of the 2 claims that are not confirmed, 1 has a rule that was written")


def test_a_part_has_its_verdict_of_exploring_runs_and_of_fresh_seeds():
    explored = replace(claim("partly reproduced"), parts={"order": "holds", "size": "open"})
    judged = replace(explored, confirmation=replace(CONFIRMED, parts={"size": "fails"}))
    assert [(part.name, part.explored, part.confirmed) for part in claim_parts(judged)] == [
        ("order", "holds", None),
        ("size", "open", "fails"),
    ]


def test_many_claims_are_grouped_by_their_figure_or_table():
    judged = [replace(claim("reproduced"), artefact=f"table{n % 2 + 1}a") for n in range(16)]
    assert [(title, len(group)) for title, group in claim_groups(paper(*judged))] == [
        ("Table 1", 8),
        ("Table 2", 8),
    ]
    assert [title for title, _ in claim_groups(paper(*judged[:3]))] == [""]
