"""Evaluation of the global models: loss on all clients' training data, and accuracy.

The pooled samples are processed once, in blocks that stay in the cache while all runs' models are
applied.  Sums per client follow from the position of each client's first sample.
"""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from fedsampling.base.arrays import Array, Ints
from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.models.devices import at_once
from fedsampling.learning.models.dropout import Keeper, everything
from fedsampling.learning.models.network import Network
from fedsampling.learning.training.learner import NetworkLearner
from fedsampling.learning.training.samples import tensor_of
from fedsampling.learning.training.step import dense_outputs, sample_losses

Measure = Callable[[Network, Tensor, Tensor], Tensor]  # outputs, targets -> [runs, samples]
BLOCK_SAMPLES = 1000  # samples in a block


def evaluate(
    learner: NetworkLearner,
    theta: Tensor,
    dropout: bool = False,
    training_loss: bool = True,
    clients: bool = False,
) -> Mapping[str, Array]:
    """Measure every run's global model.

    `dropout`: leave dropout on, as the code of Fraboni et al. 2021 does. `training_loss`: also
    process all clients' training data, which takes longer than the test samples. `clients`: add
    statistics of the clients' accuracies. Returns shape (runs,): ``loss`` = Σ_i p_i L_i with L_i
    the mean over client i's training samples, and ``loss_std`` = √(Σ_i p_i (L_i − loss)²), if
    requested.  For classification also ``accuracy`` and ``accuracy_std``, computed in the same way
    from the accuracies on the clients' test samples (clients without test samples are left out), or
    only ``accuracy`` if all clients share a test set.  For regression ``test_loss``.  With
    `clients` also ``accuracy_worst``, the mean of the worst tenth of the clients, and the quantiles
    ``accuracy_q10``, ``…_q50`` and ``…_q90``, with equal weights.  With a shared test set, a
    client's accuracy is the mean of the labels' accuracies, weighted by its training labels;
    clients none of whose labels are tested are left out.
    """
    measured: dict[str, Array] = {}
    if training_loss:
        mean, std = _mean_and_deviation(client_losses(learner, theta, dropout), learner.p)
        measured = {"loss": mean, "loss_std": std}
    data = learner.data
    if not len(data.x_test):
        return measured
    tests = tensor_of(data.x_test), tensor_of(data.y_test)
    if data.classes is None:
        losses = _per_sample(learner, theta, *tests, dropout, sample_losses)
        return {**measured, "test_loss": losses.mean(1)}
    correct = _per_sample(learner, theta, *tests, dropout, _correct)
    if data.start_test is None:
        per_client = _accuracy_quantiles(_client_accuracies(data, correct)) if clients else {}
        return {**measured, "accuracy": correct.mean(1), **per_client}
    tested = np.diff(data.start_test) > 0
    shares = _client_means(correct, data.start_test[np.append(tested, True)])
    accuracy, spread = _mean_and_deviation(shares, learner.p[tested] / learner.p[tested].sum())
    per_client = _accuracy_quantiles(shares) if clients else {}
    return {**measured, "accuracy": accuracy, "accuracy_std": spread, **per_client}


def on_own_samples(
    learner: NetworkLearner, theta: Tensor, dropout: bool = False
) -> Mapping[str, Array]:
    """Measure every run's global model on each client's own samples.

    These are the client's test samples; if it has none, or all clients share a test set, its
    training samples. Returns shape (runs, n): ``client_tests``, the number of the client's own test
    samples; ``client_loss``, its mean loss; for classification, ``client_accuracy``.
    """
    data, runs = learner.data, len(theta)
    start_test = np.zeros(data.n_clients + 1, int) if data.start_test is None else data.start_test
    tested = np.diff(start_test) > 0
    measures: dict[str, Measure] = {"client_loss": sample_losses}
    if data.classes is not None:
        measures["client_accuracy"] = _correct
    measured = {"client_tests": np.tile(np.diff(start_test).astype(np.float64), (runs, 1))}
    for name, measure in measures.items():
        means = np.empty((runs, data.n_clients))
        if not tested.all():
            values = _per_sample(
                learner, theta, learner.samples.x, learner.samples.y, dropout, measure
            )
            means[:] = _client_means(values, data.start)
        if tested.any():
            tests = tensor_of(data.x_test), tensor_of(data.y_test)
            values = _per_sample(learner, theta, *tests, dropout, measure)
            means[:, tested] = _client_means(values, start_test[np.append(tested, True)])
        measured[name] = means
    return measured


def client_losses(learner: NetworkLearner, theta: Tensor, dropout: bool = False) -> Array:
    """Return L_i of every run and client, shape (runs, n)."""
    losses = _per_sample(
        learner, theta, learner.samples.x, learner.samples.y, dropout, sample_losses
    )
    return _client_means(losses, learner.data.start)


def _client_accuracies(data: FederatedDataset, correct: Array) -> Array:
    """Weight the accuracy of each label by the clients' training labels, shape (runs, clients).

    Clients none of whose labels are tested are left out.
    """
    labels = data.y_test.reshape(len(data.y_test), -1)[:, 0]
    counts = data.label_counts()[:, (present := np.unique(labels))]
    accuracies = np.stack([correct[:, labels == label].mean(1) for label in present], axis=1)
    counts = counts[counts.any(1)]
    weight = counts / counts.sum(1, keepdims=True)
    return np.stack([(run * weight).sum(1) for run in accuracies])


def _accuracy_quantiles(accuracy: Array) -> Mapping[str, Array]:
    """Summarise the clients' accuracies, shape (runs, clients); NaN without clients."""
    if not accuracy.shape[1]:
        accuracy = np.full((len(accuracy), 1), np.nan)
    worst = np.sort(accuracy, axis=1)[:, : -(-accuracy.shape[1] // 10)]
    levels = (10, 50, 90)
    quantiles = np.quantile(accuracy, np.array(levels) / 100, axis=1)
    named = {f"accuracy_q{level}": q for level, q in zip(levels, quantiles, strict=True)}
    return {"accuracy_worst": worst.mean(1), **named}


def _per_sample(
    learner: NetworkLearner, theta: Tensor, x: Tensor, y: Tensor, dropout: bool, measure: Measure
) -> Array:
    """Apply a measure to every run's outputs for every sample, shape (runs, samples)."""

    def compute() -> Array:
        return _in_blocks(learner, theta, x, y, dropout, measure).cpu().numpy()

    return learner.stacks.fitting(compute)


def _in_blocks(
    learner: NetworkLearner, theta: Tensor, x: Tensor, y: Tensor, dropout: bool, measure: Measure
) -> Tensor:
    """Measure the samples in blocks, with as many runs at once as the device computes well."""
    network = learner.network
    stack = len(theta)
    if not network.layers:  # activations are large
        fits = learner.stacks.size * learner.local.batch // BLOCK_SAMPLES
        stack = min(stack, max(1, fits)) if at_once(theta.device) else 1
    values = theta.new_empty(len(theta), len(x), dtype=torch.float64)
    stacks = [slice(first, first + stack) for first in range(0, len(theta), stack)]
    outputs = [(runs, _outputs(learner, theta[runs], dropout)) for runs in stacks]
    for first in range(0, len(x), BLOCK_SAMPLES):
        part = slice(first, first + BLOCK_SAMPLES)
        inputs = learner.samples.convert(x[part].to(learner.device))
        targets = y[part].to(learner.device)
        targets = (targets.float() if targets.is_floating_point() else targets)[None]
        for runs, stack_outputs in outputs:
            with torch.no_grad():
                z = stack_outputs(inputs[None])
                measured = measure(network, z, targets.expand(len(z), *targets.shape[1:]))
            values[runs, part] = measured.double()
    return values


def _outputs(learner: NetworkLearner, theta: Tensor, dropout: bool) -> Callable[[Tensor], Tensor]:
    """Return a function from inputs [1, B, ...] to all models' outputs [runs, B, ..., classes]."""
    network, runs = learner.network, len(theta)
    if network.layers and not dropout:
        # Contiguous, so that the runs' weights form one matrix in every block.
        w = {name: part.contiguous() for name, part in network.parts(theta).items()}
        return lambda x: dense_outputs(network.layers, w, x.expand(runs, *x.shape[1:]))

    if network.module is not None:
        theta = theta.clone()

    def outputs(x: Tensor) -> Tensor:
        # The masks are the same in each evaluation.
        keys = torch.zeros(runs, dtype=torch.int64, device=learner.device)
        keep = Keeper(keys, keys[0]) if dropout else everything
        return network.outputs(theta, x.expand(runs, *x.shape[1:]), keep)

    return outputs


def _correct(network: Network, z: Tensor, y: Tensor) -> Tensor:
    """Return whether each sample is classified correctly; for sequences, the share of steps."""
    return (z.argmax(-1) == y).double().flatten(2).mean(2) if y.dim() > 2 else z.argmax(-1) == y


def _client_means(values: Array, start: Ints) -> Array:
    sums = np.add.reduceat(values, start[:-1], axis=1)
    return sums / np.diff(start)


def _mean_and_deviation(values: Array, p: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation over clients with weights p_i."""
    mean: Array = (values * p).sum(axis=1)  # rounding in values @ p depends on the number of runs
    std: Array = np.sqrt(((values - mean[:, None]) ** 2 * p).sum(axis=1))
    return mean, std
