"""The bits and seconds that a round costs, and what a sampler's information costs."""

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING

import numpy as np

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.streams import Draws
from fedsampling.clients.delays import Delays
from fedsampling.learning.training.participation import count_distinct
from fedsampling.samplers.protocol.base import requests_of_needs
from fedsampling.samplers.protocol.prepared import Prepared
from fedsampling.samplers.protocol.slots import Slots

if TYPE_CHECKING:  # the Snakefile imports this module, but not users' tables
    from fedsampling.clients.failures import Outcome

# Costs of a run that comparisons use: bits sent by clients, and time.
COMPARED_COSTS = frozenset(
    {"model_bits", "norm_bits", "exchange_bits", "observation_bits", "seconds", "asking_seconds"}
)
FORWARD_SHARE = 1 / 3  # cost of a forward pass, in units of forward and backward pass together
# What a sampler's `needs` cost.
INFORMATION_COSTS = {
    "batch_losses": "32 bits from every client that is asked (by default, all available clients) "
    "in every round, which waits for their forward pass over a mini-batch",
    "batch_gradients": "32 bits from each client that trained, which also computes gradients of "
    "its batches at the round's first model",
    "bias_updates": "free, part of the update: the change of the last layer's biases",
    "client_gradients": "32 bits from every client in every round, and a pass over all its data",
    "delays": "free: the server knows the expected seconds",
    "gradients": "as many bits as a model, from every client before the first round, which waits "
    "for the slowest client; then from each client that trained",
    "heterogeneity": "the features of a batch, from every client before the first round, which "
    "waits for the slowest client; then from each client that trained",
    "label_counts": "32 bits for each label from every client before the first round",
    "labels": "free here, but no practical server has them",
    "losses": "32 bits from every client that is asked (by default, all available clients) in "
    "every round, which waits for them",
    "mean_norms": "from every client in every round; not charged",
    "optimum": "not available to any practical server; not charged",
    "sample_norms": "from the clients that train; not charged",
    "update_norms": "32 bits from each slot that trained",
    "updates": "free: clients send them anyway",
    "work_losses": "32 bits from each slot that trained, with its update",
}


def bits(
    sampler: Prepared,
    slots: Slots,
    omega: Array,
    dimension: int,
    runs: int,
    labels: int = 0,
) -> Mapping[str, Array]:
    """Count the bits that were sent.

    `labels`: numbers of label counts that the clients send in this round, if the sampler needs
    them. Returns shape (runs,): ``model_bits``: 32 per parameter of each report; ``norm_bits``: 32
    for each client that sends its update's norm; ``exchange_bits`` of label counts and of the
    sampler's own protocol, if it has one; ``down_bits``: the model, to each client that trains.
    """
    model = 32.0 * dimension
    reports = np.bincount(slots.run[omega != 0], minlength=runs)
    trained = np.bincount(slots.run, minlength=runs)
    counted: dict[str, Array] = {
        "model_bits": (model * reports).astype(np.float64),
        "norm_bits": (32.0 * trained * ("update_norms" in sampler.needs)).astype(np.float64),
        "down_bits": model * count_distinct(slots.run, slots.client, runs),
    }
    exchanged = sampler.exchange_bits()
    if "label_counts" in sampler.needs:
        exchanged = np.full(runs, 32.0 * labels) + (0.0 if exchanged is None else exchanged)
    if exchanged is not None:
        counted["exchange_bits"] = exchanged
    return counted


def request_shares(
    needs: Set[str], n_samples: Ints, trained: Ints, batch: int, mini_batch: int = 1
) -> Array:
    """Compute the cost of a request for each client, relative to its local training, shape (n,).

    Local training takes a forward and a backward pass over the samples of its batches.  A request
    for losses takes a forward pass over all of a client's samples, or over a mini-batch; a request
    for gradients also takes the backward pass; a request for features takes a forward pass over a
    batch.

    `trained`, shape (n,): samples in the batches of local training, with repetitions. `batch`:
    samples whose features are sent. `mini_batch`: samples of a mini-batch in local training.

    References: Kaplan et al.: Scaling Laws for Neural Language Models. arXiv 2001.08361, section
    2.1: a backward pass costs about twice as much as a forward pass.
    """
    passes = {
        "losses": FORWARD_SHARE * n_samples,
        "batch_losses": FORWARD_SHARE * np.minimum(n_samples, mini_batch),
        "gradients": 1.0 * n_samples,
        "heterogeneity": FORWARD_SHARE * np.minimum(n_samples, batch),
    }
    needed = [cost for name, cost in passes.items() if name in needs]
    return sum(needed, np.zeros(len(n_samples))) / trained


def seconds(
    sampler: Prepared,
    slots: Slots,
    delays: Delays,
    offered: Ints,
    rng: Draws,
    shares: Array | None = None,
) -> Mapping[str, Array]:
    """Compute the duration of the round.

    `shares`, shape (n,): fraction of its delay that a request takes each client; one by default.
    Returns shape (runs,): ``seconds``: the largest delay of the clients that train.
    ``asking_seconds``: the largest delay of the clients that had to compute something before the
    selection.  These are the clients that the sampler names; otherwise those of
    :func:`~fedsampling.samplers.protocol.base.requests_of_needs`.
    """
    duration = delays.round_seconds(rng.seeds[:, None], rng.round, np.arange(len(delays.base)))
    trained = np.zeros(duration.shape, np.bool_)
    trained[slots.run, slots.client] = True
    requested = sampler.asked()
    if requested is None:
        requested = requests_of_needs(sampler.needs, rng.round, offered, len(delays.base))
    requests = duration if shares is None else duration * shares
    return {
        "seconds": np.where(trained, duration, 0.0).max(1),
        "asking_seconds": np.where(requested, requests, 0.0).max(1),
    }


def wasted(
    selected: Slots, slots: Slots, outcome: "Outcome", dimension: int, has_clock: bool
) -> Mapping[str, Array]:
    """Count what the selected clients cost that did not report, in runs with failures.

    Returns shape (runs,): ``failed``: slots that did not report; ``wasted_bits``: models that they
    received in vain; ``down_bits``: models to all selected clients; and, with delays,
    ``wasted_seconds``: time that they trained, summed over slots; ``seconds``: time that the server
    waited.
    """
    runs, model = len(outcome.end), 32.0 * dimension
    lost = selected.at(~outcome.reported)
    asked = count_distinct(selected.run, selected.client, runs)
    counted = {
        "failed": np.bincount(lost.run, minlength=runs).astype(np.float64),
        "wasted_bits": model * (asked - count_distinct(slots.run, slots.client, runs)),
        "down_bits": model * asked,
    }
    if has_clock:
        counted |= {"wasted_seconds": outcome.wasted_seconds, "seconds": outcome.end}
    return counted
