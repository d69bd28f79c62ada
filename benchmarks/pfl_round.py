"""Rounds of pfl-research; run by :mod:`mlp_round` in a separate environment.

``python pfl_round.py DATA.npz CORES``: waits for a line on standard input, trains one round, prints
its seconds, and so on.  Federated averaging in its simulator, which copies no module and has its
clients' data as tensors, for as many epochs as the number of batches requires.
"""

import logging
import sys
from time import perf_counter

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel
from torch import nn

logging.disable(logging.WARNING)


class Mlp(nn.Module):
    """784-50-10 with the two methods that pfl-research requires."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(784, 50), nn.ReLU(), nn.Linear(50, 10))

    def loss(self, x, y, is_eval=False):
        """Mean cross entropy."""
        self.train(not is_eval)
        return nn.functional.cross_entropy(self.layers(x), y)

    def metrics(self, x, y):
        """Nothing is evaluated."""
        return {}


class Clock(TrainingProcessCallback):
    """Wait for a line before each round, and print its seconds."""

    def on_train_begin(self, *, model):
        """Begin the first round."""
        self._wait()
        return Metrics()

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        """End a round and begin the next one."""
        print("seconds", perf_counter() - self.begin, flush=True)
        return self._wait(), Metrics()

    def _wait(self):
        line = sys.stdin.readline()
        self.begin = perf_counter()
        return not line  # True stops the training: the parent has closed the pipe


def main() -> None:
    """Train until standard input ends."""
    torch.set_num_threads(int(sys.argv[2]))
    inputs = np.load(sys.argv[1])
    x, y = torch.from_numpy(inputs["x"]), torch.from_numpy(inputs["y"])
    clients = list(range(len(y)))
    batch = int(inputs["batch"])
    data = FederatedDataset(
        lambda own: Dataset([x[own], y[own]], user_id=str(own)), get_user_sampler("random", clients)
    )
    module = Mlp()
    model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), lr=1.0))
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=10**6,
            evaluation_frequency=10**7,
            train_cohort_size=int(inputs["m"]),
            val_cohort_size=0,
        ),
        SimulatedBackend(training_data=data, val_data=data),
        model,
        NNTrainHyperParams(
            local_num_epochs=int(inputs["steps"]) * batch // y.shape[1],
            local_learning_rate=float(inputs["step"]),
            local_batch_size=batch,
        ),
        NNEvalHyperParams(local_batch_size=batch),
        [Clock()],
        send_metrics_to_platform=False,
    )


if __name__ == "__main__":
    main()
