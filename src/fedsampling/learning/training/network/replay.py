"""Runs the local steps of a round; on a GPU they are captured once and replayed.

:class:`fedsampling.learning.training.network.learner.NetworkLearner` passes a stretch: consecutive
steps of the same slots.  A step of a small network consists of dozens of kernels of a few
microseconds each, and launching a kernel from Python takes longer than running it.  A CUDA graph
launches all kernels at once.  Its arrays stay in place, and the number of the step is one of them,
so each step is a single replay.
"""

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields

import torch
from torch import Tensor

from fedsampling.learning.training.network.gpu import Call

MAX_GRAPHS = 4  # each keeps the arrays of a stretch and of a step

Shapes = tuple[torch.Size, ...]


@dataclass(frozen=True)
class Stretch:
    """Consecutive local steps of the same slots.

    Parameters
    ----------
    w : tensor, shape [slots, d]
        Local models, trained in place.
    start : tensor, shape [slots, d]
        The global models that local training started from.
    velocity : tensor, shape [slots, d] or [slots, 0]
        The clients' momentum, updated in place; empty without momentum.
    step : tensor, shape [slots, 1]
        Step sizes.
    keys : int64 tensor, shape [slots]
        Keys of dropout.
    rows : int64 tensor, shape [steps, slots, B]
        Pooled rows of every step's batch.
    weight : tensor, shape [steps, slots, B]
        Weight of each sample in its batch's mean.
    first : int64 tensor, shape []
        Number of the first step.
    losses : tensor, shape [steps, slots]
        Output: the loss of each batch.
    """

    w: Tensor
    start: Tensor
    velocity: Tensor
    step: Tensor
    keys: Tensor
    rows: Tensor
    weight: Tensor
    first: Tensor
    losses: Tensor


# (w, start, velocity, step, keys, rows, weight, number of the step) -> losses of the slots; updates
# w in place.
Step = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


def run_steps(take: Step, stretch: Stretch) -> None:
    """Run the steps of a stretch, one call each."""
    arrays = stretch.w, stretch.start, stretch.velocity, stretch.step, stretch.keys
    for s, (rows, weight) in enumerate(zip(stretch.rows, stretch.weight, strict=True)):
        stretch.losses[s] = take(*arrays, rows, weight, stretch.first + s)


@dataclass
class Replays:
    """Captures stretches that recur with the same shapes, and replays them.

    Parameters
    ----------
    take : callable
        Runs one step.
    record : callable
        Takes a call on arrays that stay in place; returns a call that repeats it.  If it raises
        RuntimeError because a kernel cannot be captured, steps are run one by one.
    """

    take: Step
    record: Callable[[Call, Call], Call]  # of fedsampling.learning.training.network.gpu.Device
    seen: Counter[Shapes] = field(default_factory=Counter)
    graphs: dict[Shapes, tuple[Stretch, Tensor, Call]] = field(default_factory=dict)
    max_graphs: int = MAX_GRAPHS

    def run(self, stretch: Stretch) -> None:
        """Run the steps of a stretch."""
        shape = stretch.w.shape, stretch.rows.shape
        self.seen[shape] += 1
        if shape not in self.graphs and self.seen[shape] > 1 and len(self.graphs) < self.max_graphs:
            try:
                self.graphs[shape] = self._captured(stretch)
            except RuntimeError as error:
                self.max_graphs = 0
                why = str(error).partition("\n")[0]
                text = f"steps run one by one, since they cannot be captured: {why}"
                warnings.warn(text, RuntimeWarning, stacklevel=2)
        if shape not in self.graphs:
            run_steps(self.take, stretch)
            return
        graph, position, play = self.graphs[shape]
        for target, source in zip(_arrays(graph), _arrays(stretch), strict=True):
            target.copy_(source)
        position.zero_()
        for _ in range(len(stretch.rows)):
            play()
        stretch.w.copy_(graph.w)
        stretch.velocity.copy_(graph.velocity)
        stretch.losses.copy_(graph.losses)

    def _captured(self, stretch: Stretch) -> tuple[Stretch, Tensor, Call]:
        static = Stretch(*(array.clone() for array in _arrays(stretch)))
        position = torch.zeros(1, dtype=torch.int64, device=stretch.w.device)

        def step() -> None:
            rows, weight = (a.index_select(0, position)[0] for a in (static.rows, static.weight))
            arrays = static.w, static.start, static.velocity, static.step, static.keys
            loss = self.take(*arrays, rows, weight, static.first + position[0])
            static.losses.index_copy_(0, position, loss[None])
            position.add_(1)

        return static, position, self.record(step, position.zero_)


def _arrays(stretch: Stretch) -> tuple[Tensor, ...]:
    return tuple(getattr(stretch, entry.name) for entry in fields(stretch))
