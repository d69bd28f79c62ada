"""Number formats for claims, tables and captions."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fedsampling.evidence.statistics import Estimate


def show(value: float, digits: int = 3, last: float | None = None) -> str:
    """Format a number with `digits` significant digits.

    `value`: NaN is written as a dash. `last`: last round of the run; an infinite (censored) value
    becomes ``>last``.
    """
    if np.isnan(value):
        return "–"
    if np.isinf(value):
        if last is not None:
            return f">{show(last, digits)}"
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    text = f"{value:.{digits - 1}e}"
    exponent = int(text.partition("e")[2])
    if -4 <= exponent < 6:
        text = f"{float(text):,.{max(digits - 1 - exponent, 0)}f}"
    return text.replace("-", "−")


def show_alike(values: Sequence[float], digits: int = 3) -> list[str]:
    """Format numbers with the decimals that the largest needs for `digits` significant digits.

    Each number has its own decimals if the smallest would become zero, or if some need exponents.
    """
    texts = [show(value, digits) for value in values]
    sizes = [abs(value) for value in values if value and np.isfinite(value)]
    if not sizes or any("e" in text for text in texts):
        return texts
    decimals = max(digits - 1 - int(f"{max(sizes):.{digits - 1}e}".partition("e")[2]), 0)
    if min(sizes) < 0.5 * 10.0**-decimals:
        return texts
    return [
        f"{value:,.{decimals}f}".replace("-", "−") if value and np.isfinite(value) else text
        for value, text in zip(values, texts, strict=True)
    ]


def show_interval(value: float, low: float, high: float, digits: int = 3) -> str:
    """Format a number with its interval as ``5.31 [5.10, 5.52]``."""
    return f"{show(value, digits)} [{show(low, digits)}, {show(high, digits)}]"


def show_range(counts: Iterable[int]) -> str:
    """Write the smallest and the largest count as ``5 to 20``, or ``5`` if all are equal."""
    counts = sorted(counts)
    return " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))


def show_estimate(estimate: Estimate, unit: str = "", digits: int = 3) -> str:
    """Format an estimate as ``5.31 dB [5.10, 5.52] (100 seeds)``."""
    unit = f" {unit}" if unit else ""
    text = show(estimate.value, digits) + unit
    if np.isfinite([estimate.low, estimate.high]).all():
        text += f" [{show(estimate.low, digits)}, {show(estimate.high, digits)}]"
    return f"{text} ({estimate.n} seed{'s'[: estimate.n != 1]})"


def show_estimates(estimates: Mapping[str, Estimate], unit: str = "") -> str:
    """Format several estimates, each after its name."""
    parts = (f"{name}: {show_estimate(estimate, unit)}" for name, estimate in estimates.items())
    return "; ".join(parts) or "not run"


def listed(words: Sequence[str]) -> str:
    """Join words with commas and a final 'and': ``a, b and c``.

    Words that contain a comma are separated by semicolons.
    """
    separator = "; " if any("," in word for word in words) else ", "
    return " and ".join([part for part in (separator.join(words[:-1]), *words[-1:]) if part])
