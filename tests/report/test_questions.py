"""Ten questions of readers, answered by real clicks on the report of all published runs."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.helpers.browser import CHROMIUM, Browser

MOST_CLICKS = 3


@dataclass(frozen=True)
class Question:
    """A question: clicks on elements with some words, and what the last page must show then.

    `clicks`: a selector and words of each element, and text that is typed after the click.
    `shown`: selector of the visible elements among which is the answer. `answer`: its pattern, or a
    function that returns the pattern, given all verdicts.
    """

    words: str
    clicks: tuple[tuple[str, str, str], ...]
    shown: str
    answer: str | Callable[[list[dict]], str]


def cell(paper, claim):
    """The link to a claim in the evidence map of the first page."""
    return f'.map a[aria-label^="{paper}, {claim}:"]', "", ""


def verdict_of(paper, claim):
    """The verdict that a claim's card must begin with."""

    def find(verdicts):
        (row,) = [row for row in verdicts if (row["paper"], row["claim"]) == (paper, claim)]
        return rf"(?i)^{row['verdict']}\b.* \w+"

    return find


QUESTIONS = (
    Question(
        "Which claims are confirmed?",
        (("a", "List of the confirmed claims", ""),),
        "tr[data-item]:not([hidden])",
        "◆ confirmed",
    ),
    Question(
        "Why has c4 of Harshvardhan et al. its verdict?",
        (cell("Harshvardhan et al., 2025", "c4"),),
        "#claim-c4 .why",
        verdict_of("harshvardhan2025latency", "c4"),
    ),
    Question(
        "What would settle an open claim, and at what price?",
        (
            (".outcomes a", "undecided", ""),
            ('tr:has([data-label^="Core-hours"]:not(.none)) th a', "c", ""),
        ),
        ".claim[open] dl:has(dt)",
        r"(?s)Price.*core-hours.*Command.*fedsampling decide",
    ),
    Question(
        "Which sampler saves seconds if sizes are similar and labels mixed?",
        (),
        "main li",
        r"To save seconds on datasets with similar sizes and mixed labels: \w+, .*%\sfaster",
    ),
    Question(
        "How do I cite Figure 1 of Rizk et al.?",
        ((".map a", "Rizk et al., 2022", ""), ("#figure1 summary", "Cite Figure 1", "")),
        "#figure1 .cite",
        r"(?s)Figure 1, after .*@misc\{\w+-rizk2022importance-figure1",
    ),
    Question(
        "Which errors are in the papers' theory?",
        (),
        "main > section:has(.errors)",
        r"(?s)printed.*corrected.*counterexample.*g\(S\) is submodular",
    ),
    Question(
        "How many bits and seconds does a round take under each sampler?",
        (("nav a", "Which sampler?", ""), ("summary", "Bits and seconds of a round", "")),
        "details[open] table",
        r"(?s)sampler\s+sends.*\nMD\s+models\s+[\d.,]+ kbit, [\d.]+ s",
    ),
    Question(
        "With which settings was Rotated MNIST run on NYCMesh?",
        (
            ("nav a", "Explore runs", ""),
            ("[name=search]", "", "Rotated MNIST NYCMesh"),
            ("summary", "Settings of these runs", ""),
        ),
        "details.settings-of[open]",
        r"(?s)mnist \(partition rotated \(clients.*Work\s+epochs.*Case nycmesh",
    ),
    Question(
        "How does an author reply?",
        (("a", "Reply to a claim", ""),),
        "section:has(#reply)",
        r"(?s)pull request.*caveat:",
    ),
    Question(
        "With how many seeds, and on which look, was a claim decided?",
        ((".map a.is-confirmed", "", ""),),
        ".claim[open] .both",
        r"(?s)Seeds.*\d+, each with its own .*look \d of \d",
    ),
)


def ask(browser, report, question):
    """Answer a question from the first page; return the texts that are shown, and the seconds."""
    start = time.monotonic()
    browser.open(report / "index.html")
    for selector, words, text in question.clicks:
        browser.click(selector, words)
        if text:
            browser.type(text)
    texts = browser.run(f"""[...document.querySelectorAll({json.dumps(question.shown)})]
        .filter(each => each.checkVisibility()).map(each => each.innerText)""")
    return texts, time.monotonic() - start


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.words)
def test_a_question_takes_at_most_three_clicks(everything, tmp_path, question, record_property):
    report = everything / "report"
    with Browser(tmp_path) as browser:
        texts, seconds = ask(browser, report, question)
    verdicts = json.loads((report / "verdicts.json").read_text(encoding="utf-8"))
    answer = question.answer(verdicts) if callable(question.answer) else question.answer
    fitting = [text for text in texts if re.search(answer, text)]
    record_property("clicks and seconds", (len(question.clicks), round(seconds, 1)))
    assert len(question.clicks) <= MOST_CLICKS
    assert fitting
    if question is QUESTIONS[0]:  # all that is shown, and nothing else
        assert len(texts) == len(fitting) == sum(row["confirmed"] for row in verdicts)
