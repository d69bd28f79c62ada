"""A user's ``torch.nn.Module`` as a stacked network.

``torch.func.functional_call`` makes the module a function of its parameters, and ``torch.vmap``
applies it to all slots at once.  If ``vmap`` fails for a module, it is applied slot by slot, with a
warning.
"""

import copy
import inspect
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from fedsampling.base.blame import described, import_error_lines
from fedsampling.base.errors import InputError
from fedsampling.base.own_files import import_file
from fedsampling.learning.models.model import ModelFile
from fedsampling.learning.models.networks.network import Keep, Network, Parts

Loss = Callable[[Tensor, Tensor], Tensor]
OwnModel = nn.Module | Callable[[], nn.Module]

ROWS = 2  # samples in the test of a module
BATCH_NORMS = (nn.modules.batchnorm._BatchNorm,)
DROPOUTS = (nn.modules.dropout._DropoutNd,)


def own_network(
    module: OwnModel,
    sample: tuple[int, ...],
    classes: int | None,
    loss: Loss | None = None,
) -> Network:
    """Convert a module to a network.

    Parameters
    ----------
    module : Module, or function that returns one
        With a module, all runs start from its parameters.  A function is called for each run, after
        PyTorch's generator has been seeded with the run's seed.
    sample : tuple of int
        Shape of one sample.
    classes : int or None
        Number of labels; None for regression.
    loss : callable, optional
        ``loss(outputs, targets)`` returns one number per sample, shape (batch,).  The default is
        cross entropy, or half the squared error for regression.

    Raises
    ------
    InputError
        If the module keeps state from batch to batch or draws random numbers, or does not fit the
        samples or labels.
    """
    instance = module if isinstance(module, nn.Module) else _without_arguments(module)()
    if not isinstance(instance, nn.Module):
        raise InputError(f"model: {type(instance).__name__} is invalid; must be a torch.nn.Module")
    name = type(instance).__name__
    template = copy.deepcopy(instance).train()  # kernels for evaluation may have no gradient
    _refuse_state(template, name)
    symbols = _takes_symbols(template, name, sample, classes)
    trained = _parameters(template)
    if not trained:
        raise InputError(f"model: {name} has no parameters to train; set requires_grad")

    def draw(rng: np.random.Generator) -> Mapping[str, NDArray[np.float64]]:
        initial = template if isinstance(module, nn.Module) else _seeded(module, rng)
        parameters = _parameters(initial)
        return {key: value.detach().double().cpu().numpy() for key, value in parameters.items()}

    shapes = {key: tuple(value.shape) for key, value in trained.items()}
    kind: Literal["cross_entropy", "squared"] = "squared" if classes is None else "cross_entropy"
    return Network(name, shapes, draw, _Applied(template, symbols), _identity, kind, criterion=loss)


def file(settings: ModelFile, sample: tuple[int, ...], classes: int | None) -> Network:
    """Create a network from the module, and the loss if `settings` names one, in a user's file.

    Raises
    ------
    InputError
        As :func:`own_network`, or if the file raises an error.
    """
    path = Path(settings.file)
    module = f"model_{settings.content[:16]}"  # a changed file is another module
    try:
        imported = import_file(path, module, "a torch.nn.Module")
        loss = getattr(imported, settings.loss) if settings.loss else None
        return own_network(getattr(imported, settings.name), sample, classes, loss)
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # a user's file can raise anything
        raise InputError(*import_error_lines(error, path, module)) from None


def _without_arguments(make: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    with suppress(ValueError):  # some callables have no signature
        try:
            inspect.signature(make).bind()
        except TypeError as error:
            called = getattr(make, "__name__", "the function")
            raise InputError(
                f"model: {called}() is incomplete ({error}); use a function without arguments"
            ) from None
    return make


class _Applied:
    """The module as a function of all slots' parameters and batches."""

    def __init__(self, module: nn.Module, symbols: bool) -> None:
        self._module, self._symbols = module, symbols
        self._stacked = True

    def __call__(self, w: Parts, x: Tensor, keep: Keep) -> Tensor:
        x = x.long() if self._symbols else x
        self._module.to(x.device)
        if self._stacked:
            try:
                return torch.vmap(self._apply)(dict(w), x)
            except (RuntimeError, ValueError, NotImplementedError) as error:
                self._stacked = False
                warnings.warn(
                    f"{type(self._module).__name__}: torch.vmap cannot stack it "
                    f"({described(error):.120}); slots are computed one after the other",
                    stacklevel=2,
                )
        slots = range(len(x))
        return torch.stack([self._apply({key: w[key][k] for key in w}, x[k]) for k in slots])

    def _apply(self, parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        outputs: Tensor = functional_call(self._module, parameters, (x,))
        return outputs


def _identity(w: Parts, h: Tensor) -> Tensor:
    """Return the outputs: the module includes its last layer."""
    return h


def _parameters(module: nn.Module) -> dict[str, Tensor]:
    return {key: value for key, value in module.named_parameters() if value.requires_grad}


def _seeded(make: Callable[[], nn.Module], rng: np.random.Generator) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**62)))
        return make()


def _refuse_state(module: nn.Module, name: str) -> None:
    for key, part in module.named_modules():
        place = f"model: {name}: {key or 'itself'}"
        if isinstance(part, BATCH_NORMS):
            raise InputError(
                f"{place} is {type(part).__name__}, whose running statistics belong to no client; "
                "use GroupNorm or LayerNorm"
            )
        rate = part.p if isinstance(part, DROPOUTS) else getattr(part, "dropout", 0.0)
        if isinstance(rate, float) and rate > 0:
            raise InputError(
                f"{place} has dropout with rate {rate:g} from a generator that all runs share; "
                "set it to 0"
            )


def _takes_symbols(
    module: nn.Module, name: str, sample: tuple[int, ...], classes: int | None
) -> bool:
    """Apply the module to zeros, as numbers or as symbols; return whether it takes symbols."""
    errors: list[BaseException] = []
    for kind in (torch.float32, torch.int64):
        try:
            with torch.no_grad():
                outputs: Any = module(torch.zeros(ROWS, *sample, dtype=kind))
        except Exception as error:  # a user's forward may raise anything
            errors.append(error)
            continue
        shape = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        expected = (ROWS, 1 if classes is None else classes)
        if not isinstance(outputs, Tensor) or (shape[0], shape[-1]) != expected or len(shape) < 2:
            meaning = "one number" + ("" if classes is None else f" for each of {classes} classes")
            raise InputError(
                f"model: {name} returns {shape} for {ROWS} samples; must be {expected}, {meaning}"
            )
        return kind == torch.int64
    raise InputError(f"model: {name} fails on samples of shape {sample}: {described(errors[0])}")
