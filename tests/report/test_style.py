import re
from pathlib import Path

import pytest

from fedsampling import report
from fedsampling.evidence.verdicts import VERDICTS
from fedsampling.report.drawing import style
from fedsampling.report.drawing.saving import slug

STYLE = (Path(report.__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
GROUNDS = re.findall(r"--([\w-]+)-ink:", STYLE.partition("}")[0])  # of badges and verdicts
PAIRS = [("ink", "paper"), ("ink", "panel"), ("muted", "paper"), ("link", "paper")]
PAIRS += [(f"{name}-ink", f"{name}-paper") for name in GROUNDS]


def _luminance(colour):
    """Relative luminance, WCAG 2.2."""
    digits = colour if len(colour) == 6 else "".join(2 * digit for digit in colour)
    channels = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("ink", "paper"), PAIRS)
def test_text_stands_out_from_its_ground(scheme, ink, paper):
    colours = _colours(scheme)
    assert _contrast(colours[ink], colours[paper]) >= 4.5  # level AA


@pytest.mark.parametrize(
    "colour", sorted({*style.SCHEMES.values(), *style.PALETTE} - {style.BLACK})
)
def test_a_curve_stands_out_from_a_dark_ground(colour):  # the explorer draws black ones as text
    assert _contrast(colour.removeprefix("#").lower(), _colours("dark")["paper"]) >= 3


@pytest.mark.parametrize("verdict", sorted({*VERDICTS} - {"not run"}))
def test_a_verdict_under_a_setting_has_a_colour(verdict):
    rules = re.findall(r"^:is\(\.key, \.settings g\)(.*?) \{", STYLE, flags=re.MULTILINE)
    assert slug(verdict) in re.findall(r"\.([\w-]+)", " ".join(rules))


def _colours(scheme):
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, flags=re.DOTALL)[:2]
    return dict(re.findall(r"--([\w-]+): #([0-9a-f]+);", light if scheme == "light" else dark))


def _contrast(*colours):
    dim, bright = sorted(map(_luminance, colours))
    return (bright + 0.05) / (dim + 0.05)
