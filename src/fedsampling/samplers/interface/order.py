"""Memory and time of a sampler's selection among n clients, before a run starts.

A run that cannot fit is rejected with an explanation instead of being killed by the operating
system.
"""

from fedsampling.base.plain_text import format_bytes
from fedsampling.samplers.scheme import Scheme

NUMBER_BYTES = 8  # double precision
OPERATION_SECONDS = 1e-9
CANDIDATES = (10_000, 1000, 100)  # sizes of a candidate set that an error suggests


def memory_bytes(scheme: Scheme, n: int, d: int, runs: int = 1) -> float:
    """Return the bytes that a sampler needs for n clients, including the server's memory."""
    stored = scheme.demand(n, d, runs)[0]
    if "gradients" in scheme.needs:
        stored += runs * 0.5 * n * d
    if "heterogeneity" in scheme.needs and not scheme.reads_blocks:
        stored += runs * n**2
    return NUMBER_BYTES * stored


def selection_seconds(scheme: Scheme, n: int, d: int, runs: int = 1) -> float:
    """Return about how many seconds one selection takes on a CPU for all stacked runs."""
    return OPERATION_SECONDS * runs * scheme.demand(n, d, runs)[1]


def obstacle(scheme: Scheme, n: int, d: int, runs: int, memory: float, seconds: float) -> str:
    """Explain in one line why a sampler cannot select from n clients; empty if it can.

    `d`: number of the model's parameters; a lower bound if the model is not built yet. `runs`:
    number of runs stacked in a job. `memory`: available memory in bytes. `seconds`: time limit for
    one selection.  A run can stop and resume between rounds, but not within one.
    """
    required, time = memory_bytes(scheme, n, d, runs), selection_seconds(scheme, n, d, runs)
    if required <= memory and time <= seconds:
        return ""
    fix = "use fewer clients, fewer seeds at once, or a sampler that grows as n, such as md"
    for size in CANDIDATES if "candidates" in type(scheme).model_fields else ():
        smaller = scheme.model_copy(update={"candidates": size})
        fits = memory_bytes(smaller, n, d, runs) <= memory
        if size < n and fits and selection_seconds(smaller, n, d, runs) <= seconds:
            fix = f"set candidates: {size}, or use fewer clients"
            break
    if required > memory:
        return (
            f"name: {scheme.named} needs {format_bytes(required)} of memory for {n:,} clients, "
            f"but only {format_bytes(memory)} are available; {fix}"
        )
    return (
        f"name: {scheme.named} takes about {time / 3600:,.0f} hours for one selection among "
        f"{n:,} clients, and the limit is {seconds / 3600:,.0f}; {fix}"
    )
