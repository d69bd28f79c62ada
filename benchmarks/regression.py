"""Time the stacked training against plain loops on the regression problem of rizk2022importance.

``python benchmarks/regression.py``: K = 300, N_k = 100, L = 6, 100 repetitions, one thread, both on
the same random numbers in the same process.  Prints a table, and checks that both give the
same iterates.  `benchmarks/README.md` has the results.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import rizk_loop

from fedsampling.base.streams import uniforms
from fedsampling.experiments.simulations.federated import (
    Federated,
    at_optimum,
    build_learner,
    build_sampler,
)
from fedsampling.learning.training.loop import train

REPETITIONS = 100
ROUNDS_LOOP, ROUNDS_STACK = 2, 200
TIMES = 5
L = 6
SAMPLERS = {
    "FedAvg": {"name": "uniform", "m": L},
    "optimal": {"name": "isfedavg", "m": L, "probabilities": "optimal"},
    "approximate": {"name": "isfedavg", "m": L, "probabilities": "approximate"},
    "tracked": {"name": "isfedavg", "m": L, "probabilities": "tracked"},
}
# Millions of numbers that a round of all repetitions reads, changes and writes. This is the cost
# without calls, gathers and page faults. 600 agents are active, for 3 epochs on average, so 1,800
# mini-batches are drawn, from 100 samples each.
MILLIONS = {
    "FedAvg": 15_000 * 100 / 1e6,  # 25 Philox blocks for each active agent, 10 rounds of 10 steps
    "optimal": 1_800 * 100 * 4 / 1e6,  # gather, shift and compare the progressive totals
    "approximate": (30_000 * 12 + 600 * 100 * 20 + 1_800 * 100 * 4) / 1e6,  # moments, norms, Π_k
    "tracked": 1_800 * 100 * 12 / 1e6,  # inclusion probabilities and totals for each batch
}


def main() -> None:
    totals = np.zeros(3)
    print(f"{'ms per round':12} {'loops':>9} {'stacked':>9} {'ratio':>7} {'limit':>7}  difference")
    for label, sampler in SAMPLERS.items():
        settings = Federated.model_validate(
            {
                "kind": "federated",
                "dataset": {
                    "name": "regression",
                    "agents": 300,
                    "samples": 100,
                    "dimension": 2,
                    "eigenvalues": [1, 2],
                    "noise": [0.01, 1],
                },
                "model": {"name": "linear", "rho": 0.001},
                "work": {"step": 0.01, "epochs": [1, 5], "batch": [1, 10]},
                "sampler": sampler,
                "rounds": ROUNDS_STACK,
                "every": ROUNDS_STACK,
            }
        )
        loop, w_loop = time_loop(settings)
        stack, w_stack = time_stack(settings)
        difference = np.abs(w_loop - w_stack).max()
        assert difference < 1e-9, f"{label}: the iterates differ by {difference}"
        limit = MILLIONS[label] * pass_over_a_million()
        totals += loop, stack, limit
        print_row(label, loop, stack, limit, f"{difference:.0e}")
    print_row("together", *totals, "")


def print_row(label: str, loop: float, stack: float, limit: float, note: str) -> None:
    print(f"{label:12} {loop:9.1f} {stack:9.2f} {loop / stack:7.1f} {limit:7.2f}  {note}")


def pass_over_a_million() -> float:
    """Milliseconds for a million multiplications of numbers in the second-level cache."""
    a, b, c = np.ones((3, 15_000))
    times = []
    for _ in range(1000):
        begin = perf_counter()
        np.multiply(a, b, out=c)
        times.append(perf_counter() - begin)
    return median(times) * 1e3 / 0.015


def time_loop(settings: Federated) -> tuple[float, np.ndarray]:
    """Milliseconds per round of all repetitions, and the iterates (rounds + 1, repetitions, M)."""
    learner, optimum = parts(settings)
    problem, model = learner.data, learner.model
    cuts = problem.start[1:-1]
    agents = list(zip(np.split(problem.x, cuts), np.split(problem.y, cuts), strict=True))
    # Drawn before the clock starts: random numbers are free for the loops.
    numbers = [draw(settings, learner, seed) for seed in range(REPETITIONS)]
    common = (
        rizk_loop.GRADIENTS[model.name],
        model.rho,
        agents,
        learner.E,
        learner.B,
        learner.local.step,
    )
    best = rizk_loop.probabilities_at(optimum["w"], *common[:-1])
    times = []
    for _ in range(TIMES):
        begin = perf_counter()
        if settings.sampler.named == "uniform":
            w = [rizk_loop.fedavg(*common, given, ROUNDS_LOOP) for given in numbers]
        else:
            rule = settings.sampler.probabilities
            w = [
                rizk_loop.isfedavg(*common, L, rule, best, given, ROUNDS_LOOP) for given in numbers
            ]
        times.append((perf_counter() - begin) / ROUNDS_LOOP * 1e3)
    return median(times), np.swapaxes(w, 0, 1)


def time_stack(settings: Federated) -> tuple[float, np.ndarray]:
    """Milliseconds per round of the package's training, and its first iterates."""
    learner, optimum = parts(settings)
    w = []

    def keep(moment):
        w.append(moment.theta)

    times = []
    for rounds in [ROUNDS_LOOP, *[ROUNDS_STACK] * TIMES]:
        sampler = build_sampler(settings.sampler, learner, REPETITIONS, optimum)
        begin = perf_counter()
        callbacks = [keep] if rounds == ROUNDS_LOOP else []
        train(learner, sampler, range(REPETITIONS), rounds, callbacks)
        times.append((perf_counter() - begin) / rounds * 1e3)
    return median(times[1:]), np.stack(w)


def parts(settings):
    """Return the learner, and the quantities at the minimiser."""
    problem = settings.dataset.load("generated", settings.problem_seed, Path(), None)
    learner = build_learner(settings.model, settings.work, problem, settings.problem_seed)
    return learner, at_optimum(learner.model, problem)


def draw(settings, learner, seed):
    """Look up the package's own random numbers as ``numbers(iteration, agent or None)``."""
    K, E, B = len(learner.E), learner.E.max(), learner.B.max()
    fedavg = settings.sampler.named == "uniform"
    rows = (E, B) if fedavg else (E,)
    rounds = np.arange(ROUNDS_LOOP)
    if fedavg:
        servers = uniforms(seed, "clients", rounds, n=L)
    else:
        servers = uniforms(seed, "agents", rounds, n=1)[:, 0]
    local = uniforms(seed, "batches", rounds[:, None], np.arange(K), n=int(np.prod(rows)))
    local = local.reshape(ROUNDS_LOOP, K, *rows)
    return lambda i, k: servers[i] if k is None else local[i, k]


if __name__ == "__main__":
    main()
