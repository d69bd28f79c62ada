"""A user's ``torch.nn.Module`` and loss as a stacked network.

``torch.func.functional_call`` makes the module a function of its parameters and buffers, and
``torch.vmap`` applies it to all slots at once.  Modules that draw random numbers, change buffers,
mix the samples of a batch, or that ``vmap`` does not support, are applied slot by slot.

Users' code gets copies, and keyed numbers from PyTorch's generator.  Both are tried on a few
samples before training, and what cannot be isolated is refused in one line.
"""

import copy
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.parameter import is_lazy

from fedsampling.base.arrays import Array
from fedsampling.base.errors import InputError, described, import_error_lines, import_file
from fedsampling.learning.models.dropout import Keep
from fedsampling.learning.models.guests import (
    ROWS,
    blaming,
    equal,
    keyed,
    padded,
    seedable,
    slot_seeds,
    trial_samples,
)
from fedsampling.learning.models.network import Network, Parts
from fedsampling.learning.models.operations import blank
from fedsampling.learning.models.settings import ModelFile

Loss = Callable[[Tensor, Tensor], Tensor]
OwnModel = nn.Module | Callable[[], nn.Module]

WRAPPERS = {  # modules that only run another one, and their attribute with it
    "DataParallel": "module",
    "DistributedDataParallel": "module",
    "OptimizedModule": "_orig_mod",
}


def own_network(
    module: OwnModel, sample: tuple[int, ...], classes: int | None, loss: Loss | None = None
) -> Network:
    """Convert a module to a network.

    All runs start from a module's parameters; a function is called for each run, after PyTorch's
    generator has been seeded with the run's seed. `classes` is None for regression. ``loss(outputs,
    targets)`` returns one number per sample; the default is cross entropy, or half the squared
    error.
    """
    make = _maker(module)
    template, symbols = _fitted(make(0), sample, classes)
    guest = OwnModule(_copied(template), symbols, sample)
    trained = _trained(template)
    state = {key: value for key, value in template.named_buffers() if key in guest.buffers}
    if not isinstance(module, nn.Module):
        drawn = [_fitted(make(seed), sample, classes)[0] for seed in (0, 1)]
        _refuse_unkeyed(guest, template, *drawn)

    def draw(rng: np.random.Generator) -> Mapping[str, Array]:
        initial = template
        if not isinstance(module, nn.Module):
            initial, _ = _fitted(make(int(rng.integers(2**62))), sample, classes)
        drawn = {**_trained(initial), **dict(initial.named_buffers())}
        if any(key not in drawn or drawn[key].shape != shape for key, shape in shapes.items()):
            raise InputError(f"model: {guest.name} differs from seed to seed; use one architecture")
        return {key: drawn[key].detach().double().numpy() for key in (*trained, *state)}

    shapes = {key: tuple(value.shape) for key, value in trained.items()}
    kind: Literal["cross_entropy", "squared"] = "squared" if classes is None else "cross_entropy"
    return Network(
        guest.name,
        shapes,
        draw,
        lambda w, x, keep: guest(w, x, keep, None),
        lambda w, h: h,  # the module includes its last layer
        kind,
        criterion=None if loss is None else OwnLoss(loss, guest.outputs_shape, classes),
        module=guest,
        buffers={key: tuple(value.shape) for key, value in state.items()},
    )


def with_loss(
    network: Network, loss: Loss, sample: tuple[int, ...], classes: int | None
) -> Network:
    """Replace the loss of a built-in network; arguments as for :func:`own_network`."""
    theta, x = blank(network, sample, ROWS, "meta")
    shape = tuple(network.outputs(theta, x)[0].shape)
    return replace(network, criterion=OwnLoss(loss, shape, classes), layers=())


def file(settings: ModelFile, sample: tuple[int, ...], classes: int | None) -> Network:
    """Create a network from the module, and the loss if `settings` names one, in a user's file."""
    with _blaming_file(settings):
        imported = _imported(settings)
        loss = getattr(imported, settings.loss) if settings.loss else None
        return own_network(getattr(imported, settings.name), sample, classes, loss)


def check_file(settings: ModelFile) -> None:
    """Report an error in a user's file, or a name that it lacks, before a long call needs it."""
    with _blaming_file(settings):
        _imported(settings)


def _imported(settings: ModelFile) -> ModuleType:
    """Import a user's file, which must define the names in the settings."""
    path = Path(settings.file)
    imported = import_file(path, _module_name(settings), "a torch.nn.Module")
    for key, name in (("name", settings.name), ("loss", settings.loss)):
        if name and not hasattr(imported, name):
            raise InputError(f"{key}: {name!r} is not defined in {path}")
    return imported


def _module_name(settings: ModelFile) -> str:
    return f"model_{settings.content[:16]}"  # a changed file is another module


@contextmanager
def _blaming_file(settings: ModelFile) -> Iterator[None]:
    """Report whatever the code in a user's file raises in one line with its place."""
    path, module = Path(settings.file), _module_name(settings)
    try:
        yield
    except InputError as line:
        if line.__cause__ is None or isinstance(line.__cause__, InputError):
            raise
        raise InputError(*import_error_lines(line.__cause__, path, module)) from None
    except (Exception, SystemExit) as error:  # a user's file can raise anything
        raise InputError(*import_error_lines(error, path, module)) from None


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
        self._parameters = {key: value.detach().clone() for key, value in _trained(module).items()}
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
            return torch.vmap(self._apply)(dict(w), x)

    def verify(self) -> None:
        """Compare the module with its first trials."""
        for training, expected in self._expected.items():
            if not _same(self._trial(training, self._samples), expected):
                raise InputError(
                    f"model: {self.name} has changed during training, apart from parameters and "
                    "buffers; keep what forward remembers in buffers (register_buffer)"
                )

    def _one_by_one(
        self, w: Parts, x: Tensor, seeds: list[int] | None, sizes: Sequence[int] | None
    ) -> Tensor:
        """Compute the slots one after the other, each from its own seed and buffers."""
        parts = {name: part.unbind() for name, part in w.items() if name not in self.buffers}
        outputs = []
        with seedable(x.device) as seed, blaming(f"model: {self.name}"):
            for k in range(len(x)):
                rows = x[k] if sizes is None else x[k, : sizes[k]]
                arguments = {name: part[k] for name, part in parts.items()}
                for name, dtype in self.buffers.items():
                    value = w[name][k].detach()
                    value = value if dtype.is_floating_point else value.round()  # an average
                    arguments[name] = value.to(dtype, copy=True)
                seed(0 if seeds is None else seeds[k])
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
            raise InputError(f"model: {self.name}: buffer {name!r} exceeds 2**24; make it smaller")

    def _apply(self, arguments: dict[str, Tensor], x: Tensor) -> Tensor:
        """Apply the module; a buffer that it replaces is replaced in `arguments`, too."""
        tied = {alias: arguments[key] for alias, key in self._tied.items() if key in arguments}
        entries = {**arguments, **tied}
        # PyTorch's own handling of tied weights does not restore shared submodules.
        outputs: Tensor = functional_call(self._module, entries, (x,), tie_weights=False)
        arguments.update((key, entries[key]) for key in arguments)
        return outputs

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
        """Whether a sample's outputs depend on other samples of its batch."""
        others = torch.cat([self._samples[:1], self._samples[1:].flip(0)])
        before = self._expected[True].outputs
        return not torch.equal(self._trial(True, others).outputs[0], before[0])

    def _stacks(self) -> bool:
        """Whether ``torch.vmap`` returns the outputs of two slots, with gradients."""
        self._set(True, self._samples.device)
        w = {k: torch.stack([v, v]).requires_grad_() for k, v in self._parameters.items()}
        x = torch.stack([self._samples, self._samples])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of operations that vmap computes in a loop
                z = torch.vmap(self._apply)(dict(w), x)
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


class OwnLoss:
    """A user's loss ``loss(outputs, targets)``, one number per sample, for all slots."""

    def __init__(self, loss: Loss, shape: tuple[int, ...], classes: int | None) -> None:
        if not callable(loss):
            raise InputError(f"loss: {loss!r:.60} is invalid; must be a function")
        if isinstance(loss, nn.Module) and _trained(loss):
            raise InputError("loss: its parameters would not be trained; move them to the model")
        self._loss = loss
        self._z = trial_samples(shape[1:], symbols=False)
        labels = torch.arange(prod(shape[:-1])).view(shape[:-1])
        self._y = torch.arange(ROWS) / ROWS if classes is None else labels % classes
        self.separate = False
        self._expected, self._draws = self._trial(self._z)
        if not equal(self._expected, self._trial(self._z)[0]):
            raise InputError("loss: differs for the same outputs; remove its memory")
        others = torch.cat([self._z[:1], self._z[1:].flip(0)])
        self.separate = self._draws or not torch.equal(self._trial(others)[0][0], self._expected[0])

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
        """Compare the loss with its first trial; raise InputError if it has changed."""
        if not equal(self._trial(self._z)[0], self._expected):
            raise InputError("loss: has changed during training; remove its memory")

    def _trial(self, z: Tensor) -> tuple[Tensor, bool]:
        outputs = z.clone().requires_grad_()
        with keyed("loss", z.device) as drew, blaming("loss"):
            losses = self._checked(outputs.clone(), self._y.clone())
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


def _same(first: Trial, second: Trial) -> bool:
    pairs = zip(first.buffers.values(), second.buffers.values(), strict=True)
    return equal(first.outputs, second.outputs) and all(equal(*pair) for pair in pairs)


def _trained(module: nn.Module) -> dict[str, Tensor]:
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


def _maker(module: OwnModel) -> Callable[[int], Any]:
    """Return a function that returns the module for a seed."""
    if isinstance(module, nn.Module):
        return lambda seed: module
    make = module
    with suppress(ValueError):  # some callables have no signature
        try:
            inspect.signature(make).bind()
        except TypeError as error:
            called = getattr(make, "__name__", "the function")
            raise InputError(
                f"model: {called}() is incomplete ({error}); use a function without arguments"
            ) from None

    def seeded(seed: int) -> Any:
        with torch.random.fork_rng(devices=[]), blaming("model"):
            torch.manual_seed(seed)
            return make()

    return seeded


def _fitted(instance: Any, sample: tuple[int, ...], classes: int | None) -> tuple[nn.Module, bool]:
    """Copy a module and apply it to zeros, which gives lazy layers their shapes."""
    while (wrapper := type(instance).__name__) in WRAPPERS and hasattr(instance, WRAPPERS[wrapper]):
        instance = getattr(instance, WRAPPERS[wrapper])
    name = type(instance).__name__
    if isinstance(instance, torch.jit.ScriptModule):
        raise InputError(f"model: {name} is TorchScript; use the module that it was compiled from")
    if not isinstance(instance, nn.Module):
        raise InputError(f"model: {name} is invalid; must be a torch.nn.Module")
    try:
        module = _copied(instance).cpu().float()
    except Exception as error:  # a user's attributes may refuse the copy in any way
        raise InputError(f"model: {name} cannot be copied: {described(error)}") from error
    symbols = _takes_symbols(module.eval(), name, sample, classes)
    entries = [*module.named_parameters(), *module.named_buffers()]
    if odd := [key for key, value in entries if value.is_complex()]:
        raise InputError(f"model: {name}: {odd[0]} has complex numbers; must be real numbers")
    if not _trained(module):
        raise InputError(f"model: {name} has no parameters to train; set requires_grad")
    return module, symbols


def _copied(module: nn.Module) -> nn.Module:
    """Copy a module; results of earlier calls, such as of ``weight_norm``, without their graph."""
    values = [value for part in module.modules() for value in vars(part).values()]
    results = [v for v in values if isinstance(v, Tensor) and not is_lazy(v) and not v.is_leaf]
    return copy.deepcopy(module, {id(value): value.detach().clone() for value in results})


def _takes_symbols(
    module: nn.Module, name: str, sample: tuple[int, ...], classes: int | None
) -> bool:
    """Apply the module to zeros, as numbers or as symbols; return whether it takes symbols."""
    errors: list[BaseException] = []
    for kind in (torch.float32, torch.int64):
        try:
            with torch.no_grad(), keyed(f"model: {name}", torch.device("cpu")):
                outputs: Any = module(torch.zeros(ROWS, *sample, dtype=kind))
        except InputError:
            raise
        except (Exception, SystemExit) as error:  # a user's forward may raise anything
            errors.append(error)
            continue
        shape = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        expected = (ROWS, 1 if classes is None else classes)
        if not isinstance(outputs, Tensor) or (*shape[:1], *shape[-1:]) != expected:
            meaning = "one number" + ("" if classes is None else f" for each of {classes} classes")
            raise InputError(
                f"model: {name} returns {shape} for {ROWS} samples; must be {expected}, {meaning}"
            )
        if not outputs.is_floating_point():
            raise InputError(f"model: {name} returns {outputs.dtype}; must be real numbers")
        return kind == torch.int64
    raise InputError(f"model: {name} fails on samples of shape {sample}: {described(errors[0])}")


def _refuse_unkeyed(guest: OwnModule, first: nn.Module, again: nn.Module, other: nn.Module) -> None:
    """Compare a function's modules for the seeds 0, 0 and 1."""
    states = [
        {**dict(m.named_parameters()), **dict(m.named_buffers())} for m in (first, again, other)
    ]
    if any(state.keys() != states[0].keys() for state in states):
        raise InputError(f"model: {guest.name} differs from call to call; use one architecture")
    changing = {*_trained(first), *guest.buffers}
    for key, value in states[0].items():
        if not equal(value, states[1][key]):
            raise InputError(
                f"model: {guest.name}: {key} is not drawn from PyTorch's generator; "
                "use torch.rand, …"
            )
        if key not in changing and not equal(value, states[2][key]):
            raise InputError(
                f"model: {guest.name}: {key} is random but not trained, so it would differ from "
                "seed to seed; pass one module in place of the function"
            )
