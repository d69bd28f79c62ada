"""A figure's size, font and labels, as somebody's paper needs them."""

import pytest
from matplotlib.text import Text

from fedsampling.base.errors import InputError
from fedsampling.report.drawing.look import Look, apply, read_labels
from fedsampling.report.drawing.style import STYLE, legend_below, legends_beginning_with, panels


def drawn(first=()):
    """Draw two curves, and bars with names."""
    with panels(1, 2) as (figure, axes), legends_beginning_with(first):
        for name in ("md", "ours", "oort"):
            axes[0].plot([1, 2], label=name)
        axes[0].set(xlabel="round", title="Loss")
        axes[1].bar([0, 1], [2, 3])
        axes[1].set_xticks([0, 1], ["MD", "Oort"])
        legend_below(figure, axes[:1])
    return figure


def texts(figure):
    figure.canvas.draw()
    return {text.get_text(): text.get_fontsize() for text in figure.findobj(Text)}


def test_the_size_is_in_inches():
    figure = drawn()
    apply(Look(size=(3.3, 2.2)), figure)
    assert figure.get_size_inches().tolist() == [3.3, 2.2]


def test_all_text_is_scaled_to_the_font():
    figure = drawn()
    before = texts(figure)
    apply(Look(font=7), figure)
    after = texts(figure)
    assert after["round"] == pytest.approx(7)
    assert after["Loss"] == pytest.approx(before["Loss"] * 7 / STYLE["font.size"])
    assert after["MD"] == pytest.approx(7)


def test_labels_change_in_legends_axes_and_ticks():
    figure = drawn()
    apply(Look(labels={"ours": "FedNew", "round": "Round", "Oort": "Oort (2021)"}), figure)
    shown = texts(figure)
    assert {"FedNew", "Round", "Oort (2021)", "md"} <= shown.keys()
    assert not {"ours", "round", "Oort"} & shown.keys()


def test_a_legend_begins_with_the_labels_in_their_order():
    (legend,) = drawn(["oort", "none", "ours"]).legends
    assert [text.get_text() for text in legend.get_texts()] == ["oort", "ours", "md"]


def test_a_label_that_the_figure_lacks_is_one_line():
    with pytest.raises(InputError, match="labels: 'our' is not in this figure; did you mean 'ours"):
        apply(Look(labels={"our": "FedNew"}), drawn())


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"size": (0, 2)}, "size: 0x2 is invalid; must be width and height in inches"),
        ({"font": 0}, "font: 0 is invalid; must be points from 1 to 100"),
    ],
)
def test_invalid_sizes_are_one_line(settings, line):
    with pytest.raises(InputError, match=line):
        Look(**settings)


def test_labels_are_read_from_yaml(tmp_path):
    path = tmp_path / "labels.yaml"
    path.write_text("md: MD\n'0.1': large\n")
    assert read_labels(path) == {"md": "MD", "0.1": "large"}
    path.write_text("")
    with pytest.raises(InputError, match="must have lines 'label in the figure: your label'"):
        read_labels(path)
