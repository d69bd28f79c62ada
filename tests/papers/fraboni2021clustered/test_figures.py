"""Figures of fraboni2021clustered, from its published runs."""

import numpy as np
import pandas as pd
import pytest

from fedsampling.experiments.papers import draw_function, load_paper

from ..shared import PAPERS, behind

KEY = "fraboni2021clustered"
PAPER = load_paper(KEY, PAPERS)


@pytest.mark.parametrize("name", ["figure3", "figure4"])
def test_figures_3_and_4_lay_out_whole_distributions(name):
    artefact = draw_function(PAPER, name)(behind(KEY, PAPER.artefacts[name]), PAPER)
    sums = artefact.data.groupby(["set", "distribution"])["r"].sum()
    np.testing.assert_allclose(sums, 1)
    *_, lower = artefact.figure.axes
    widths = pd.Series([bar.get_width() for bar in lower.patches])
    rows = [round(bar.get_y() + 0.4) for bar in lower.patches]
    np.testing.assert_allclose(widths.groupby(rows).sum(), 1)
