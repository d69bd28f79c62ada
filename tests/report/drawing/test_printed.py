"""The layer of printed numbers: its identifiers, and the switch in the SVG."""

import io
import re

from matplotlib.figure import Figure

from fedsampling.report.drawing.style import (
    LABEL,
    WITHOUT,
    number_layer,
    printed_level,
    printed_point,
    with_switch,
)


def drawn(figure):
    file = io.StringIO()
    figure.savefig(file, format="svg")
    return file.getvalue()


def test_marks_and_their_legend_entry_are_a_layer_that_the_address_hides():
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], label="ours")
    printed_level(axes, 0.5)
    printed_point(axes, 0.2, 0.3, "_unlisted")
    axes.legend()
    assert number_layer(figure)
    svg = with_switch(drawn(figure))
    identifiers = re.findall('id="(printed-[0-9]+)"', svg)
    assert len(set(identifiers)) == len(identifiers) == 4  # two marks, a handle and its label
    assert f"svg:has(#{WITHOUT}:target)" in svg
    assert svg.count(f'<g id="{WITHOUT}"/>') == 1
    assert LABEL in svg


def test_a_figure_without_marks_has_no_layer():
    figure = Figure()
    figure.subplots().plot([0, 1], label="ours")
    assert not number_layer(figure)
