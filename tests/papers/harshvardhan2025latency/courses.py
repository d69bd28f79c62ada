"""Courses of runs that are made up, with the settings of the paper's own experiments."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import judge_function, load_paper
from fedsampling.experiments.resolving import resolve_experiments

PAPER = load_paper("harshvardhan2025latency", Path(__file__).parents[3] / "papers")
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
    for name, reached in rounds.items():
        for seed in seeds:
            for t in range(length + 1):
                key = (case, name, seed, t)
                rows.append((*key, metric, at_target if t >= reached else before))
                if t:
                    rows.append((*key, "clients", 1 + t % 2))
                    rows.append((*key, "reports", 1 + t % 2))
                    rows.append((*key, "model_bits", (1 + t % 2) * 8 * 1.6e6))
                    rows.append((*key, "seconds", seconds))
                    rows.append((*key, "asking_seconds", asking if t == 1 else 0.0))
    return Summary(pd.DataFrame(rows, columns=NAMES), settings, {"scale": scale})


def joined(*parts):
    """Put the cases of several summaries into one."""
    settings = dict(parts[0].settings)
    for key in ("cases", "samplers"):
        settings[key] = {
            name: fields for part in parts for name, fields in part.settings[key].items()
        }
    rows = pd.concat([part.rows for part in parts], ignore_index=True)
    return Summary(rows, settings, parts[0].provenance)


def draws(experiment, rounds, delays="synthetic", problems=3):
    """Give each scheme its rounds on some draws of Quadratic, with FLANP unless it has its own."""
    if experiment == "quadratic_problems":
        rounds = {"flanp": 99} | rounds
    return joined(
        *(summary(experiment, rounds, f"{delays}-p{k}", seeds=(0,)) for k in range(problems))
    )


def judged(name, **summaries):
    """Judge a claim by made-up runs."""
    return judge_function(PAPER, name)(summaries, PAPER.claims[name], PAPER).verdict


@cache
def resolved():
    experiments = resolve_experiments(PAPER, Config(papers=[PAPER.key], scale="paper"))
    return {name: resolved.experiment for name, resolved in experiments.items()}
