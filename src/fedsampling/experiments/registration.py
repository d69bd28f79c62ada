"""Registration: the rules that judge fresh runs are fixed, with a digest and a date, before them.

The runs with which a claim's rule was developed *explore*.  What *confirms* are runs with fresh
seeds, judged by the rule as registered.  An experiment with the key ``confirm`` has a twin,
``confirm_<name>``: the same experiment with the keys of ``confirm`` replaced, a declared plan of
``looks``, and seeds from ``first_seed`` on, by default :data:`FIRST_SEED`.  A claim's ``parts``
state what decides each of its parts.  The digest covers these records and the settings of the
twins, not prose and not code, so that later wording keeps it.  ``registered.json`` of a paper
stores digest, time and commit of each claim; a claim whose records changed since is explored only.
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from fedsampling.base.errors import InputError
from fedsampling.base.files import digest, read_record
from fedsampling.base.nested import merge
from fedsampling.base.records import Strict, check

CONFIRM = "confirm_"  # prefix of experiments with fresh seeds
FIRST_SEED = 1000  # seeds below have been used for exploring, tuning and pilots
FILE = "registered.json"


class PartRule(Strict):
    """What decides a part of a claim."""

    samplers: list[str] = Field(description="labels of the samplers that are compared")
    metric: str = Field(description="what is measured, with its unit")
    contrast: Literal["ratio", "difference", "decibels", "mean", "exact"] = Field(
        description="how samplers are compared, seed by seed; exact: a closed form, without seeds"
    )
    accepted: tuple[float | None, float | None] = Field(
        description="range in which the whole interval must lie; null: no bound"
    )
    interval: str = Field(
        "Student's t, 95 %",
        description="method, level, and correction for comparisons that decide together",
    )


class Registered(Strict):
    """The registration of a claim's rule."""

    digest: str = Field(description="SHA-256 of the rule's records and of its twins' settings")
    at: datetime = Field(description="time of the registration, with its time zone")
    commit: str = Field(description="commit that contains the records")


def twin(experiment: Mapping[str, Any], confirm: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the experiment with fresh seeds that ``confirm`` describes.

    It has as many seeds as the last look, from ``first_seed`` on.  It exists only at the scale that
    ``scale`` names, by default the paper's size.
    """
    changes = {"scale": "paper", "first_seed": FIRST_SEED, **confirm}
    scale, first, looks = changes.pop("scale"), changes.pop("first_seed"), changes.get("looks")
    is_list = isinstance(looks, list) and all(type(n) is int for n in looks)
    if not is_list or not looks or sorted(set(looks)) != looks:
        raise InputError(f"confirm.{name}.looks: must be a list of increasing numbers of seeds")
    if scale not in ("paper", "reduced"):
        raise InputError(f"confirm.{name}.scale: must be paper or reduced")
    if not isinstance(first, int) or first < FIRST_SEED:
        raise InputError(f"confirm.{name}.first_seed: must be an integer from {FIRST_SEED} on")
    changes["seeds"] = list(range(first, first + looks[-1]))
    title = f"{experiment.get('title')}, fresh seeds"
    absent = dict.fromkeys(("quick", "reduced", "paper"))
    if scale == "reduced":
        reduced = _overlaid(experiment.get("reduced") or {}, changes)
        counts = {key: changes[key] for key in ("seeds", "looks")}
        return {**experiment, **absent, **counts, "reduced": reduced, "title": title}
    del absent["paper"]
    return {**merge(dict(experiment), changes), **absent, "title": title}


def _overlaid(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes on top of a scale's; null stays, because it removes a mapping later."""
    merged = dict(base)
    for key, value in changes.items():
        both = isinstance(merged.get(key), dict) and isinstance(value, dict)
        merged[key] = _overlaid(merged[key], value) if both else value
    return merged


def with_seeds(experiment: Mapping[str, Any], n: int) -> dict[str, Any]:
    """Return an experiment with its first `n` seeds, at every scale: an earlier look."""
    seeds = experiment["seeds"][:n]
    changed = {**experiment, "seeds": seeds}
    if changed.get("reduced"):
        changed["reduced"] = {**changed["reduced"], "seeds": seeds}
    return changed


def rule_digest(claim: Mapping[str, Any], experiments: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the digest of a rule's records.

    `claim`: its ``parts``, ``margin``, ``unit``, ``cases`` and ``experiments``. `experiments`: its
    twins as ``paper.yaml`` writes them out; titles do not count.
    """
    kept = ("parts", "margin", "unit", "cases", "experiments")
    twins = {
        name: {key: value for key, value in settings.items() if key != "title"}
        for name, settings in sorted(experiments.items())
    }
    return digest([{key: claim[key] for key in kept}, twins])


def read_registered(folder: Path) -> dict[str, Registered]:
    """Read a paper's registrations, by claim; none if it has no such file."""
    path = folder / FILE
    if not path.is_file():
        return {}
    return {
        name: check(Registered, fields, f"{path}: {name}.")
        for name, fields in read_record(path).items()
    }
