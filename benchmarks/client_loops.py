"""Federated averaging as loops over clients, the reference for the speed of stacked training.

Both functions run the same rounds: from a common model, m clients take N steps of SGD on batches of
their data, and the server averages their models.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

Forward = Callable[[Sequence[Tensor], Tensor], Tensor]


def usual(
    model: nn.Module, clients: Sequence[TensorDataset], steps: int, batch: int, step: float
) -> nn.Module:
    """One round as federated code is usually written; returns the new global model.

    A copy of the module and a data loader for every client, an iterator for every batch (as in the
    authors' code of fraboni2021clustered), an optimiser object, and an average over state dicts.
    """
    states = []
    for data in clients:
        local = deepcopy(model)
        local.train()
        optimiser = torch.optim.SGD(local.parameters(), lr=step)
        loader = DataLoader(data, batch_size=batch, shuffle=True)
        for _ in range(steps):
            x, y = next(iter(loader))
            optimiser.zero_grad()
            loss = functional.cross_entropy(local(x), y)
            loss.backward()
            optimiser.step()
        states.append(local.state_dict())
    average = {name: sum(state[name] for state in states) / len(states) for name in states[0]}
    model.load_state_dict(average)
    return model


def usual_evaluation(model: nn.Module, clients: Sequence[TensorDataset], batch: int) -> list[float]:
    """Each client's mean loss over the batches of its data loader.

    As in the authors' code of fraboni2021clustered, the loader shuffles and autograd records.
    """
    losses = []
    for data in clients:
        loader = DataLoader(data, batch_size=batch, shuffle=True)
        batches = [functional.cross_entropy(model(x), y) for x, y in loader]
        losses.append(sum(batches).item() / len(batches))
    return losses


def careful(
    forward: Forward,
    parameters: Sequence[Tensor],
    x: Tensor,
    y: Tensor,
    rows: Sequence[Tensor],
    step: float,
) -> list[list[Tensor]]:
    """Local work of a round as a fast loop: no modules, loaders or optimisers.

    Parameters
    ----------
    forward : callable
        ``forward(parameters, x) -> logits``.
    parameters : sequence of Tensor
        Global model.
    x, y : Tensor
        All samples.
    rows : sequence of int tensors, shape (steps, batch), one per client
        Drawn before the clock starts.

    Returns
    -------
    list of lists of Tensor
        Each client's model.
    """
    models = []
    for client_rows in rows:
        local = [parameter.clone().requires_grad_() for parameter in parameters]
        for chosen in client_rows:
            loss = functional.cross_entropy(
                forward(local, x.index_select(0, chosen)), y.index_select(0, chosen)
            )
            gradients = torch.autograd.grad(loss, local)
            with torch.no_grad():
                for parameter, gradient in zip(local, gradients, strict=True):
                    parameter.sub_(gradient, alpha=step)
        models.append([parameter.detach() for parameter in local])
    return models


def average(models: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """Average the clients' models."""
    return [torch.stack(parameters).mean(0) for parameters in zip(*models, strict=True)]
