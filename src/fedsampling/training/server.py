"""The server loop: select, train, weigh, update; one loop for every scheme.

    θ ← θ + η_g Σ_i ω_i (θ_i − θ)

Runs (seeds) are stacked and never mix.  What a run measures goes to one tidy table per run.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsampling.datasets.federated import FederatedDataset
from fedsampling.models.linear import Linear
from fedsampling.samplers.slots import Sampler, Slots, View
from fedsampling.streams import Draws
from fedsampling.training.local import Work, local_sgd

Array = NDArray[np.float64]
Measure = Callable[[Array, Sampler], Mapping[str, Array]]


def train(
    model: Linear,
    data: FederatedDataset,
    work: Work,
    sampler: Sampler,
    seeds: Sequence[int],
    rounds: int,
    measures: Sequence[tuple[int, Measure]],
    progress: Callable[[int], None] = lambda done: None,
) -> list[pd.DataFrame]:
    """Train all seeds of a job together.

    Parameters
    ----------
    seeds : sequence of int
        One run each.
    rounds : int
    measures : sequence of (period, measure)
        `measure(theta, sampler)` gives named arrays of shape (runs,); taken before the first round
        and after every `period` rounds and the last.
    progress : callable, optional
        Told the number of finished rounds.

    Returns
    -------
    list of DataFrame, one per seed
        Columns ``at`` (round), ``metric``, ``value``.  A run whose model is no longer finite is
        *diverged*: its values are NaN from there on, and ``diverged_at`` says when.
    """
    seeds_array = np.asarray(seeds, np.int64)
    theta = np.zeros((len(seeds_array), data.x.shape[1]))
    diverged_at = np.full(len(seeds_array), -1)
    table: list[tuple[int, str, Array]] = []
    uplink, gradients = np.zeros(len(seeds_array)), np.zeros(len(seeds_array))
    for t in range(rounds + 1):
        for period, measure in measures:
            if t % period == 0 or t == rounds:
                for name, value in measure(theta, sampler).items():
                    table.append((t, name, np.where(diverged_at < 0, value, np.nan)))
        progress(t)
        if t == rounds:
            break
        rng = Draws(seeds_array, t)
        view = View(
            data.n_samples, data.p, t, len(seeds_array), observe(sampler, model, data, theta)
        )
        slots = sampler.select(view, rng)
        local = local_sgd(model, data, work, theta, slots, sampler, rng)
        omega = sampler.weigh(slots, view, rng)
        theta = theta + aggregate(omega[:, None] * (local - theta[slots.run]), slots, len(theta))
        up, computed = charge(sampler, data, work, slots, len(theta))
        uplink += up / rounds
        gradients += computed / rounds
        lost = (diverged_at < 0) & ~np.isfinite(theta).all(-1)
        diverged_at[lost] = t + 1
        theta[diverged_at >= 0] = 0.0  # keeps the others' arithmetic free of warnings
    table.append((-1, "uplink_bits_per_round", uplink))
    table.append((-1, "gradients_per_round", gradients))
    table.append((-1, "diverged_at", diverged_at.astype(np.float64)))
    return [_tidy(table, run) for run in range(len(seeds_array))]


def aggregate(weighted: Array, slots: Slots, runs: int) -> Array:
    """Sum the slots' weighted updates run by run, shape (runs, M)."""
    total = np.zeros((runs, weighted.shape[1]))
    np.add.at(total, slots.run, weighted)
    return total


def observe(
    sampler: Sampler, model: Linear, data: FederatedDataset, theta: Array
) -> Mapping[str, Any]:
    """Compute what the sampler needs to see before it selects, and nothing else."""
    views = {"client_gradients": model.client_gradients, "mean_norms": model.mean_norms}
    return {name: compute(theta, data) for name, compute in views.items() if name in sampler.needs}


def charge(
    sampler: Sampler, data: FederatedDataset, work: Work, slots: Slots, runs: int
) -> tuple[Array, Array]:
    """Count what a round costs each run: bits sent by clients, and gradients they compute.

    Returns
    -------
    bits : float array, shape (runs,)
        32 per coordinate of each reported model, and 32 per score sent to the server.
    gradients : float array, shape (runs,)
        Per-sample gradients, those that only the choice of samples needs included.
    """
    k = slots.client
    reports = np.bincount(slots.run, minlength=runs).astype(np.float64)
    bits: Array = 32 * data.x.shape[1] * reports
    gradients = np.bincount(slots.run, work.E[k] * work.B[k], minlength=runs).astype(np.float64)
    if "batch_gradients" in sampler.needs:
        bits += 32 * reports
        # Each batch also at the round's first model, where the first epoch has been already.
        gradients += np.bincount(slots.run, (work.E[k] - 1) * work.B[k], minlength=runs)
    if "client_gradients" in sampler.needs:  # every client reports one score, from all its data
        bits += 32 * data.n_clients
        gradients += data.n_samples.sum()
    return bits, gradients


def _tidy(table: Sequence[tuple[int, str, Array]], run: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "at": np.array([at for at, _, _ in table], np.int64),
            "metric": pd.Categorical([name for _, name, _ in table]),
            "value": np.array([values[run] for _, _, values in table], np.float64),
        }
    )
