"""The datasets and learning rates on which claims of Chen et al. 2022 on training are judged.

Uniform sampling was run with two learning rates where claims are judged on MNIST by writer.
"""

from collections.abc import Callable, Mapping

import pandas as pd

from fedsampling.evidence.rules import over_choices
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import Finding, Part
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .courses import course

SCHEMES = ("full", "uniform", "optimal")
TUNED = "writers_tuned"  # uniform sampling at another step
OPPOSITE: Mapping[Part, Part] = {"holds": "fails", "fails": "holds", "open": "open"}
Datasets = Mapping[str, tuple[Summary, str]]  # experiment and case of each dataset
Courses = Mapping[str, pd.DataFrame]  # the course of every run, by dataset


def over_steps(
    judge: Callable[[Courses], Finding], summaries: Summaries, claim: ClaimSpec, paper: Paper
) -> Finding:
    """Judge a claim with each step of uniform sampling that was run; the tuned one is the main."""
    sets = datasets_of(summaries, claim, paper)
    courses = {name: course(summary, case) for name, (summary, case) in sets.items()}
    if not claim.transfer or TUNED not in summaries or not sets:
        return judge(courses)
    tuned = summaries[TUNED]
    with_tuned = {
        name: pd.concat([runs[runs["sampler"] != "uniform"], course(tuned, name)])
        for name, runs in courses.items()
        if name in tuned.settings["cases"]
    }
    first, second = (
        f"uniform sampling's learning rate {step:g}"
        for step in (_step(*next(iter(sets.values()))), _step(tuned))
    )
    readings = {first: judge(courses), second: judge({**courses, **with_tuned})}
    return over_choices(readings, main=second)


def datasets_of(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Datasets:
    """Return a claim's datasets: one experiment each, or cases with the datasets' names."""
    return {
        name if case == "base" else case: (summaries[name], case)
        for name in claim.experiments or paper.artefacts[claim.artefact].experiments
        if name in summaries
        for case in summaries[name].settings["cases"]
    }


def _step(summary: Summary, case: str | None = None) -> float:
    """Return the step of uniform sampling in a case, by default the first."""
    case = case or next(iter(summary.settings["cases"]))
    scale = float(summary.setting("scale", sampler="uniform"))
    return scale * float(summary.setting("work.step", case))
