"""Checks of a sampler that need no training; run them before you use a new sampler.

:func:`check_sampler` runs a sampler on several small populations: three rounds, of an unbiased
sampler with thousands of seeds, which reveal a bias; and 25 rounds with a few seeds, some with
unavailable clients.  It reports slots out of range, biased weights, draws that depend on other runs
or on undeclared information, and memory that a checkpoint would lose.  It is modelled on
Gymnasium's ``check_env``.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedsampling.base.errors import CodeError, InputError, described, gathering, naming
from fedsampling.base.records import check
from fedsampling.base.yaml_reading import parse_yaml
from fedsampling.clients.delays import Delays
from fedsampling.clients.failures import Failures, Reporting
from fedsampling.samplers.checks.faults import (
    LONG_ROUNDS,
    LONG_RUNS,
    needs_faults,
    population_faults,
)
from fedsampling.samplers.checks.populations import POPULATIONS, Population, setup
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.base import scheme as make_scheme
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.users.files import load_file

RUNS = 3000  # seeds in each of the first rounds, if the sampler is unbiased
MIN_RUNS = 100


@dataclass(frozen=True)
class CheckResult:
    """Result of a check that a sampler passed."""

    accepted: tuple[str, ...]  # populations on which the sampler passed
    # populations that the sampler rejected, and the reasons
    refused: Mapping[str, str]


def check_sampler(
    scheme: Scheme, runs: int = RUNS, failures: Failures | float | Mapping[str, Any] | None = None
) -> CheckResult:
    """Test a sampler on small populations.

    Parameters
    ----------
    scheme : Scheme
        Should select a few of twelve clients.
    runs : int
        Number of seeds for the estimate of E[ω_i] of an unbiased sampler, at least 100.
    failures : float or dict, optional
        Also check the weights if selected clients fail: a probability, or ``probability``,
        ``deadline`` (delays have median 1) and ``first``, as in :func:`fedsampling.train`.  An
        error shows the bias that they cause.

    Raises
    ------
    InputError
        One line for each kind of error, if one of these conditions fails:

        - slots are in range and ordered by run; ω is finite, one number per slot;
        - if ``unbiased``: E[ω_i], summed over the slots of client i times their ``scale``, is p_i,
          tested over `runs` seeds with a false-alarm probability of 1e-6 for each population;
          otherwise: the mean of Σ ω_i is within [0.1, 10], or below if it ``shrinks``;
        - the same seed gives the same draws, alone and among other runs, in any order of runs;
        - if ``intermittent``: only available clients are selected, for any number of them;
        - the sampler observes only what ``needs`` names;
        - a new object that restores its state continues in the same way.

        Also if the sampler rejects all populations.

    Examples
    --------
    >>> import fedsampling as fs
    >>> checked = fs.check_sampler(fs.scheme("md", m=4), runs=100)
    """
    if not isinstance(scheme, Scheme):
        raise InputError(
            f"scheme: {scheme!r:.60} is not a sampler; use one with its settings, such as "
            "fedsampling.scheme('md', m=4)"
        )
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < MIN_RUNS:
        raise InputError(f"runs: {runs!r:.60} is invalid; must be an integer, at least {MIN_RUNS}")
    if faults := list(needs_faults(scheme)):
        raise InputError(*faults)
    reporting = _reporting(failures)
    first = "initial_state" if scheme.is_stacked else "prepare"
    refused: dict[str, str] = {}
    faulty: dict[str, str] = {}  # the first error of each kind
    for name, population in POPULATIONS.items():
        try:
            prepared(scheme, setup(population, np.arange(LONG_RUNS)))
        except CodeError as error:
            faulty.setdefault("error", f"{name}: {error}")
            continue
        except InputError as refusal:
            refused[name] = str(refusal)
            continue
        except Exception as error:  # any exception of a sampler is a result of the check
            faulty.setdefault("error", f"{name}: {first}: {described(error)}")
            continue
        for fault in population_faults(scheme, population, np.arange(runs), reporting):
            faulty.setdefault(fault.kind, f"{name}: {fault.text}")
    if faulty:
        raise InputError(*faulty.values())
    if len(refused) == len(POPULATIONS):
        reasons = [f"population: {reason}" for reason in dict.fromkeys(refused.values())]
        raise InputError(*reasons, "population: the sampler rejects all of them; change it")
    return CheckResult(tuple(name for name in POPULATIONS if name not in refused), refused)


def _reporting(failures: Any) -> Callable[[Population], Reporting] | None:
    """Return a function that prepares failures for a population, whose delays are constant."""
    if failures is None:
        return None
    data = failures if isinstance(failures, Mapping) else {"probability": failures}
    given = isinstance(failures, Failures)
    record = failures if given else check(Failures, dict(data), "failures.")

    def prepare(population: Population) -> Reporting:
        delays = Delays(np.asarray(setup(population, np.arange(1)).delays))
        return record.reporting(np.arange(len(population.p)), LONG_ROUNDS, delays)

    return prepare


def check_all(
    name: str, words: Sequence[str], failures: str | None = None
) -> dict[str, CheckResult]:
    """Check a sampler by name, or all that a file defines, with words such as ``m=4``; by name.

    `failures`: those of :func:`check_sampler`, as YAML. Raises an InputError with the lines of all
    samplers that fail, each with the sampler's name.
    """
    results: dict[str, CheckResult] = {}
    problems: list[str] = []
    samplers = from_words(name, words)
    read = None if failures is None else parse_yaml(failures, "failures")
    for sampler in samplers:
        with gathering(problems), naming(sampler.named) if len(samplers) > 1 else nullcontext():
            results[sampler.named] = check_sampler(sampler, failures=read)
    if problems:
        raise InputError(*problems)
    return results


def from_words(name: str, words: Sequence[str]) -> list[Scheme]:
    """Create a sampler by name, or all that a file defines, with words such as ``m=4``.

    A setting applies to the samplers that have it; one that none has is refused.
    """
    settings: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"{word}: not a setting; write it as key=value")
        if key == "name":
            raise InputError(f"{word}: the sampler is {name!r} already; remove {word}")
        settings[key] = parse_yaml(value, key)
    if not name.endswith(".py"):
        return [make_scheme(name, **settings)]
    members = load_file(Path(name))
    known = {key for member in members for key in member.model_fields}
    samplers, problems = [], list[str]()
    for member in members:
        own = {k: v for k, v in settings.items() if k in member.model_fields or k not in known}
        with gathering(problems), naming(member.named) if len(members) > 1 else nullcontext():
            samplers.append(make_scheme(member.named, **own))
    if problems:
        raise InputError(*problems)
    return samplers
