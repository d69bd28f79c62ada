"""Courses of runs that are made up, with the settings of the paper's own experiments."""

from dataclasses import replace
from functools import cache
from itertools import product
from zlib import crc32

import numpy as np
import pandas as pd

from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import load_paper
from fedsampling.experiments.resolving import resolve_experiments

from ..shared import PAPERS, judge

PAPER = load_paper("harshvardhan2025latency", PAPERS)
NAMES = ["case", "sampler", "seed", "at", "metric", "value"]


def summary(
    experiment, rounds, case="nycmesh", seconds=10.0, asking=0.0, seeds=(0, 1, 2), scale="paper"
):
    """Make runs in which each sampler reaches its target in round ``rounds[sampler]``.

    Every round takes `seconds`.  One client and two clients train in turn.
    """
    settings = resolved()[experiment].model_dump()
    settings["cases"] = {case: settings["cases"][case]}
    settings["samplers"] = {name: settings["samplers"][name] for name in rounds}
    length = settings["settings"]["rounds"] = 40
    metric, before, at_target = "accuracy", 0.1, 0.99
    if settings["settings"]["dataset"]["name"] == "quadratic":  # normalised: 4 and 2
        metric, before, at_target = "test_loss", 2 * np.sqrt(500), np.sqrt(500)
    rows = []
    for (name, reached), seed, t in product(rounds.items(), seeds, range(length + 1)):
        n = 1 + t % 2
        values = {"clients": n, "reports": n, "model_bits": n * 8 * 1.6e6, "seconds": seconds}
        values = values | {"asking_seconds": asking if t == 1 else 0.0} if t else {}
        values[metric] = at_target if t >= reached else before
        rows += [(case, name, seed, t, *value) for value in values.items()]
    return Summary(pd.DataFrame(rows, columns=NAMES), settings, {"scale": scale})


def made(**experiments):
    """Make runs of several experiments: rounds to the target by case and sampler."""
    return {
        name: joined(*(summary(name, rounds, case) for case, rounds in cases.items()))
        for name, cases in experiments.items()
    }


def overheads(seconds, *cases):
    """Seconds that each task takes, with a spread over seeds."""
    rows = [
        (case, "overhead", seed, 0, name, (1 + 0.01 * ((seed + position) % 3)) * value)
        for case in cases
        for position, (name, value) in enumerate(seconds.items())
        for seed in range(3)
    ]
    return Summary(pd.DataFrame(rows, columns=NAMES), {}, {"device": ["a processor"]})


def joined(*parts):
    """Put the cases of several summaries into one."""
    settings = dict(parts[0].settings)
    for key in ("cases", "samplers"):
        settings[key] = {k: v for part in parts for k, v in part.settings[key].items()}
    rows = pd.concat([part.rows for part in parts], ignore_index=True)
    return Summary(rows, settings, parts[0].provenance)


def draws(experiment, rounds, delays="synthetic", problems=3):
    """Give each scheme its rounds on some draws of Quadratic, with FLANP unless it has its own."""
    if experiment == "quadratic_problems":
        rounds = {"flanp": 99} | rounds
    return joined(
        *(summary(experiment, rounds, f"{delays}-p{k}", seeds=(0,)) for k in range(problems))
    )


def varied(runs):
    """Let the seconds of a round vary a little by case, sampler and seed, as real ones do.

    Differences that are equal in every seed have no interval.
    """
    rows = runs.rows.copy()
    names = rows["case"] + rows["sampler"] + rows["seed"].astype(str)
    percents = names.map({name: crc32(name.encode()) % 20 / 10 for name in names.unique()})
    rows["value"] *= np.where(rows["metric"] == "seconds", 1 + percents / 100, 1)
    return replace(runs, rows=rows)


def judged(name, **runs):
    """Judge a claim by made-up runs, whose seconds vary a little."""
    return judge(PAPER, name, {experiment: varied(each) for experiment, each in runs.items()})


@cache
def resolved():
    experiments = resolve_experiments(PAPER, Config(papers=[PAPER.key], scale="paper"))
    return {name: resolved.experiment for name, resolved in experiments.items()}
