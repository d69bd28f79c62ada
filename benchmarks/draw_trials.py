"""Draw the random settings that the cross matrix tries; its ``paper.yaml`` lists them.

    python benchmarks/draw_trials.py

Every sampler gets the same nine trials on each dataset: its defaults at four learning rates, and
settings drawn at random at five pairs of local learning rate and server step, which are the same
for all samplers.  There are three draws, a Latin hypercube; the datasets use them in turn.  For a
sampler without settings, the last five trials vary only the two steps.
"""

import json
from typing import Any

from fedsampling.base.streams import stream

SEED, DRAWS = 33, 3
Space = tuple[float, float, str]  # low, high, and how values spread: "log", "linear", "integer"

SPACES: dict[str, dict[str, Space | tuple[str, ...]]] = {
    "active_fl": {
        "least": (0.0, 0.9, "linear"),
        "temperature": (0.01, 10.0, "log"),
        "uniform": (0.0, 0.5, "linear"),
    },
    "approx_opt": {"c": (0.01, 100.0, "log")},
    "available": {"available": (7, 15, "integer")},
    "clustered_similarity": {"measure": ("arccos", "l2", "l1")},
    "cpow_d": {"d": (6, 15, "integer")},
    "cyclic": {"groups": (2, 10, "integer")},
    "delayhet_sampling": {"share": (0.5, 0.99, "linear")},
    "delayhet_submodular": {"share": (0.5, 0.99, "linear")},
    "delta": {"beta": (0.1, 1.0, "log")},
    "divfl": {"weights": ("samples", "equal", "covered")},
    "f3ast": {"beta": (0.001, 0.3, "log")},
    "fedcor": {
        "warm_up": (5, 25, "integer"),
        "interval": (2, 10, "integer"),
        "discount": (0.5, 1.0, "linear"),
    },
    "fedcs": {"deadline": (50.0, 110.0, "linear")},
    "fedgs": {"alpha": (0.01, 10.0, "log"), "sigma2": (0.01, 1.0, "log")},
    "flanp": {"rounds": (2, 20, "integer")},
    "hics": {
        "clusters": (2, 8, "integer"),
        "temperature": (0.001, 1.0, "log"),
        "gamma": (1.0, 8.0, "log"),
    },
    "kvib": {"gamma": (0.1, 10.0, "log")},
    "luo2022": {"c": (0.01, 100.0, "log")},
    "oort": {
        "explore_least": (0.0, 0.5, "linear"),
        "penalty": (0.5, 5.0, "log"),
        "pace": (0.3, 0.95, "linear"),
    },
    "oort_fedscale": {
        "explore_least": (0.1, 0.5, "linear"),
        "cutoff": (0.05, 0.95, "linear"),
        "pace": (20.0, 95.0, "linear"),
    },
    "power_of_choice": {"d": (6, 15, "integer")},
    "rpow_d": {"d": (6, 15, "integer")},
    "stratified": {"strata": (2, 5, "integer")},
    "tifl": {"tiers": (2, 5, "integer")},
    "tifl_adaptive": {"tiers": (2, 5, "integer"), "interval": (5, 40, "integer")},
}


def draws() -> list[dict[str, dict[str, Any]]]:
    """Draw the samplers' settings, by sampler, for each of the draws."""
    drawn: list[dict[str, dict[str, Any]]] = [{} for _ in range(DRAWS)]
    for sampler, space in SPACES.items():
        for setting, values in space.items():
            for draw, value in zip(drawn, points(f"{sampler} {setting}", values), strict=True):
                draw.setdefault(sampler, {})[setting] = value
    return drawn


def points(name: str, space: Space | tuple[str, ...]) -> list[Any]:
    """Draw one value from each third of a space, in random order, or each of three words once."""
    rng = stream(SEED, f"trials {name}")
    order = rng.permutation(DRAWS)
    if isinstance(space[0], str):
        return [space[k] for k in order]
    low, high, spread = space
    place = (order + rng.random(DRAWS)) / DRAWS
    if spread == "log":
        return [float(f"{value:.2g}") for value in low * (high / low) ** place]
    if spread == "integer":
        return [int(low + share * (high - low + 1)) for share in place]
    return [float(f"{value:.2g}") for value in low + place * (high - low)]


if __name__ == "__main__":
    print(json.dumps(draws(), indent=2))
