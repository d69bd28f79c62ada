"""Figures of delays and of errors in the theory, from small runs of the paper's own experiments."""

import pytest

from papers.harshvardhan2025latency import figures_network, figures_theory

from ..shared import simulate
from .courses import PAPER

SMALL = {"clients": 6, "samples": 8, "dimension": 12, "draws": 2, "seeds": 2}
CASES = {"rotated-cifar10": {"clients": 5, "dimension": 12}, "shakespeare": {"dimension": 9}}
OVERRIDES = {
    "assumptions": SMALL | {"cases": {"n1000": {"samples": 200}}},
    "delays": {"seeds": 3},
    "enumeration": SMALL,
    "minnorm": SMALL,
    "distribution": SMALL | {"iterations": [0, 4]},
    "overhead": {**SMALL, "iterations": [4], "cases": CASES},
}


@pytest.fixture(scope="module")
def summaries():
    return simulate(PAPER, OVERRIDES)


def test_figure1_shows_every_round_and_marks_the_paper(summaries):
    artefact = figures_network.figure1(summaries, PAPER)
    assert len(artefact.data) == 3 * 10 * 188
    share = 100 * (artefact.data["seconds"] > 1000).mean()
    assert artefact.notes[0].startswith(f"{share:.1f} % of the delays")
    assert "5.5 hours for ten rounds of full participation would be 1,980 s" in artefact.notes[1]
    labels = artefact.figure.axes[2].get_legend_handles_labels()[1]
    assert labels == [f"ours: {share:.0f} %", "paper: 10 %"]


def test_every_point_has_its_numbers_and_its_proof(summaries):
    artefact = figures_theory.findings(summaries, PAPER)
    assert len(artefact.data) == len(artefact.notes) == 7
    assert artefact.notes[6].startswith(f"{artefact.data['the paper'][6]}. A_i has rank n, ")
    numbers = artefact.data["in numbers"]
    assert "8,640 triples" in numbers[0]
    assert "supermodularity of h fails 0 times" in numbers[0]
    assert "long-tail" in numbers[1]
    assert "scaled to 0.9" in numbers[5]


def test_overheads_stand_beside_the_papers(summaries):
    table = figures_theory.overheads(summaries, PAPER).data.set_index(["data", "task"])
    assert len(table) == 27
    row = table.loc["quadratic", "ApproxOptSampling, trust-constr"]
    assert row["paper (s)"] == "3131"
    assert row["ratio"] == pytest.approx(3131 / row["here (s)"])
