"""A paper's printed numbers, and captions of bands, fit the runs that a figure shows."""

import pytest
from matplotlib.figure import Figure

from fedsampling.report.drawing.curves import band
from fedsampling.report.drawing.saving import _naming_bands
from fedsampling.report.drawing.style import (
    HATCH,
    RANGE,
    printed_level,
    printed_limit,
    printed_point,
    printed_words,
    without_printed,
)


def test_printed_numbers_are_left_out_of_figures_with_other_settings():
    axes = Figure().subplots()
    with without_printed():
        printed_level(axes, 1.0)
        printed_point(axes, 1.0, 1.0)
        printed_limit(axes, 1.0, 1.0, 0.1, "paper: below 1")
        printed_words(axes, 1.0, 1.0, "paper: 1")
    assert not axes.lines
    assert not axes.texts
    printed_level(axes, 1.0)
    assert len(axes.lines) == 1


@pytest.mark.parametrize(
    ("looks", "words"),
    [
        ({"hatch": HATCH, "gid": RANGE}, "bands from the smallest to the largest seed"),
        ({}, "95 % bands"),
    ],
)
def test_the_caption_names_the_bands_as_the_legend_does(looks, words):
    figure = Figure()
    band(figure.subplots(), [0, 1], [0, 0], [1, 1], "md", "k", **looks)
    assert _naming_bands("Loss, mean with 95 % bands.", figure) == f"Loss, mean with {words}."
