"""What every paper's files may say: colours, dates of rules, no typed verdicts."""

import re
from collections import defaultdict
from datetime import date

import pytest
from papers.chen2022optimal.courses import LINES as OPTIMAL
from papers.fraboni2021clustered.lines import LINES as CLUSTERED
from papers.fraboni2022general.losses import SCHEMES as GENERAL
from papers.harshvardhan2025latency.printed_tables import LINES as LATENCY
from papers.rizk2022importance.lines import SCHEMES as IMPORTANCE
from tests.shared import PAPERS, ROOT

from fedsampling.experiments.papers import load_paper

LINES = {
    "chen2022optimal": OPTIMAL,
    "fraboni2021clustered": CLUSTERED,
    "fraboni2022general": GENERAL,
    "harshvardhan2025latency": LATENCY,
    "rizk2022importance": IMPORTANCE,
}
KEYS = sorted(path.parent.name for path in PAPERS.glob("*/paper.yaml"))


@pytest.mark.parametrize("key", KEYS)
def test_every_rule_has_a_reason_and_a_date_not_before_its_choices(key):
    """A choice that a claim is judged over may carry the date on which it was added."""
    for name, claim in load_paper(key, PAPERS).claims.items():
        assert claim.declared.why.endswith("."), name
        dates = re.findall(r"\((20\d\d-\d\d-\d\d)", " ".join(claim.open_choices))
        for earliest in ["2026-11-21", *dates]:
            assert claim.declared.date >= date.fromisoformat(earliest), name


def test_the_same_scheme_has_one_colour_in_all_papers():
    colours = defaultdict(set)
    for key, lines in LINES.items():
        for experiment in load_paper(key, PAPERS).experiments.values():
            for label in experiment["samplers"].keys() & lines.keys():
                sampler = experiment["samplers"][label]  # its kind makes it another scheme
                kind = [str(sampler.get(setting)) for setting in ("probabilities", "report")]
                colours[sampler["name"], *kind].add(lines[label].colour)
    assert len(colours) > 15
    assert {scheme: result for scheme, result in colours.items() if len(result) > 1} == {}


@pytest.mark.parametrize("key", LINES)
def test_schemes_of_a_paper_differ_in_colour_unless_they_are_variants(key):
    colours = [line.colour for line in LINES[key].values() if not line.variant]
    assert len(colours) == len(set(colours))


ELSEWHERE = {  # experiments of a claim that other figures draw, or that only vary its readings
    "chen2022optimal": {"dataset2", "dataset3"},
    "fraboni2021clustered": {"work", "clients", "measures", "prox", "allocation_mnist"},
    "harshvardhan2025latency": {"quadratic_problems_flanp"},
}


@pytest.mark.parametrize("key", KEYS)
def test_a_card_links_the_artefact_that_is_drawn_from_its_runs(key):
    paper = load_paper(key, PAPERS)
    for name, claim in paper.claims.items():
        drawn = {*paper.artefacts[claim.artefact].experiments, *ELSEWHERE.get(key, ())}
        assert set(claim.experiments) <= drawn, name


CLAIM = re.compile(r"\bc\d+(?:_\w+)?\b")
VERDICT = re.compile(
    r"\b(?:reproduc\w+|contradict\w+|inconclusive|partly|holds?|fails?|supports?|opposes?|"
    r"preliminary|indications?|not evaluated|not comparable|depends? on unstated)\b"
)
TAKEN = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


def typed(page):
    """Return the sentences that name a claim and state its verdict as typed text."""
    plain = TAKEN.sub("", page)
    sentences = re.split(r"(?<=[.:;!?])\s|\n", plain)
    return [text for text in sentences if CLAIM.search(text) and VERDICT.search(text)]


WRITTEN = [*PAPERS.glob("*/findings.md"), ROOT / "README.md", *ROOT.glob("docs/*.md")]
GENERATED = {"docs/findings.md", "docs/history.md", "docs/data.md"}  # verdicts from results


@pytest.mark.parametrize(
    "path", sorted({str(path.relative_to(ROOT)) for path in WRITTEN} - GENERATED)
)
def test_no_verdict_is_typed_beside_a_claim(path):
    assert typed((ROOT / path).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("key", KEYS)
def test_no_verdict_is_typed_on_a_card_or_in_a_caption(key):
    paper = load_paper(key, PAPERS)
    texts = [spec.caveat for spec in paper.claims.values()]
    texts += [spec.caption for spec in paper.artefacts.values()]
    assert [sentence for text in texts for sentence in typed(text)] == []
