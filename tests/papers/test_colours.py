"""The same scheme has the same colour in the figures of all papers."""

from collections import defaultdict
from pathlib import Path

import pytest
from papers.chen2022optimal.runs import LINES as OPTIMAL
from papers.fraboni2021clustered.claims import LINES as CLUSTERED
from papers.fraboni2022general.runs import SCHEMES as GENERAL
from papers.harshvardhan2025latency.runtimes import LINES as LATENCY
from papers.rizk2022importance.measures import SCHEMES as IMPORTANCE

from fedsampling.experiments.papers import load_paper

PAPERS = Path(__file__).parents[2] / "papers"
LINES = {
    "chen2022optimal": OPTIMAL,
    "fraboni2021clustered": CLUSTERED,
    "fraboni2022general": GENERAL,
    "harshvardhan2025latency": LATENCY,
    "rizk2022importance": IMPORTANCE,
}
# Settings that make a scheme another one.
KINDS = ("probabilities", "report")


def test_the_same_scheme_has_one_colour():
    colours = defaultdict(set)
    for key, lines in LINES.items():
        for experiment in load_paper(key, PAPERS).experiments.values():
            for label, sampler in experiment["samplers"].items():
                if label in lines:
                    scheme = (sampler["name"], *(str(sampler.get(kind)) for kind in KINDS))
                    colours[scheme].add(lines[label].colour)
    assert len(colours) > 15
    assert {scheme: result for scheme, result in colours.items() if len(result) > 1} == {}


@pytest.mark.parametrize("key", LINES)
def test_schemes_of_a_paper_differ_in_colour_unless_they_are_variants(key):
    colours = [line.colour for line in LINES[key].values() if not line.variant]
    assert len(colours) == len(set(colours))
