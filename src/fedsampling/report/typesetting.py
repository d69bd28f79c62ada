"""Formulas in plain text: subscripts, superscripts and Greek letters, for pages and titles."""

import re

from markupsafe import Markup, escape

# A symbol is a single letter (with its accent), a closing bracket or, for powers, a number; words
# such as `peak_mb` are not symbols.  A subscript or superscript is up to three characters, or
# anything in braces, and ends before a power such as ².
_POWERS = "⁰¹²³⁴-⁹"
_SYMBOL = r"(?:(?<!\w)[^\W\d_][\u0300-\u036f]?|[\])}|‖]|(?<![\w.])\d+(?=\^))"
_SCRIPT = rf"[_^](?:\{{(?:[^{{}}]|\{{[^{{}}]*\}})*\}}|[-−]?[^\W_{_POWERS}]{{1,3}}|\*)"
_SUBSCRIPTS = dict(zip("0123456789aeijkmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉ₐₑᵢⱼₖₘₙₒₚᵣₛₜᵤᵥₓ", strict=True))
_SUPERSCRIPTS = dict(zip("0123456789kmnorst", "⁰¹²³⁴⁵⁶⁷⁸⁹ᵏᵐⁿᵒʳˢᵗ", strict=True))
_GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "eta": "η", "sigma": "σ", "sum": "Σ"}
_NAMED = re.compile(rf"\b(?:{'|'.join(_GREEK)})(?=[_^][\w{{])")
_FORMULA = re.compile(rf"({_SYMBOL})((?:{_SCRIPT})+)(?![^\W{_POWERS}])")


def typeset(text: object) -> Markup:
    """Escape plain text; typeset subscripts and superscripts, and text in backticks as code."""
    words = re.split("`([^`]+)`", str(escape(text)))
    words[::2] = [_set(word) for word in words[::2]]
    words[1::2] = [f"<code>{word}</code>" for word in words[1::2]]
    return Markup("".join(words))


def typeset_html(html: str) -> Markup:
    """Typeset subscripts and superscripts in trusted HTML; tags are unchanged."""
    return Markup(re.sub(r"(?<=>)[^<>]+", lambda match: _set(match[0]), html))


def symbols(text: object) -> str:
    """Write subscripts and superscripts as Unicode characters, for titles without HTML."""

    def translate(script: re.Match[str]) -> str:
        letters = script[0][1:].strip("{}")
        table = _SUBSCRIPTS if script[0][0] == "_" else _SUPERSCRIPTS
        return "".join(table[x] for x in letters) if set(letters) <= set(table) else script[0]

    return _FORMULA.sub(
        lambda match: match[1] + re.sub(_SCRIPT, translate, match[2]), _greek(str(text))
    )


def _greek(text: str) -> str:
    """Replace names of Greek letters in formulas: ``beta_1`` becomes ``β_1``."""
    return _NAMED.sub(lambda match: _GREEK[match[0]], text)


def _set(escaped: str) -> str:
    escaped = _greek(escaped)
    return _FORMULA.sub(lambda match: match[1] + re.sub(_SCRIPT, _script, match[2]), escaped)


def _script(match: re.Match[str]) -> str:
    tag = "sub" if match[0][0] == "_" else "sup"
    inner = match[0][1:]
    if inner.startswith("{"):
        inner = _set(inner[1:-1])
    return f"<{tag}>{inner}</{tag}>"
