"""Counts of each client's training samples and labels.

The dataset is loaded as for training, so that the counts describe the clients of a training run.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from fedsampling.base.lazy import pd
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.data.federated import FederatedDataset
from fedsampling.experiments.simulations.simulation import (
    NoSampler,
    Progress,
    RunContext,
    Simulated,
    Simulation,
    tidy,
)


class ClientCounts(Simulation, name="partition"):
    """Count the samples and labels of each client."""

    step_seconds: ClassVar[float] = 0.5

    dataset: Dataset
    sampler: NoSampler

    def simulate(
        self,
        data: str,
        seeds: Sequence[int],
        context: RunContext,
        progress: Progress = lambda _: None,
    ) -> Simulated:
        """Partition the dataset with each seed; count ``samples`` and ``label=<c>`` per client."""
        tables = []
        for index, seed in enumerate(seeds):
            dataset = self.dataset.load(data, seed, context.cache, context.mirror)
            tables.append(counts(dataset))
            progress(index)
        return Simulated(tables, dataset.inputs, dataset.unverified)  # the same for all seeds


def counts(dataset: FederatedDataset) -> "pd.DataFrame":
    """Count samples and labels by client: a run table."""
    client = np.arange(dataset.n_clients)
    columns = {"samples": (client, dataset.n_samples.astype(np.float64))}
    if dataset.classes is not None:
        for label, count in enumerate(dataset.label_counts().T):
            columns[f"count/label={label}"] = (client, count.astype(np.float64))
    return tidy(columns)
