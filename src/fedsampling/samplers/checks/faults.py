"""The errors that the checks of a sampler find; :mod:`.check` runs them on all populations."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError, described, naming, nearest
from fedsampling.base.streams import stream
from fedsampling.clients.failures import Reporting
from fedsampling.samplers.checks.populations import N, Population, setup
from fedsampling.samplers.checks.rounds import Round, difference, one_run, play_round, play_rounds
from fedsampling.samplers.checks.validation import WEIGHT_SUM_HINT, WEIGHT_SUM_RANGE
from fedsampling.samplers.protocol.base import CONVEX_NEEDS, NETWORK_NEEDS, Scheme
from fedsampling.samplers.protocol.prepared import Prepared, prepared

ROUNDS = 3
LONG_ROUNDS = 25
LONG_RUNS = 40
FALSE_ALARM_PROBABILITY = 1e-6  # that an unbiased sampler is called biased on one population
ABSENCE = "with clients that come and go"
ABSENT_LOSSES = ", whose losses are NaN while they are away"
NEEDS_HINT = "; `needs` must list all information that the sampler uses"


class Fault(NamedTuple):
    """An error of a sampler on one population."""

    # kind of error, independent of the population and the round; each kind is reported once
    kind: str
    text: str  # description, with round and values


def needs_faults(scheme: Scheme) -> Iterator[str]:
    """Yield the unknown names in a sampler's ``needs``."""
    valid = NETWORK_NEEDS | CONVEX_NEEDS
    for name in sorted(scheme.needs - valid):
        yield f"needs: {name!r} is unknown; {nearest(name, valid)}"


def population_faults(
    scheme: Scheme,
    population: Population,
    seeds: Ints,
    reporting: Callable[[Population], Reporting] | None = None,
) -> Iterator[Fault]:
    """Yield a sampler's errors on one population; stop where later tests make no sense."""

    def make(seeds: Ints) -> Prepared:
        """Prepare the sampler with only the information that `needs` names."""
        withheld: dict[str, Any] = {
            "optimum": {},
            **dict.fromkeys(("labels", "label_counts", "delays")),
        }
        withheld = {name: value for name, value in withheld.items() if name not in scheme.needs}
        return prepared(scheme, replace(setup(population, seeds), **withheld))

    few_seeds, long_seeds = seeds[:8], seeds[:LONG_RUNS]
    try:
        ready = make(long_seeds)
        # Many seeds reveal a bias in a single round, on small populations.
        by_round = ready.unbiased and len(population.p) <= N
        first_seeds = seeds if by_round else long_seeds
        first = play_rounds(make, population, first_seeds, ROUNDS)
        if text := _single_run_fault(first[0]):
            yield Fault("single run", text)
            return
        if text := _reproducibility_fault(make, population, few_seeds, first):
            yield Fault("reproducible", text)
        elif text := _memory_fault(make, population, few_seeds):
            yield Fault("state", text)
        long = play_rounds(make, population, long_seeds, LONG_ROUNDS)
        yield from _weight_faults(ready, population, first if by_round else (), long)
        if reporting:
            failures = reporting(population)
            first = play_rounds(make, population, first_seeds, ROUNDS, reporting=failures)
            long = play_rounds(make, population, long_seeds, LONG_ROUNDS, reporting=failures)
            fix = _fix_of_failures(failures.chance)
            for fault in _weight_faults(ready, population, first if by_round else (), long, fix):
                yield Fault(f"{fault.kind} with failures", f"with failures, {fault.text}")
        if scheme.intermittent:
            offered = _changing_availability(len(population.p))
            has_losses = scheme.needs & {"losses", "batch_losses"}
            with naming(ABSENCE + ABSENT_LOSSES if has_losses else ABSENCE):
                play_rounds(make, population, few_seeds, LONG_ROUNDS, offered)
    except InputError as error:
        for line in error.lines:
            yield Fault("error", line + (NEEDS_HINT if "NoneType" in line else ""))
    except Exception as error:  # any exception of a sampler is a result of the check
        missing = isinstance(error, NotImplementedError)  # names the method
        yield Fault("error", described(error) + ("; add it" if missing else NEEDS_HINT))


def _single_run_fault(played: Round) -> str:
    slots = played.slots
    if not len(slots) or slots.run[-1] > 0:
        return ""
    return (
        f"select returned {len(slots)} slots of run 0 and none of {played.runs - 1} other runs; "
        "select clients for each of view.runs runs: Slots.stack takes one array per run"
    )


def _reproducibility_fault(
    make: Callable[[Ints], Prepared], population: Population, seeds: Ints, rounds: Sequence[Round]
) -> str:
    """Repeat some runs, alone and in another order, and compare the draws."""
    repeated = [play_rounds(make, population, seeds, ROUNDS) for _ in range(2)]
    for t, (first, second) in enumerate(zip(*repeated, strict=True)):
        if differs := difference(first, second):
            return f"round {t}: the same seeds give different {differs}; draw from `rng` only"
    for subset in (seeds, seeds[::-1], seeds[5:6]):
        for t, played in enumerate(play_rounds(make, population, subset, ROUNDS)):
            for row, seed in enumerate(subset):
                if differs := difference(one_run(played, row), one_run(rounds[t], int(seed))):
                    return (
                        f"round {t}: a run's {differs} depend on the runs that are stacked with "
                        "it; draw from `rng` only, by run"
                    )
    return ""


def _memory_fault(make: Callable[[Ints], Prepared], population: Population, seeds: Ints) -> str:
    """Stop after two rounds, continue with another object, and compare the draws."""
    first, second = make(seeds), make(seeds)
    for t in range(ROUNDS - 1):
        play_round(first, population, seeds, t)
    second.restore({name: np.array(value) for name, value in first.saved().items()})
    last = [play_round(sampler, population, seeds, ROUNDS - 1) for sampler in (first, second)]
    if not difference(*last):
        return ""
    return (
        "state: the memory is lost with the object; store it in attributes without an underscore, "
        "or, in a Scheme, in the state that initial_state, begin and learn return"
    )


def _weight_faults(
    sampler: Prepared,
    population: Population,
    first: Sequence[Round],
    long: Sequence[Round],
    fix: str = "correct the weights, or set unbiased = False",
) -> Iterator[Fault]:
    """Yield the errors in the weights of the first rounds, each by itself, and of many rounds."""
    total = _client_weights(long, population)
    parts = {
        f"round {t}": _client_weights([played], population)[0] for t, played in enumerate(first)
    }
    parts[f"rounds 0 to {LONG_ROUNDS - 1}"] = total.reshape(-1, len(population.p))
    mean, (low, high) = float(total.sum(axis=2).mean()), WEIGHT_SUM_RANGE
    if sampler.unbiased and (text := _bias_fault(parts, population, fix)):
        yield Fault("bias", text)
    elif mean > high or (mean < low and not sampler.shrinks):
        yield Fault("sums", f"weights: the mean of Σω is {mean:.4g}; {WEIGHT_SUM_HINT}")


def _client_weights(rounds: Sequence[Round], population: Population) -> Array:
    """Sum the weights of each client's slots, shape (rounds, runs, n)."""
    n = len(population.p)
    totals = []
    for played in rounds:
        slots, runs = played.slots, played.runs
        rows = slots.run * n + slots.client
        total = np.bincount(rows, played.omega * slots.scale, runs * n)
        totals.append(total.reshape(runs, n))
    return np.stack(totals)


def _bias_fault(parts: Mapping[str, Array], population: Population, fix: str) -> str:
    """Report the client whose mean weight is furthest from its importance; empty if none is far."""
    from scipy.stats import norm

    n = len(population.p)
    # Two-sided, for all clients and parts.
    max_errors = norm.isf(FALSE_ALARM_PROBABILITY / (2 * (ROUNDS + 1) * n))
    for rounds, total in parts.items():
        error = total.std(0, ddof=1) / np.sqrt(len(total))
        gap = total.mean(0) - population.p
        # Large weights may be so rare that no run drew them, which makes the mean too low. Suspect
        # this where 1 % of the runs contribute more than a third of the sum.
        rare = np.sort(total, axis=0)[-max(len(total) // 100, 1) :].sum(0) > total.sum(0) / 3
        # A client that no run drew may be rare, too, unless a tenth of its importance would have
        # been a large enough probability for a draw.
        expected_draws = np.count_nonzero(total) * population.p / 10
        rare |= ~total.any(0) & (expected_draws < -np.log(FALSE_ALARM_PROBABILITY))
        biased = np.flatnonzero((np.abs(gap) > max_errors * error + 1e-9) & ((gap > 0) | ~rare))
        if len(biased):
            i = biased[np.abs(gap[biased]).argmax()]
            return (
                f"{rounds}: biased for {len(biased)} of {n} clients: E[ω_{i}] is "
                f"{total[:, i].mean():.4g} ± {error[i]:.1g}, but p_{i} = {population.p[i]:.4g}; "
                f"{fix}"
            )
    return ""


def _fix_of_failures(chance: Array | None) -> str:
    """Explain a bias that failures cause; `chance`: probabilities of reporting, if known."""
    if chance is None:
        return "the probabilities of reporting are unknown, so that nothing corrects the weights"
    if not chance.all():
        return f"{(chance == 0).sum()} clients always miss the deadline, which nothing corrects"
    return "if weigh normalises over its slots, set failure_weights = 'average'"


def _changing_availability(n: int) -> Callable[[int], Ints]:
    """Return a function for the available clients: several, a single one, then random ones."""
    chosen: list[Sequence[int]] = [[1, 2, 3, 5, 8, 9, 10], [7], [0, 3, 4, 6, 7, 11]]

    def offered(t: int) -> Ints:
        if t < len(chosen):
            return np.array(chosen[t])
        rng = stream(0, "availability", t)
        available = rng.uniform(size=n) < rng.uniform()
        return np.flatnonzero(available) if available.any() else np.array([t % n])

    return offered
