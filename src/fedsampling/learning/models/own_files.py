"""Models and losses in a user's file, which ``model: {name: file}`` names."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from fedsampling.base.errors import InputError, import_error_lines, import_file
from fedsampling.learning.models.network import Network
from fedsampling.learning.models.own import own_network
from fedsampling.learning.models.settings import ModelFile


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
