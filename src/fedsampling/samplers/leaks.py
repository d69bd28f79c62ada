"""What a sampler reveals about a client to the server, derived from the information it needs.

Every server knows the clients' numbers of samples, and averages models.  If secure aggregation
suffices, it learns only sums of the clients' updates.
"""

from collections.abc import Iterable
from inspect import getattr_static
from itertools import product
from typing import Any, Literal, get_args, get_origin

from fedsampling.samplers.protocol.base import Scheme

Settings = dict[str, Any]

# What the server learns of a client, by the names in `needs`.
LEARNED = {
    "batch_gradients": "gradient",
    "batch_losses": "loss",
    "bias_updates": "update of the output bias",
    "client_gradients": "gradient",
    "delays": "speed",
    "gradients": "gradient",
    "heterogeneity": "features of a batch",
    "label_counts": "label counts",
    "labels": "most frequent label",
    "losses": "loss",
    "mean_norms": "norm",
    "optimum": "gradient",
    "sample_norms": "norm",
    "update_norms": "norm",
    "updates": "update",
    "work_losses": "loss",
}
NOTHING = "nothing"
SPEEDS = frozenset({"delays"})  # known to a server that waits, also with secure sums
# Numbers that clients send besides their updates, whose sums may remain secure.
BESIDE_UPDATES = frozenset(
    {
        *("batch_losses", "label_counts", "labels", "losses", "mean_norms"),
        *("sample_norms", "update_norms", "work_losses"),
    }
)
# Settings with which a server needs only sums over clients of the information in `needs`.
SUMS_SUFFICE: dict[str, Settings] = {"available": {"report": "approximate"}}

YES, UPDATES, NO = "yes", "for updates", "no"


def learned(member: type[Scheme]) -> str:
    """Return what the server learns of a client; alternatives, if the settings decide it."""
    return _joined(_learned(member, *variant) for variant in _variants(member))


def secure_sums(member: type[Scheme]) -> str:
    """Return whether secure sums of the clients' updates suffice.

    ``yes``; ``for updates``, if the clients send single numbers besides; ``no``, if the server
    needs each client's update, gradient or features; alternatives as in :func:`learned`.
    """
    return _joined(_secure(member, *variant) for variant in _variants(member))


def _joined(texts: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(texts))


def _learned(member: type[Scheme], settings: Settings, needs: frozenset[str]) -> str:
    text = ", ".join(sorted({LEARNED[name] for name in needs})) or NOTHING
    return f"sum of the {text}s" if _needs_sums_only(member, settings) else text


def _secure(member: type[Scheme], settings: Settings, needs: frozenset[str]) -> str:
    if needs <= SPEEDS or _needs_sums_only(member, settings):
        return YES
    return UPDATES if needs - SPEEDS <= BESIDE_UPDATES else NO


def _needs_sums_only(member: type[Scheme], settings: Settings) -> bool:
    required = SUMS_SUFFICE.get(member.named)
    return required is not None and required.items() <= settings.items()


def _variants(member: type[Scheme]) -> list[tuple[Settings, frozenset[str]]]:
    """Return the settings that choose among alternatives, with the needs of each."""
    choices = {
        key: get_args(field.annotation)
        for key, field in member.model_fields.items()
        if get_origin(field.annotation) is Literal and key != "name"
    }
    listed = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    if not isinstance(getattr_static(member, "needs"), property):
        listed = listed[:1]
    variants = []
    for settings in listed:
        try:
            needs = member.model_construct(**settings).needs
        except KeyError:  # the settings exclude one another
            continue
        variants.append((settings, frozenset(needs)))
    return sorted(variants, key=lambda variant: (len(variant[1]), str(variant[0])))
