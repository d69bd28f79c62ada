"""Time one selection of harshvardhan2025latency at the paper's sizes, next to its Table 3e.

``python benchmarks/selection.py``: feature heterogeneity, the best subset and the best distribution
by each solver, and the two runtime samplings, on instances drawn as the paper's Quadratic with the
sizes of its three rows.  Prints seconds, and the distance of each result from the minimum.
`docs/performance.md` has the results.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from fedsampling.experiments.papers import load_paper
from fedsampling.experiments.resolving import load_kinds
from fedsampling.samplers.latency import (
    best_distribution,
    best_subset,
    distribution_objective,
    subset_objective,
)
from fedsampling.samplers.runtime import approximately_optimal, luo_probabilities, runtime_objective
from fedsampling.theory.heterogeneity import bounded, pairwise

# Clients, samples per batch, features. The paper has m = 50 samples and d = 100 features.
SIZES = {
    "quadratic": (100, 100, 500),
    "rotated-cifar10": (50, 100, 512),
    "shakespeare": (100, 100, 100),
}
PAPER = load_paper("harshvardhan2025latency", Path(__file__).parents[1] / "papers")
load_kinds(PAPER.folder)
studies = import_module("papers.harshvardhan2025latency.simulations_selection")
DRAWS = 10
SHARE = 0.9


def main() -> None:
    print(f"{'':17}{'task':22}{'paper (s)':>10}{'here (s)':>10}  g over its minimum")
    for name, (m, n, d) in SIZES.items():
        settings = studies.Selection.model_validate(
            {
                "kind": "selection",
                "clients": m,
                "samples": n,
                "dimension": d,
                "draws": 1,
                "sampler": {"name": "overhead"},
            }
        )
        features, delays = studies.instance(settings, 0, 0)
        B = heterogeneity(name, features)
        subsets(name, bounded(B, SHARE), delays)
        distributions(name, bounded(B, SHARE, 1), delays)
        runtimes(name, delays, np.random.default_rng(0).lognormal(size=m) / m)


def heterogeneity(name, features):
    seconds, B = timed(lambda: pairwise(features))
    row(name, "heterogeneity", "heterogeneity", seconds)
    return B


def subsets(name, B, delays):
    minimum = subset_objective(B, delays, best_subset(B, delays)[0])
    for solver in ("exact", "minnorm"):
        seconds, (chosen, _) = timed(lambda solver=solver: best_subset(B, delays, solver))
        row(name, solver, "minnorm", seconds, subset_objective(B, delays, chosen) / minimum)


def distributions(name, B, delays):
    minimum = distribution_objective(B, delays, best_distribution(B, delays, 1, "vertex"))
    for label, options in (
        ("trust-constr", {}),
        ("  exact Jacobian", {"jacobian": "exact"}),
        ("analytic (SLSQP)", {"solver": "analytic"}),
        ("vertex", {"solver": "vertex"}),
    ):
        seconds, p = timed(lambda options=options: best_distribution(B, delays, **options))
        row(name, label, "trust-constr", seconds, distribution_objective(B, delays, p) / minimum)


def runtimes(name, delays, scores):
    # No certificate is known for these minima; both are compared with the uniform distribution.
    uniform = np.full(len(delays), 1 / len(delays))
    for label, k, solve in (
        ("approx_opt", DRAWS, lambda: approximately_optimal(delays, scores, 1.0, DRAWS)),
        ("luo2022", 1, lambda: luo_probabilities(delays, scores, 1.0)),
    ):
        seconds, q = timed(solve)
        gain = runtime_objective(delays, scores, 1.0, q, k)
        gain /= runtime_objective(delays, scores, 1.0, uniform, k)
        row(name, label, "approx_opt", seconds, gain, "of the uniform one's")


def timed(task):
    """Median seconds of up to five calls, fewer of slow ones, and the last answer."""
    times = []
    while len(times) < 5 and sum(times) < 5:
        begin = perf_counter()
        answer = task()
        times.append(perf_counter() - begin)
    return median(times), answer


def row(name, label, reported, seconds, value=None, note=""):
    suffix = "" if value is None else f"  {value:.6f} {note}"
    theirs = PAPER.reported(f"overheads/{name}/{reported}")
    print(f"{name:17}{label:22}{theirs:10g}{seconds:10.5f}{suffix}", flush=True)


if __name__ == "__main__":
    main()
