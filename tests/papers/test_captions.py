"""Captions stay true whatever is drawn."""

import re
from pathlib import Path

import pytest

from fedsampling.experiments.papers import load_paper
from fedsampling.report.drawing.saving import PLACEHOLDER

PAPERS = Path(__file__).parents[2] / "papers"
# Names with numbers in them, and what no run decides.
NAMES = re.compile(
    r"\b(?:Figures?|Tables?|Theorem|Lemma|equations?|sections?)\s*[\dA-Z(][\w.()]*"
    r"(?:(?:, | and | to |[–-])\(?\d+\)?)*"
    r"|at 5 %|\(\d+\)|CIFAR-\d+|\bijcnn1|\b[Lc]\d+\b|(?:et al\.|Demšar) \d{4}|95 %|10³|= 0\b|n/2"
)
FIXED = {
    "crossmatrix/factors_effects": ["10", "1"],  # of the rule for effects
    "fraboni2021clustered/figure2": ["50"],  # what is averaged, at most
    "fraboni2021clustered/figure6": ["50"],
    "fraboni2021clustered/figure8": ["50"],
    "fraboni2021clustered/figure10": ["50"],
    "fraboni2021clustered/figure3": ["1"],  # Algorithm 1
    "fraboni2022general/figure2": ["600"],  # the paper's insets
    "fraboni2022general/figure7": ["5"],
    "harshvardhan2025latency/figure1_sensitivity": ["1000"],  # seconds, the threshold
    "rizk2022importance/sensitivity": ["0.1"],  # that all its populations share
    "rizk2022importance/figure2": ["1"],  # B_k = E_k, as the paper has them
}


@pytest.mark.parametrize("key", sorted(path.parent.name for path in PAPERS.glob("*/paper.yaml")))
def test_numbers_of_captions_are_settings_of_the_runs_or_the_papers_own(key):
    paper = load_paper(key, PAPERS)
    printed = {row.value for row in paper.reports}
    for name, spec in paper.artefacts.items():
        if not spec.experiments:
            continue
        left = NAMES.sub("", PLACEHOLDER.sub("", spec.caption))
        known = printed.union(FIXED.get(f"{key}/{name}", []))
        assert [one for one in re.findall(r"\d+(?:\.\d+)?", left) if one not in known] == []


# What a caption cannot know of the runs that are drawn.
BEYOND = re.compile(r"with one seed|[Ss]maller scales show|two points of each|for each α")


@pytest.mark.parametrize("key", sorted(path.parent.name for path in PAPERS.glob("*/paper.yaml")))
def test_captions_say_nothing_of_scales_or_seeds_that_may_not_be_drawn(key):
    paper = load_paper(key, PAPERS)
    phrases = {name: BEYOND.findall(spec.caption) for name, spec in paper.artefacts.items()}
    assert {name: words for name, words in phrases.items() if words} == {}
