"""Settings of runs of Harshvardhan et al. 2025, as validated records and in words."""

from collections.abc import Mapping
from typing import Any

from fedsampling.base.records import check
from fedsampling.base.text import plural
from fedsampling.evidence.summaries import Summary
from fedsampling.samplers.flanp import Flanp


def record(summary: Summary, case: str | None = None) -> Any:
    """Return the validated settings of a case's runs, including defaults."""
    from fedsampling.experiments.resolving import Experiment, run_settings  # loads run kinds

    experiment = Experiment.model_validate(summary.settings)
    return run_settings(
        experiment, case or next(iter(experiment.cases)), next(iter(experiment.samplers))
    )


def bound_in_words(settings: Mapping[str, Any]) -> str:
    """Write the bound on B in DelayHetSampling's settings, and whether its solver keeps to it."""
    bound = "Assumption 3 alone" if settings.get("bound") == "start" else "B_p < 1 everywhere"
    return f"{bound}; solver inside the simplex" if settings.get("feasible") else bound


def reading_in_words(settings: Mapping[str, Any]) -> str:
    """Write the bound on B and the iterations in DelayHetSampling's settings."""
    return f"{bound_in_words(settings)}; {iterations(settings):,} iterations"


def stages_in_words(settings: Mapping[str, Any]) -> str:
    """Write with how many clients FLANP starts, and when its stages end."""
    stages = check(Flanp, dict(settings), "")
    rule = {
        "gradient": f"stages end at {stages.accuracy:g} of the first squared norm",
        "statistical": "stages end by the statistical rule",
        "rounds": f"{plural(stages.rounds, 'round')} per stage",
    }[stages.stop]
    return f"{stages.first} clients first; {rule}"


def iterations(settings: Mapping[str, Any]) -> int:
    """Return the iterations of DelayHetSampling's solver."""
    from fedsampling.samplers.latency import ITERATIONS

    return int(settings.get("iterations", ITERATIONS))
