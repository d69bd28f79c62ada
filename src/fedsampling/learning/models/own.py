"""A user's ``torch.nn.Module``, or a function that returns one, as a network."""

import copy
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fedsampling.base.arrays import Array
from fedsampling.base.errors import InputError, described
from fedsampling.learning.models.guests import ROWS, blaming, equal, keyed
from fedsampling.learning.models.network import Network
from fedsampling.learning.models.operations import blank
from fedsampling.learning.models.own_losses import Loss, OwnLoss
from fedsampling.learning.models.own_modules import OwnModule, trained_parameters

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
    trained = trained_parameters(template)
    state = {key: value for key, value in template.named_buffers() if key in guest.buffers}
    if not isinstance(module, nn.Module):
        drawn = [_fitted(make(seed), sample, classes)[0] for seed in (0, 1)]
        _refuse_unkeyed(guest, template, *drawn)

    def draw(rng: np.random.Generator) -> Mapping[str, Array]:
        initial = template
        if not isinstance(module, nn.Module):
            initial, _ = _fitted(make(int(rng.integers(2**62))), sample, classes)
        drawn = {**trained_parameters(initial), **dict(initial.named_buffers())}
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
        ends_in_bias=guest.ends_in_bias(),
    )


def with_loss(
    network: Network, loss: Loss, sample: tuple[int, ...], classes: int | None
) -> Network:
    """Replace the loss of a built-in network; arguments as for :func:`own_network`."""
    theta, x = blank(network, sample, ROWS, "meta")
    shape = tuple(network.outputs(theta, x)[0].shape)
    return replace(network, criterion=OwnLoss(loss, shape, classes), layers=())


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
    if not trained_parameters(module):
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
    changing = {*trained_parameters(first), *guest.buffers}
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
