"""Users' metrics of a global model on the test samples."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsampling.base.blame import described
from fedsampling.base.errors import InputError
from fedsampling.learning.training.network.learner import NetworkLearner

Metric = Callable[[Callable[[Tensor], Tensor], Tensor, Tensor], Any]


def measure(
    learner: NetworkLearner, metrics: Mapping[str, Metric], theta: Tensor
) -> dict[str, NDArray[np.float64]]:
    """Compute users' metrics of every run's global model, each of shape (runs,).

    Raises
    ------
    InputError
        If a metric fails, or does not return a number.
    """
    data = learner.data
    x = learner.samples.convert(torch.from_numpy(data.x_test).to(learner.device))
    y = torch.from_numpy(data.y_test).to(learner.device)
    values = {name: np.empty(len(theta)) for name in metrics}
    for run, w in enumerate(theta):
        for name, metric in metrics.items():
            try:
                with torch.no_grad():
                    values[name][run] = float(metric(partial(_outputs, learner, w), x, y))
            except Exception as error:  # a user's function may raise anything
                raise InputError(f"metrics.{name}: {described(error)}; return a number") from error
    return values


def _outputs(learner: NetworkLearner, w: Tensor, x: Tensor) -> Tensor:
    return learner.network.outputs(w[None], x[None])[0]
