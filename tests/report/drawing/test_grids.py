"""Grids of learning curves: labels, empty panels, and differences."""

import numpy as np
import pandas as pd

from fedsampling.report.drawing.curves import Panel, learning_grid
from fedsampling.report.drawing.style import BLUE, ORANGE, Line

LINES = {"md": Line("MD", BLUE), "uniform": Line("Uniform", ORANGE)}


def curves(case="base", half_width=1.0):
    at = np.arange(0, 50, 10)
    parts = []
    for sampler in LINES:
        mean = 5 - 0.01 * at
        around = {"mean": mean, "low": mean - half_width, "high": mean + half_width}
        values = {"metric": "loss", "case": case, "sampler": sampler, "n": 3, "at": at, **around}
        parts.append(pd.DataFrame(values))
    return pd.concat(parts, ignore_index=True)


def test_a_case_without_curves_says_so():
    _, (axes,) = learning_grid([Panel(curves("other"), LINES)], 1, width=3, height=3)
    assert [text.get_text() for text in axes.texts] == ["not run at this scale"]


def test_a_difference_shows_zero_and_its_whole_band():
    result = curves(half_width=30)
    cut, full = (
        learning_grid([Panel(result, LINES, zero=zero)], 1, width=3, height=3)[1][0].get_ylim()
        for zero in (False, True)
    )
    assert cut[1] - cut[0] < 10
    assert full[0] < -25
    assert full[1] > 34
