"""Errors in the theory, and the overheads, from small runs of the paper's own studies."""

from pathlib import Path

import pytest

from fedsampling.experiments.papers import load_paper
from papers.harshvardhan2025latency import figures_theory as page

PAPER = load_paper("harshvardhan2025latency", Path(__file__).parents[3] / "papers")
SMALL = {"clients": 6, "samples": 8, "dimension": 12, "draws": 2, "seeds": 2}
OVERRIDES = {
    "assumptions": SMALL | {"cases": {"n1000": {"samples": 200}}},
    "enumeration": SMALL,
    "minnorm": SMALL,
    "distribution": SMALL | {"iterations": [0, 4]},
    "overhead": SMALL
    | {
        "iterations": [4],
        "cases": {
            "rotated-cifar10": {"clients": 5, "dimension": 12},
            "shakespeare": {"dimension": 9},
        },
    },
}


@pytest.fixture(scope="module")
def summaries(simulated):
    return simulated(PAPER, OVERRIDES)


def test_every_point_has_its_numbers_and_its_proof(summaries):
    artefact = page.findings(summaries, PAPER)
    assert len(artefact.data) == len(artefact.notes) == 7
    assert artefact.notes[6].startswith(f"{artefact.data['the paper'][6]}. A_i has rank n, ")
    numbers = artefact.data["in numbers"]
    assert "8,640 triples" in numbers[0]
    assert "supermodularity of h fails 0 times" in numbers[0]
    assert "long-tail" in numbers[1]
    assert "scaled to 0.9" in numbers[5]


def test_overheads_stand_beside_the_papers(summaries):
    table = page.overheads(summaries, PAPER).data.set_index(["data", "task"])
    assert len(table) == 27
    row = table.loc["quadratic", "ApproxOptSampling, trust-constr"]
    assert row["paper (s)"] == "3131"
    assert row["ratio"] == pytest.approx(3131 / row["here (s)"])
