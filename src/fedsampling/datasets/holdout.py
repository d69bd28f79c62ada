"""Training samples that are kept back to tune on: the test set must not choose anything."""

from dataclasses import replace

import numpy as np

from fedsampling.datasets.federated import FederatedDataset


def hold_out(data: FederatedDataset, share: float, rng: np.random.Generator) -> FederatedDataset:
    """Make a share of every client's training samples the common test set.

    Parameters
    ----------
    data : FederatedDataset
    share : float
        Rounded down for each client, so that nobody is left without samples.
    rng : numpy.random.Generator
        Chooses the samples.

    Returns
    -------
    FederatedDataset
        The importances stay; the old tests are gone.
    """
    sizes = data.n_samples
    kept_back = (share * sizes).astype(np.int64)
    client = np.repeat(np.arange(data.n_clients), sizes)
    # Samples in random order inside each client; the first ones are kept back.
    order = np.lexsort((rng.random(len(client)), client))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - data.start[client]
    back = rank < kept_back[client]
    start = np.concatenate([[0], np.cumsum(sizes - kept_back)])
    return replace(
        data,
        x=data.x[~back],
        y=data.y[~back],
        start=start,
        x_test=data.x[back],
        y_test=data.y[back],
        start_test=None,
    )
