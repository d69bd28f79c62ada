"""The arguments of the public functions, checked and converted to settings of experiments."""

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from fedsampling.base.errors import InputError, naming, nearest
from fedsampling.base.records import Positive, Strict, check
from fedsampling.clients.recorded import RecordedAvailability, RecordedDelays, RecordedRounds
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.user_files import TABLES
from fedsampling.data.user_tables import is_table
from fedsampling.experiments.networks.settings import OPAQUE, Evaluation, Training
from fedsampling.experiments.simulations.simulation import Seed, Seeds
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.samplers.protocol.base import Scheme

if TYPE_CHECKING:
    from fedsampling.learning.models.network import Network
    from fedsampling.learning.models.own_losses import Loss

# Settings that users may also give by name.
NAMED_CHOICES = ("delays", "availability", "server", "schedule")
RECORDED: dict[str, type[RecordedDelays] | type[RecordedAvailability]] = {
    "delays": RecordedDelays,
    "availability": RecordedAvailability,
}  # users' own values

Choice = str | Mapping[str, Any] | Strict  # a choice: a name, a dict with the name, or a record

# Names in other libraries, with the corresponding keyword of `train`.
OTHER_KEYWORDS = {
    **dict.fromkeys(("lr", "learning_rate", "client_lr", "eta"), "step"),
    **dict.fromkeys(("server_lr", "server_learning_rate"), "server_step"),
    **dict.fromkeys(("local_steps", "iterations"), "steps"),
    **dict.fromkeys(("num_rounds", "n_rounds", "comm_rounds", "T"), "rounds"),
    **dict.fromkeys(("mu", "proximal_mu"), "prox"),
    **dict.fromkeys(("criterion", "loss_fn"), "loss"),
    **dict.fromkeys(("optimizer", "server_optimizer"), "server"),
    **dict.fromkeys(("sampler", "strategy", "selection"), "scheme"),
    "random_state": "seeds",
    "every": "evaluate_every",
    "callback": "on_round",
}


class Numbers(Strict):
    """Validation of the arguments `seeds`, `seed` and `threads`."""

    seeds: Seeds = Field(default_factory=lambda: [0])
    seed: Seed = 0
    threads: Positive | None = None


def training_settings(
    model: Any, scheme: Choice, settings: Mapping[str, Any], keywords: Iterable[str]
) -> Training:
    """Build a training's record from its settings, and those of `work` and `evaluation` in it.

    `keywords`: parameters of :func:`fedsampling.train`, to suggest one for an unknown key.
    """
    keys = {*keywords, *Training.model_fields}
    keys |= {*LocalWork.model_fields, *Evaluation.model_fields}
    # To users: `scheme`, single keys, `evaluate_every`.
    keys -= {"work", "evaluation", "sampler", "settings", "every"}
    if unknown := [key for key in settings if key not in keys]:
        others = {key: f"did you mean '{keyword}'?" for key, keyword in OTHER_KEYWORDS.items()}
        fixes = ((key, others.get(key) or nearest(key, keys)) for key in unknown)
        raise InputError(*(f"{key}: unknown key; {fix}" for key, fix in fixes))
    plain = {
        key: record_input(value, key) if key in NAMED_CHOICES and value is not None else value
        for key, value in settings.items()
    }
    plain["every"] = plain.pop("evaluate_every", 1)
    if plain.get("failures") is not None:
        plain["failures"] = failures_input(plain["failures"])
    work = {key: value for key, value in plain.items() if key in LocalWork.model_fields}
    evaluation = {key: value for key, value in plain.items() if key in Evaluation.model_fields}
    training = {key: value for key, value in plain.items() if key not in {*work, *evaluation}}
    training |= {
        "model": {"name": "softmax"} if is_own(model) else record_input(model, "model"),
        "sampler": record_input(scheme, "scheme"),
        "work": work,
        "evaluation": evaluation,
    }
    with naming_keywords():
        return check(Training, training, "")


def with_defaults(record: Strict) -> dict[str, Any]:
    """Return a record as plain data, with the defaults that hashes leave out."""
    plain = record.model_dump(mode="json")
    for name in type(record).model_fields:
        value = getattr(record, name)
        if isinstance(value, Strict) and isinstance(plain.get(name, {}), dict):
            plain[name] = with_defaults(value)
        else:
            plain.setdefault(name, value)
    return plain


def check_data(data: object) -> None:
    """Check that the argument `data` has clients."""
    if not isinstance(data, FederatedDataset):
        fix = "use fedsampling.load, federated or from_frame"
        raise InputError(f"data: {described(data)} is invalid; {fix}")


def is_own(model: object) -> bool:
    """Whether a model is a user's module or a function, not a record or its class."""
    record = isinstance(model, type) and issubclass(model, Strict)
    return callable(model) and not record and not isinstance(model, Strict)


def own_network_of(
    model: Any, settings: Training, data: FederatedDataset, loss: "Loss | None"
) -> "Network | None":
    """Build the network of a user's module or loss; None if the settings determine it."""
    sample = data.x.shape[1:]
    if is_own(model):
        from fedsampling.learning.models.own import own_network

        if "heterogeneity" in settings.sampler.needs:
            raise InputError(OPAQUE.format(settings.sampler.named))
        return own_network(model, sample, data.classes, loss)
    if loss is None:
        return None
    from fedsampling.learning.models.own import with_loss

    return with_loss(settings.model.build(sample, data.classes), loss, sample, data.classes)


def with_labels(samplers: Iterable[Choice]) -> dict[str, Scheme]:
    """Label samplers by name; add the settings where names are equal."""
    if isinstance(samplers, str) or not isinstance(samplers, Iterable):
        raise InputError(f"samplers: {described(samplers)} is invalid; must be a list or a dict")
    if isinstance(samplers, Set):
        raise InputError("samplers: a set has no order; pass a list or a dict")
    checked = [
        item if isinstance(item, Scheme) else check(Scheme, record_input(item, "scheme"), "scheme.")
        for item in samplers
    ]
    names = [item.named for item in checked]
    labels: dict[str, Scheme] = {}
    for name, item in zip(names, checked, strict=True):
        settings = item.model_dump(exclude_unset=True, exclude={"name"})
        text = " ".join(f"{key}={value}" for key, value in settings.items())
        label = f"{name} {text}".strip() if names.count(name) > 1 else name
        if label in labels:
            raise InputError(f"samplers: duplicate {label!r}; remove one, or pass a dict of labels")
        labels[label] = item
    return labels


def record_input(choice: Any, key: str) -> Any:
    """Convert a choice to input that a record accepts."""
    if key in RECORDED:
        if isinstance(choice, Path) or (isinstance(choice, str) and choice.endswith(TABLES)):
            return {"name": RECORDED[key].named, "path": str(choice)}
        if not isinstance(choice, str | Strict) and "name" not in getattr(choice, "keys", tuple)():
            with naming(key):
                return RECORDED[key].holding(choice)
    if isinstance(choice, str):
        return {"name": choice}
    if isinstance(choice, Mapping | Strict):
        return choice
    example = f", such as {choice.__name__}(…)" if isinstance(choice, type) else ""
    raise InputError(
        f"{key}: {described(choice)} is invalid; must be a name, a dict or a record{example}"
    )


def failures_input(value: Any) -> Any:
    """Convert `failures` to input of its record: numbers are probabilities, `reports` a trace."""
    is_frame = is_table(value) and not isinstance(value, Mapping)
    if isinstance(value, str | bool | type) or is_frame:
        raise InputError(
            f"failures: {described(value)} is invalid; must be a probability, one for each client, "
            "or a dict, such as {'reports': trace}"
        )
    if not isinstance(value, Mapping):
        return plain_numbers(value)
    record = {key: plain_numbers(item) for key, item in value.items() if key != "reports"}
    if (reports := value.get("reports")) is None:
        return record
    if isinstance(reports, str | Path):
        return {**record, "reports": {"path": str(reports)}}
    if isinstance(reports, Strict) or (isinstance(reports, Mapping) and "path" in reports):
        return {**record, "reports": reports}
    with naming("failures.reports"):
        return {**record, "reports": RecordedRounds.holding(reports)}


def plain_numbers(value: Any) -> Any:
    """Convert NumPy's numbers, ranges and tuples to Python numbers and lists."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, range | tuple | list):
        return [plain_numbers(item) for item in value]
    return value


@contextmanager
def naming_keywords() -> Iterator[None]:
    """Replace the settings' names in error lines by the keywords of :func:`fedsampling.train`."""
    keywords = {"evaluation.every": "evaluate_every", "sampler": "scheme"}
    keywords |= {"evaluation": "", "work": ""}
    setting = re.compile(f"^({'|'.join(map(re.escape, keywords))})(?=[.:])")
    try:
        yield
    except InputError as error:
        lines = (setting.sub(lambda name: keywords[name[1]], line) for line in error.lines)
        raise InputError(*(line.lstrip(".: ") for line in lines)) from None


def described(value: object) -> str:
    """Describe a value by itself or by its type."""
    if isinstance(value, str | int | float):
        return repr(value)
    kind = value.__name__ if isinstance(value, type) else type(value).__name__
    return f"the class {kind}" if isinstance(value, type) else f"an object of {kind}"
