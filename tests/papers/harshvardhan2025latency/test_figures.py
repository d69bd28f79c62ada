"""Figures of the delays and of the theory's errors, drawn from the published runs."""

import pytest

from papers.harshvardhan2025latency import figures_network, figures_theory

from ..shared import published
from .courses import PAPER

EXPERIMENTS = ("assumptions", "delays", "distribution", "enumeration", "minnorm", "overhead")


@pytest.fixture(scope="module")
def summaries():
    return {name: published(PAPER.key, name) for name in EXPERIMENTS}


def test_figure1_shows_every_round_and_marks_the_paper(summaries):
    artefact = figures_network.figure1(summaries, PAPER)
    ours = artefact.data[artefact.data["series"] == "ours"]
    assert len(ours) == ours["seed"].nunique() * 10 * 188
    share = 100 * (ours["seconds"] > 1000).mean()
    assert artefact.notes[0].startswith(f"{share:.1f} % of the delays")
    assert "5.5 hours for ten rounds of full participation would be 1,980 s" in artefact.notes[1]
    labels = artefact.figure.axes[2].get_legend_handles_labels()[1]
    assert {f"ours: {share:.0f} %", "paper: 10 %"} < set(labels)


def test_every_point_has_its_numbers_and_its_proof(summaries):
    artefact = figures_theory.findings(summaries, PAPER)
    assert len(artefact.data) == len(artefact.notes) == 8
    assert artefact.notes[6].startswith(f"{artefact.data['the paper'][6]}. A_i has rank n, ")
    numbers = artefact.data["in numbers"]
    assert " triples " in numbers[0]
    assert "supermodularity of h fails 0 times" in numbers[0]
    assert "long-tail" in numbers[1]
    assert "scaled to 0.9" in numbers[5]
    for name in ("findings", "solver"):
        assert "0.9" in getattr(figures_theory, name)(summaries, PAPER).caption_end


def test_overheads_stand_beside_the_papers(summaries):
    table = figures_theory.overheads(summaries, PAPER).data.set_index(["data", "task"])
    assert len(table) == 27
    row = table.loc["quadratic", "ApproxOptSampling, trust-constr"]
    assert row["paper (s)"] == "3131"
    assert row["ratio"] == pytest.approx(3131 / row["here (s)"])
