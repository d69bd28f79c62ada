"""Memory and time of a sampler's selection, as functions of the population's size.

A sampler declares both in ``memory_order`` and ``time_order``.  Each is a sum of products, such as
``"4 n^2 + 0.5 n d"``.  Factors are numbers, ``n`` (clients), ``d`` (parameters of the model),
``runs`` (runs stacked in a job), ``log n``, and names of the sampler's settings; ``^`` is a power.
A setting that is null or larger than n counts as n.

The orders are evaluated before a run starts, so that a run that cannot fit is rejected with an
explanation instead of being killed by the operating system.
"""

import math
import re
from collections.abc import Mapping

from fedsampling.base.errors import InputError, nearest
from fedsampling.base.quantities import format_bytes
from fedsampling.samplers.scheme import Scheme

NUMBER_BYTES = 8  # double precision
OPERATION_SECONDS = 1e-9
# Numbers that the server stores for a sampler in each run, if the sampler needs them.
OBSERVED = {"gradients": "0.5 n d", "heterogeneity": "n^2"}
FACTOR = re.compile(r"([a-z_]\w*|\d+(?:\.\d+)?(?:e-?\d+)?)(?:\^(\d+(?:\.\d+)?))?", re.IGNORECASE)
CANDIDATES = (10_000, 1000, 100)  # sizes of a candidate set that an error suggests


def evaluate(order: str, values: Mapping[str, float]) -> float:
    """Evaluate an order.

    Parameters
    ----------
    order : str
        Such as ``"n log n"``; see the module's docstring.
    values : mapping
        Value of each name; ``log n`` needs ``n``.

    Raises
    ------
    InputError
        If a factor is neither a number nor a known name.
    """
    values = {**values, "log_n": math.log2(max(values["n"], 2))}
    total = 0.0
    for term in order.replace("²", "^2").replace("log n", "log_n").split("+"):
        product = 1.0
        for factor in term.split() or [""]:
            parsed = FACTOR.fullmatch(factor)
            if parsed is None or not (parsed[1][0].isdigit() or parsed[1] in values):
                raise InputError(f"order {order!r}: {factor!r}: unknown; {nearest(factor, values)}")
            base = values[parsed[1]] if parsed[1] in values else float(parsed[1])
            product *= base ** float(parsed[2] or 1)
        total += product
    return total


def memory_bytes(scheme: Scheme, n: int, d: int, runs: int = 1) -> float:
    """Return the bytes that a sampler needs for n clients, including the server's memory."""
    values = _values(scheme, n, d, runs)
    stored = scheme.needs - ({"heterogeneity"} if scheme.reads_blocks else set())
    observed = sum(evaluate(OBSERVED[name], values) for name in stored & OBSERVED.keys())
    return NUMBER_BYTES * (evaluate(scheme.memory_order, values) + runs * observed)


def selection_seconds(scheme: Scheme, n: int, d: int, runs: int = 1) -> float:
    """Return about how many seconds one selection takes on a CPU for all stacked runs."""
    return OPERATION_SECONDS * runs * evaluate(scheme.time_order, _values(scheme, n, d, runs))


def obstacle(scheme: Scheme, n: int, d: int, runs: int, memory: float, seconds: float) -> str:
    """Explain in one line why a sampler cannot select from n clients; empty if it can.

    Parameters
    ----------
    d : int
        Number of the model's parameters; a lower bound if the model is not built yet.
    runs : int
        Number of runs stacked in a job.
    memory : float
        Available memory in bytes.
    seconds : float
        Time limit for one selection.  A run can stop and resume between rounds, but not within one.
    """
    required, time = memory_bytes(scheme, n, d, runs), selection_seconds(scheme, n, d, runs)
    if required > memory:
        return (
            f"name: {scheme.named} needs {format_bytes(required)} of memory for {n:,} clients "
            f"(it grows as {_with_n(scheme.memory_order, scheme)}), but only "
            f"{format_bytes(memory)} are available; "
            f"{_alternative(scheme, n, d, runs, memory, seconds)}"
        )
    if time > seconds:
        return (
            f"name: {scheme.named} takes about {time / 3600:,.0f} hours for one selection among "
            f"{n:,} clients (it grows as {_with_n(scheme.time_order, scheme)}), and the limit is "
            f"{seconds / 3600:,.0f}; {_alternative(scheme, n, d, runs, memory, seconds)}"
        )
    return ""


def _alternative(scheme: Scheme, n: int, d: int, runs: int, memory: float, seconds: float) -> str:
    """Suggest the largest candidate set that fits, or fewer clients if the sampler has none."""
    sizes = CANDIDATES if "candidates" in type(scheme).model_fields else ()
    for size in sizes:
        smaller = scheme.model_copy(update={"candidates": size})
        fits = memory_bytes(smaller, n, d, runs) <= memory
        if size < n and fits and selection_seconds(smaller, n, d, runs) <= seconds:
            return f"set candidates: {size}, or use fewer clients"
    return "use fewer clients, fewer seeds at once, or a sampler that grows as n, such as md"


def _values(scheme: Scheme, n: int, d: int, runs: int) -> dict[str, float]:
    settings = {
        key: float(n if value is None else min(value, n))
        for key, value in scheme
        if value is None or isinstance(value, int | float)
    }
    return {**settings, "n": float(n), "d": float(d), "runs": float(runs)}


def _with_n(order: str, scheme: Scheme) -> str:
    """Replace the names of settings that are null by n."""
    for key in (key for key, value in scheme if value is None):
        order = re.sub(rf"\b{key}\b", "n", order)
    return order
