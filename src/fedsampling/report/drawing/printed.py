"""Numbers that a paper prints, as a layer of a figure that readers can hide.

Each mark belongs to the layer by its identifier in the SVG.  An address that ends in
``#without-printed`` shows the figure without them; the page has a switch for that.
"""

from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from fedsampling.report.drawing.style import BLACK

LAYER, WITHOUT = "printed", "without-printed"
LABEL = "paper (printed)"


def as_printed(*artists: Artist) -> None:
    """Move artists to the layer of printed numbers."""
    for artist in artists:
        artist.set_gid(LAYER)


def printed_level(axes: Axes, value: float, label: str = LABEL, **looks: Any) -> None:
    """Draw a printed number as a horizontal line."""
    looks = {"color": BLACK, "linestyle": (0, (5, 2)), "linewidth": 1.1, "label": label, **looks}
    as_printed(axes.axhline(value, **looks))


def printed_point(
    axes: Axes, x: float, y: float, label: str = LABEL, colour: str = BLACK, marker: str = "D"
) -> None:
    """Draw a printed number as a hollow mark."""
    looks: dict[str, Any] = {"mfc": "white", "mec": colour, "mew": 1.6, "ms": 6.5, "zorder": 3}
    as_printed(*axes.plot(x, y, marker, color=colour, label=label, **looks))


def number_layer(figure: Figure) -> bool:
    """Assign a number to each artist of the layer; return whether there are any.

    Entries of legends belong to the layer if the artist with their label does.
    """
    artists = figure.findobj()
    marks = [artist for artist in artists if _in_layer(artist)]
    labels = {str(artist.get_label()) for artist in marks}
    for legend in (artist for artist in artists if isinstance(artist, Legend)):
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
            if text.get_text() in labels and handle is not None:
                marks += [handle, text]
    for number, artist in enumerate(dict.fromkeys(marks)):
        artist.set_gid(f"{LAYER}-{number}")
    return bool(marks)


def with_switch(svg: str) -> str:
    """Return a figure's SVG, which hides the layer if its address ends in ``#without-printed``."""
    rule = f'svg:has(#{WITHOUT}:target) [id^="{LAYER}-"] {{ display: none }}'
    return svg.replace("<defs>", f'<style>{rule}</style>\n <g id="{WITHOUT}"/>\n <defs>', 1)


def _in_layer(artist: Artist) -> bool:
    gid = artist.get_gid()
    return gid is not None and (gid == LAYER or gid.startswith(f"{LAYER}-"))
