"""A user's module as a function of all slots' parameters, buffers and batches.

``torch.func.functional_call`` makes the module a function of its parameters and buffers, and
``torch.vmap`` applies it to all slots at once.  Modules that draw random numbers, change buffers,
mix the samples of a batch, or that ``vmap`` does not support, are applied slot by slot.

Users' code gets copies, and keyed numbers from PyTorch's generator.  It is tried on a few samples
before training, and what cannot be isolated is refused in one line.
"""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fedsampling.base.errors import InputError, described
from fedsampling.learning.models.dropout import Keep
from fedsampling.learning.models.guests import (
    blaming,
    equal,
    keyed,
    mixes,
    padded,
    seedable,
    slot_seeds,
    trial_samples,
)
from fedsampling.learning.models.network import Parts


class Trial(NamedTuple):
    """Result of a module on a few samples: its outputs, and its buffers afterwards."""

    outputs: Tensor
    buffers: dict[str, Tensor]
    drew: bool  # from PyTorch's generator


class OwnModule:
    """A module as a function of all slots' parameters, buffers and batches.

    Training mode is on in local steps, where `keep` has seeds, and off otherwise.  `buffers` are
    those that the module changes; `separate` slots are computed one after the other.
    """

    def __init__(self, module: nn.Module, symbols: bool, sample: tuple[int, ...]) -> None:
        self.name = type(module).__name__
        self.buffers: dict[str, torch.dtype] = {}
        self._module, self._symbols = module, symbols
        self._mode: tuple[bool, torch.device] | None = None
        # Copies, since a module can change its frozen parameters.
        self._parameters = {
            key: value.detach().clone() for key, value in trained_parameters(module).items()
        }
        self._buffers = {key: value.detach().clone() for key, value in module.named_buffers()}
        self._tied = _tied(module)
        self._samples = trial_samples(sample, symbols)
        self._expected = {training: self._repeated(training) for training in (True, False)}
        for trial in self._expected.values():
            for key, value in self._buffers.items():
                if not equal(value, trial.buffers[key]):
                    self.buffers[key] = value.dtype
        trained = self._expected[True]
        self.outputs_shape = tuple(trained.outputs.shape)
        self.separate = trained.drew or bool(self.buffers) or self._mixes() or not self._stacks()

    def __call__(self, w: Parts, x: Tensor, keep: Keep, sizes: Sequence[int] | None) -> Tensor:
        """Return the outputs [slots, batch, ..., classes]; see :class:`.guests.Guest`."""
        seeds = slot_seeds(keep, 0, len(x))
        x = x.long() if self._symbols else x
        self._set(seeds is not None, x.device)
        if seeds is None or self.separate:
            return self._one_by_one(w, x, seeds, sizes)
        with blaming(f"model: {self.name}"):
            return self._stacked(dict(w), x)

    def verify(self) -> None:
        """Compare the module with its first trials."""
        for training, expected in self._expected.items():
            if not _same(self._trial(training, self._samples), expected):
                raise InputError(
                    f"model: {self.name} has changed during training, apart from parameters and "
                    "buffers; keep what forward remembers in buffers (register_buffer)"
                )

    def ends_in_bias(self) -> bool:
        """Whether adding to the last parameter adds the same to the outputs.

        Up to a constant for each sample, which log-softmax subtracts.
        """
        name, value = [*self._parameters.items()][-1]
        if value.shape != self.outputs_shape[-1:]:
            return False
        shift, place, outputs = torch.arange(len(value)) / len(value), f"model: {self.name}", []
        self._set(False, self._samples.device)
        for changed in (value, value + shift):
            entries = {**self._parameters, **self._buffers, name: changed}
            arguments = {key: part.clone() for key, part in entries.items()}
            with torch.no_grad(), keyed(place, self._samples.device), blaming(place):
                outputs.append(self._apply(arguments, self._samples.clone()))
        rest = outputs[1] - outputs[0] - shift
        return bool(torch.allclose(rest, rest[..., :1], rtol=0, atol=1e-4))

    def _one_by_one(
        self, w: Parts, x: Tensor, seeds: list[int] | None, sizes: Sequence[int] | None
    ) -> Tensor:
        """Compute the slots one after the other, each from its own seed and buffers."""
        parts = {name: part.unbind() for name, part in w.items() if name not in self.buffers}
        outputs = []
        place = f"model: {self.name}"
        with seedable(x.device) as seed, blaming(place):
            for k in range(len(x)):
                rows = x[k] if sizes is None else x[k, : sizes[k]]
                arguments = {name: part[k] for name, part in parts.items()}
                for name, dtype in self.buffers.items():
                    value = w[name][k].detach()
                    value = value if dtype.is_floating_point else value.round()  # an average
                    arguments[name] = value.to(dtype, copy=True)
                seed(0 if seeds is None else seeds[k])
                fix = ""
                if len(rows) == 1 and seeds is not None:
                    fix = ", on a batch of one sample (set remainder=False, or another batch)"
                with blaming(place + fix):
                    z = self._apply(arguments, rows.clone())
                if seeds is not None and torch.is_grad_enabled():
                    for name in self.buffers:
                        self._store(w[name][k], name, arguments[name])
                outputs.append(padded(z, x.shape[1]))
        return torch.stack(outputs)

    def _store(self, column: Tensor, name: str, value: Tensor) -> None:
        """Store a buffer after a local step, in single precision."""
        value = value.detach()
        if value.shape != column.shape:
            raise InputError(f"model: {self.name}: buffer {name!r} changes its shape in forward")
        # The memory of parameters, which autograd has saved, is next to it and does not change.
        column.data.copy_(value)
        if not value.is_floating_point() and not torch.equal(column.to(value.dtype), value):
            raise InputError(
                f"model: {self.name}: buffer {name!r} holds an integer above 2**24, which float32 "
                "cannot represent exactly; use smaller values"
            )

    def _apply(self, arguments: dict[str, Tensor], x: Tensor) -> Tensor:
        """Apply the module; a buffer that it replaces is replaced in `arguments`, too."""
        tied = {alias: arguments[key] for alias, key in self._tied.items() if key in arguments}
        entries = {**arguments, **tied}
        # PyTorch's own handling of tied weights does not restore shared submodules.
        outputs: Tensor = functional_call(self._module, entries, (x,), tie_weights=False)
        arguments.update((key, entries[key]) for key in arguments)
        return outputs

    def _stacked(self, w: dict[str, Tensor], x: Tensor) -> Tensor:
        """Apply the module to all slots at once."""
        with warnings.catch_warnings():  # of operations that vmap computes in a loop
            warnings.filterwarnings("ignore", "There is a performance drop")
            return torch.vmap(self._apply)(w, x)

    def _set(self, training: bool, device: torch.device) -> None:
        if self._mode != (training, device):
            self._module.train(training)
            self._module.to(device)
            self._mode = training, device

    def _repeated(self, training: bool) -> Trial:
        """Apply the module twice to the same samples, with other samples in between."""
        first = self._trial(training, self._samples)
        self._trial(training, self._samples.flip(0))
        if not _same(first, self._trial(training, self._samples)):
            raise InputError(
                f"model: {self.name} returns different outputs for the same samples; keep what "
                "forward remembers in buffers (register_buffer), and use PyTorch's generator"
            )
        return first

    def _trial(self, training: bool, samples: Tensor) -> Trial:
        """Apply the module to samples, and compute a gradient in training mode."""
        self._set(training, samples.device)
        parameters = {k: v.clone().requires_grad_(training) for k, v in self._parameters.items()}
        arguments = parameters | {key: value.clone() for key, value in self._buffers.items()}
        place = f"model: {self.name}"
        with torch.set_grad_enabled(training), keyed(place, samples.device) as drew, blaming(place):
            z = self._apply(arguments, samples.clone())
        for key, value in self._parameters.items():
            if not equal(arguments[key], value):
                raise InputError(
                    f"model: {self.name}: forward changes the parameter {key!r}; change a copy"
                )
        for key, value in self._buffers.items():
            if arguments[key].shape != value.shape:
                raise InputError(f"model: {self.name}: forward changes the shape of buffer {key!r}")
        if training:
            if not z.requires_grad:
                raise InputError(f"model: {self.name}: the outputs do not depend on its parameters")
            with blaming(place):
                torch.autograd.grad(z.sum(), list(parameters.values()), allow_unused=True)
        after = {key: arguments[key].detach().clone() for key in self._buffers}
        return Trial(z.detach().clone(), after, drew[0])

    def _mixes(self) -> bool:
        """Whether a sample's outputs depend on the other samples of its batch."""
        before = self._expected[True].outputs
        return mixes(before, self._samples, apply=lambda x: self._trial(True, x).outputs)

    def _stacks(self) -> bool:
        """Whether ``torch.vmap`` returns the outputs of two slots, with gradients."""
        self._set(True, self._samples.device)
        w = {k: torch.stack([v, v]).requires_grad_() for k, v in self._parameters.items()}
        x = torch.stack([self._samples, self._samples])
        try:
            z = self._stacked(dict(w), x)
            torch.autograd.grad(z.sum(), list(w.values()), allow_unused=True)
        except (RuntimeError, ValueError, NotImplementedError) as error:
            warnings.warn(
                f"{self.name}: torch.vmap cannot stack it ({described(error):.120}); slots are "
                "computed one after the other",
                stacklevel=2,
            )
            return False
        expected = self._expected[True].outputs
        return bool(torch.allclose(z[1], expected, rtol=1e-3, atol=1e-4, equal_nan=True))


def _same(first: Trial, second: Trial) -> bool:
    pairs = zip(first.buffers.values(), second.buffers.values(), strict=True)
    return equal(first.outputs, second.outputs) and all(equal(*pair) for pair in pairs)


def trained_parameters(module: nn.Module) -> dict[str, Tensor]:
    """Return the parameters that need a gradient, by name."""
    return {key: value for key, value in module.named_parameters() if value.requires_grad}


def _tied(module: nn.Module) -> dict[str, str]:
    """Return the other names of parameters and buffers that several submodules have."""
    names: dict[int, str] = {}
    tied = {}
    for prefix, part in module.named_modules():
        for key, value in (*part._parameters.items(), *part._buffers.items()):
            name = f"{prefix}.{key}" if prefix else key
            if value is not None and names.setdefault(id(value), name) != name:
                tied[name] = names[id(value)]
    return tied
