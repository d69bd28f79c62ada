"""Figure 1 and the sensitivity of its tail, from delays on the embedded network."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedsampling.experiments.papers import load_paper
from fedsampling.experiments.simulations.simulation import tidy
from papers.harshvardhan2025latency import figures_network as page

PAPER = load_paper("harshvardhan2025latency", Path(__file__).parents[3] / "papers")
VARIED = PAPER.experiments["sensitivity"]["cases"]
KEPT = ("base", "gain-20", "log_sd-1", "cap-2000", "bandwidth-5e6", "shared-false")


@pytest.fixture(scope="module")
def summaries(simulated):
    left_out = {case: None for case in VARIED if case not in KEPT}
    seeds = {"seeds": 3}
    return simulated(PAPER, {"delays": seeds, "sensitivity": seeds | {"cases": left_out}})


def test_figure1_shows_every_round_and_marks_the_paper(summaries):
    artefact = page.figure1(summaries, PAPER)
    assert len(artefact.data) == 3 * 10 * 188
    share = 100 * (artefact.data["seconds"] > 1000).mean()
    assert artefact.notes[0].startswith(f"{share:.1f} % of the delays")
    assert "5.5 hours for ten rounds of full participation would be 1,980 s" in artefact.notes[1]
    labels = artefact.figure.axes[2].get_legend_handles_labels()[1]
    assert labels == [f"ours: {share:.0f} %", "paper: 10 %"]


def test_published_delays_are_drawn_and_compared_where_they_are_known(summaries):
    scalars = {"ks/comp.txt": 0.25, "reference_share/comp.txt": 0.5}
    scalars |= {f"reference_quantile/comp.txt/{q:g}": 7.0 for q in (0.01, 0.1, 0.5, 0.9, 0.99)}
    published = tidy({name: (np.array([-1]), np.array([value])) for name, value in scalars.items()})
    seconds = tidy({"reference_seconds/comp.txt": (np.arange(2), np.array([50.0, 2000.0]))})
    ours = summaries["delays"]
    extra = pd.concat([published, seconds]).assign(case="base", sampler="none", seed=0)
    delays = replace(ours, rows=pd.concat([ours.rows, extra], ignore_index=True))
    artefact = page.figure1({"delays": delays}, PAPER)
    assert (artefact.data["series"] == "comp.txt").sum() == 2
    assert "distance 0.25" in artefact.notes[-1]
    assert "published, comp.txt: 50 %" in artefact.figure.axes[2].get_legend_handles_labels()[1]


def test_sensitivity_has_a_row_for_each_case_and_names_the_strongest(summaries):
    artefact = page.figure1_sensitivity(summaries, PAPER)
    table = artefact.data.set_index("parameter")
    values = {"base": "", "gain": "20", "log_sd": "1", "cap": "2000"}
    assert dict(table["value"]) == values | {"bandwidth": "5000000.0", "shared": "false"}
    assert table.loc["gain", "share"] > table.loc["base", "share"] > table.loc["log_sd", "share"]
    assert (table["low"] <= table["share"]).all()
    assert "antenna gain 20 dB" in artefact.notes[0]
