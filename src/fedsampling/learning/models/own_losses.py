"""A user's loss ``loss(outputs, targets)``, for all slots."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from fedsampling.base.errors import InputError
from fedsampling.learning.models.dropout import Keep
from fedsampling.learning.models.guests import (
    ROWS,
    blaming,
    equal,
    keyed,
    mixes,
    padded,
    seedable,
    slot_seeds,
    trial_samples,
)
from fedsampling.learning.models.own_modules import trained_parameters

Loss = Callable[[Tensor, Tensor], Tensor]


class OwnLoss:
    """A user's loss ``loss(outputs, targets)``, one number per sample, for all slots."""

    def __init__(self, loss: Loss, shape: tuple[int, ...], classes: int | None) -> None:
        if not callable(loss):
            raise InputError(f"loss: {loss!r:.60} is invalid; must be a function")
        if isinstance(loss, nn.Module) and trained_parameters(loss):
            raise InputError("loss: its parameters would not be trained; move them to the model")
        self._loss = loss
        self._z = trial_samples(shape[1:], symbols=False)
        labels = torch.arange(prod(shape[:-1])).view(shape[:-1])
        self._y = torch.arange(ROWS) / ROWS if classes is None else labels % classes
        self.separate = False
        self._expected, self._draws = self._trial(self._z, self._y)
        if not equal(self._expected, self._trial(self._z, self._y)[0]):
            raise InputError("loss: differs for the same outputs; remove its memory")
        self.separate = self._draws or mixes(
            self._expected, self._z, self._y, apply=lambda z, y: self._trial(z, y)[0]
        )

    def __call__(self, z: Tensor, y: Tensor, keep: Keep, sizes: Sequence[int] | None) -> Tensor:
        """Return the losses [slots, batch]; see :class:`.guests.Guest`."""
        seeds = slot_seeds(keep, 1, len(z))
        losses = []
        with seedable(z.device) as seed, blaming("loss"):
            for k, outputs in enumerate(z.unbind()):
                n = z.shape[1] if sizes is None else sizes[k]
                if self._draws:
                    seed(0 if seeds is None else seeds[k])
                values = self._checked(outputs[:n].clone(), y[k, :n].clone())
                losses.append(padded(values, z.shape[1]))
        return torch.stack(losses)

    def verify(self) -> None:
        """Raise InputError if the loss no longer gives the values of its first trial."""
        if not equal(self._trial(self._z, self._y)[0], self._expected):
            raise InputError("loss: has changed during training; remove its memory")

    def _trial(self, z: Tensor, y: Tensor) -> tuple[Tensor, bool]:
        outputs = z.clone().requires_grad_()
        with keyed("loss", z.device) as drew, blaming("loss"):
            losses = self._checked(outputs.clone(), y.clone())
        if not losses.requires_grad:
            raise InputError("loss: does not depend on the outputs; its gradient is needed")
        with blaming("loss"):
            torch.autograd.grad(losses.sum(), outputs)
        return losses.detach(), drew[0]

    def _checked(self, outputs: Tensor, targets: Tensor) -> Tensor:
        losses: Any = self._loss(outputs, targets)
        n = len(targets)
        if not isinstance(losses, Tensor) or losses.shape != (n,):
            kind = f"shape {tuple(losses.shape)}" if isinstance(losses, Tensor) else repr(losses)
            raise InputError(
                f"loss: it returns {kind:.60} for {n} samples; must be one number per sample, such "
                "as with reduction='none'"
            )
        return losses
