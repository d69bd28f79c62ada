"""Images keep the pixels that they show, or are refused in one line."""

import numpy as np
import pytest
from PIL import Image
from tests.shared import line_of

import fedsampling as fs

RNG = np.random.default_rng(0)


GRAY = Image.fromarray(RNG.integers(0, 256, (6, 6), np.uint8))
COLOURED = Image.fromarray(RNG.integers(0, 256, (6, 6, 3), np.uint8))
DEEP = Image.fromarray(RNG.integers(0, 2**16, (6, 6), np.uint16))
MODES = {  # an image, and the pixels that it shows
    "L": (GRAY, GRAY),
    "P": (COLOURED.quantize(8), COLOURED.quantize(8).convert("RGB")),
    "1": (GRAY.convert("1"), GRAY.convert("1").convert("L")),
    "RGB": (COLOURED, COLOURED),
    "CMYK": (COLOURED.convert("CMYK"), COLOURED.convert("CMYK")),
    "RGBA": (COLOURED.convert("RGBA"), COLOURED.convert("RGBA")),
    "I;16": (DEEP, DEEP),
}


def images(first, second, as_clients):
    if as_clients:
        return fs.from_clients([([first] * 4, [0, 1] * 2), ([second] * 4, [0, 1] * 2)])
    table = {"image": [first, second] * 2, "y": [0, 0, 1, 1], "c": [0, 1, 0, 1]}
    return fs.from_frame(table, target="y", client="c")


@pytest.mark.parametrize("as_clients", [False, True])
@pytest.mark.parametrize("other", MODES)
@pytest.mark.parametrize("mode", MODES)
def test_images_have_the_colours_that_they_show_and_one_mode(mode, other, as_clients):
    (first, shown), (second, other_shown) = MODES[mode], MODES[other]
    if shown.mode == other_shown.mode:
        data = images(first, second, as_clients)
        np.testing.assert_array_equal(data.x[0], np.asarray(shown))
        np.testing.assert_array_equal(data.x[-1], np.asarray(other_shown))
    else:
        line = line_of(lambda: images(first, second, as_clients))
        assert "convert all to one, such as image.convert(" in line


@pytest.mark.parametrize("shape", [(6, 6), (36,), (6, 6, 3)], ids=["gray", "flat", "coloured"])
def test_bytes_beside_bits_or_more_bits_are_refused(shape):
    byte = RNG.integers(0, 256, (8, *shape))
    parts = {"bits": byte // 128, "deep": 257 * byte, "bytes": byte[::-1], "centred": byte - 128}
    for name, part in parts.items():
        call = lambda: fs.from_clients([(byte, [0, 1] * 4), (part, [0, 1] * 4)])  # noqa: B023, E731
        if name == "bytes" or (name == "deep" and len(shape) == 1):
            call()
        else:
            assert line_of(call).startswith("x: different scales; client ")
