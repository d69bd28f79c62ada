"""Formulas in running text: ``p_i`` and ``θ^{t+1}`` as subscripts and superscripts.

Captions and claims are plain text, so that they read well in a terminal, a CSV and a figure; the
pages set them as a paper would.
"""

import re

from markupsafe import Markup, escape

# A symbol is a single letter (with its accent), a closing bracket or, for powers, a number; words
# such as `peak_mb` are none.  A script is up to three characters, or anything in braces, and ends
# before a power such as ².
_POWERS = "⁰¹²³⁴-⁹"
_SYMBOL = r"(?:(?<!\w)[^\W\d_][\u0300-\u036f]?|[\])}|‖]|(?<![\w.])\d+(?=\^))"
_SCRIPT = rf"[_^](?:\{{(?:[^{{}}]|\{{[^{{}}]*\}})*\}}|[-−]?[^\W_{_POWERS}]{{1,3}}|\*)"
_FORMULA = re.compile(rf"({_SYMBOL})((?:{_SCRIPT})+)(?![^\W{_POWERS}])")


def typeset(text: object) -> Markup:
    """Escape plain text and set the scripts in it."""
    return Markup(_set(str(escape(text))))


def typeset_html(html: str) -> Markup:
    """Set the scripts in the text of trusted HTML, leaving its tags alone."""
    return Markup(re.sub(r"(?<=>)[^<>]+", lambda found: _set(found[0]), html))


def _set(escaped: str) -> str:
    return _FORMULA.sub(lambda found: found[1] + re.sub(_SCRIPT, _script, found[2]), escaped)


def _script(found: re.Match[str]) -> str:
    tag = "sub" if found[0][0] == "_" else "sup"
    inner = found[0][1:]
    if inner.startswith("{"):
        inner = _set(inner[1:-1])
    return f"<{tag}>{inner}</{tag}>"
