"""A figure's look in somebody's paper: size, font, labels, and their order in legends."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text

from fedsampling.base.errors import InputError, nearest
from fedsampling.base.yaml_reading import read_yaml
from fedsampling.report.drawing.style import STYLE

MAX_INCHES = 40.0


@dataclass(frozen=True)
class Look:
    """How a figure differs from the report's; None or an empty mapping keeps the report's look.

    `size`: width and height in inches. `font`: size of the text in points. `labels`: new texts by
    those that the figure shows; legends below the panels begin with these, in this order.
    """

    size: tuple[float, float] | None = None
    font: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise InputError if a size is invalid."""
        if self.size is not None and not all(0 < inches <= MAX_INCHES for inches in self.size):
            raise InputError(
                f"size: {'x'.join(f'{inches:g}' for inches in self.size)} is invalid; must be "
                "width and height in inches, such as 3.3x2.2"
            )
        if self.font is not None and not 1 <= self.font <= 100:
            raise InputError(f"font: {self.font:g} is invalid; must be points from 1 to 100")


def read_labels(path: Path) -> dict[str, str]:
    """Read labels from a YAML file with a line ``shown: new`` for each.

    Raises InputError if it is anything else.
    """
    labels = read_yaml(path)
    if not labels:
        raise InputError(f"{path}: must have lines 'label in the figure: your label'")
    return {str(shown): str(new) for shown, new in labels.items()}


def apply(look: Look, figure: Figure) -> None:
    """Change a drawn figure, whose layout is not computed yet.

    Raises
    ------
    InputError
        If the figure does not show a text that `labels` names.
    """
    _relabel(figure, look.labels)
    if look.font is not None:
        scale = look.font / STYLE["font.size"]
        for text in _texts(figure):
            text.set_fontsize(text.get_fontsize() * scale)
        for axes in figure.axes:
            axes.tick_params(labelsize=look.font)
    if look.size is not None:
        figure.set_size_inches(look.size)


def _relabel(figure: Figure, labels: Mapping[str, str]) -> None:
    used = set()
    for text in _texts(figure):
        if (shown := text.get_text()) in labels:
            text.set_text(labels[shown])
            used.add(shown)
    for axis in _axes(figure):
        ticks = [label.get_text() for label in axis.get_ticklabels()]
        if renamed := labels.keys() & set(ticks):
            used |= renamed
            axis.set_ticks(axis.get_ticklocs(), [labels.get(shown, shown) for shown in ticks])
    if unknown := [shown for shown in labels if shown not in used]:
        texts = sorted({text.get_text() for text in _texts(figure)} - {"", *labels.values()})
        raise InputError(
            *(
                f"labels: {shown!r} is not in this figure; {nearest(shown, texts)}"
                for shown in unknown
            )
        )


def _texts(figure: Figure) -> Iterator[Text]:
    """Yield all texts, but not the labels of ticks, which their axis writes."""
    ticks = {
        id(label)
        for axis in _axes(figure)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        for label in (tick.label1, tick.label2)
    }
    for artist in figure.findobj(lambda artist: isinstance(artist, Text)):
        if isinstance(artist, Text) and id(artist) not in ticks:
            yield artist


def _axes(figure: Figure) -> Iterator[Axis]:
    children: list[Artist] = [child for axes in figure.axes for child in axes.get_children()]
    for child in children:
        if isinstance(child, Axis):
            yield child
