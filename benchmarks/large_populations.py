"""Time one selection of every costly sampler, n = 1,000 to 1,000,000, with and without candidates.

``python benchmarks/large_populations.py``: seconds and megabytes of one selection of m = 50 with
d = 100 parameters, each in a separate process, next to the estimate of
:mod:`fedsampling.samplers.interface.in_settings`.  Selections with an estimate above half of the
machine's memory or above ``LONGEST`` seconds are not run.  `benchmarks/README.md` has the results.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import resource
import subprocess
import sys
from time import perf_counter

import numpy as np

from fedsampling.base import memory
from fedsampling.base.streams import Draws
from fedsampling.samplers.interface.in_settings import memory_bytes, selection_seconds
from fedsampling.samplers.scheme import Setup, View, scheme
from fedsampling.theory.heterogeneity import pairwise

M, D, SAMPLES, FEATURES = 50, 100, 4, 16
POPULATIONS = (1000, 10_000, 100_000, 1_000_000)
LONGEST = 200.0
SAMPLERS = {
    "md": {"m": M},
    "clustered_similarity": {"m": M},
    "divfl": {"m": M},
    "delayhet_submodular": {"solver": "exact"},
    "delayhet_sampling": {"m": M, "solver": "analytic"},
    "approx_opt": {"m": M},
}
CANDIDATES = {
    "clustered_similarity": 200,
    "divfl": 100,
    "delayhet_submodular": 100,
    "delayhet_sampling": 100,
    "approx_opt": 100,
}


class OfSome:
    """Heterogeneity matrix B of the requested clients, as training computes it."""

    def __init__(self, features):
        self.features = features

    def __getitem__(self, index):
        return pairwise(self.features[np.ravel(index[0])])


def main():
    print(f"{'sampler':22}{'candidates':>11}{'clients':>10}{'s':>9}{'MB':>9}   foreseen s, MB")
    for name, settings in SAMPLERS.items():
        for size in dict.fromkeys([None, CANDIDATES.get(name)]):
            sampler = scheme(name, **settings, **({"candidates": size} if size else {}))
            for n in POPULATIONS:
                row(name, size, n, sampler)


def row(name, size, n, sampler):
    foreseen = selection_seconds(sampler, n, D), memory_bytes(sampler, n, D)
    measured = f"{'refused':>18}"
    if foreseen[0] < LONGEST and foreseen[1] < memory.available() / 2:
        command = [sys.executable, __file__, name, str(size or ""), str(n)]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        failed = process.stderr.strip().rpartition("\n")[2]
        measured = process.stdout.strip("\n") if not process.returncode else f"  {failed}"
    print(
        f"{name:22}{size or '–':>11}{n:10}{measured}   {foreseen[0]:.3g}, {foreseen[1] / 1e6:.0f}",
        flush=True,
    )


def select(name, size, n):
    """Print seconds and megabytes of one selection, the second one of a process."""
    sampler = scheme(name, **SAMPLERS[name], **({"candidates": int(size)} if size else {}))
    rng = np.random.default_rng(0)
    before = peak()
    sizes = rng.integers(10, 100, n)
    setup = Setup(sizes, sizes / sizes.sum(), dimension=D, delays=rng.lognormal(size=n))
    ready = sampler.prepared(setup)
    observed = {name: show(name, n, rng, setup, bool(size)) for name in ready.needs - {"updates"}}
    view = View(sizes, setup.p, 0, 1, observed)
    if "updates" in ready.needs:
        slots = ready.select(view, Draws(np.zeros(1, np.int64), 0))
        ready.saw_updates(slots, rng.standard_normal((len(slots), D), np.float32))
    begin = perf_counter()
    ready.select(view, Draws(np.zeros(1, np.int64), 1))
    print(f"{perf_counter() - begin:9.3f}{(peak() - before) / 1e6:9.0f}")


def show(name, n, rng, setup, blocks):
    if name == "delays":
        return setup.delays
    if name == "gradients":
        return rng.standard_normal((1, n, D), np.float32)
    if blocks:
        return [OfSome(rng.standard_normal((n, SAMPLES, FEATURES), np.float32))]
    place = rng.random((n, 1))
    return np.abs(place - place.T)[None]


def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    select(sys.argv[1], sys.argv[2], int(sys.argv[3])) if len(sys.argv) > 1 else main()
