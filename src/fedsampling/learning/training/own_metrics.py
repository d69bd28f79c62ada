"""Users' metrics of a global model on the test samples."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedsampling.base.arrays import Array
from fedsampling.base.errors import InputError, described
from fedsampling.learning.models.guests import keyed
from fedsampling.learning.training.learner import NetworkLearner

Model = Callable[[Tensor], Tensor]
Metric = Callable[[Model, Tensor, Tensor], Any]


def measure(
    learner: NetworkLearner, metrics: Mapping[str, Metric], theta: Tensor
) -> dict[str, Array]:
    """Compute users' metrics of every run's global model, each on its own copy and samples."""
    data = learner.data
    x = learner.samples.convert(torch.tensor(data.x_test, device=learner.device))
    y = torch.tensor(data.y_test, device=learner.device)
    values = {name: np.empty(len(theta)) for name in metrics}
    for run in range(len(theta)):
        for name, metric in metrics.items():
            model = _model(learner, theta[run : run + 1].clone())
            try:
                with torch.no_grad(), keyed(f"metrics.{name}", theta.device):
                    values[name][run] = float(metric(model, x.clone(), y.clone()))
            except InputError:
                raise
            except (Exception, SystemExit) as error:  # a user's function may raise anything
                raise InputError(f"metrics.{name}: {described(error)}; return a number") from error
    return values


def _model(learner: NetworkLearner, w: Tensor) -> Model:
    return lambda x: learner.network.outputs(w, x[None])[0]
