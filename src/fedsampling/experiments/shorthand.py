"""Shorthand of ``paper.yaml``.

- In a case, ``0.2x`` is 0.2 times the experiment's own value: ``work: {step: 0.2x}``.
- An experiment with the key ``tuning`` has a twin ``tuning_<name>``: the same experiment with the
  keys of ``tuning`` replaced.  The twin's title is appended to the experiment's title.
- In lists of experiments, ``bench_*`` stands for all experiments with such names, in the order of
  the file.
"""

import fnmatch
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fedsampling.base.errors import InputError
from fedsampling.base.record_errors import check_mapping

# Keys of an experiment that change its settings, or leave it out at a scale if they are null.
SCALE_KEYS = ("quick", "reduced", "paper")
TUNING = "tuning_"  # samplers are tuned, on each dataset
FACTOR = re.compile(r"(\d+|\d*\.\d+)x")
PRODUCT_DIGITS = 12  # 0.2x of 0.1 is 0.02, not 0.020000000000000004


def exists_at(experiment: Mapping[str, Any], scale: str) -> bool:
    """Whether an experiment exists at a scale; null in place of its changes leaves it out."""
    return experiment.get(scale, {}) is not None


def write_out(experiments: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the experiments with factors multiplied, and with the twins that tune them."""
    plain: dict[str, dict[str, Any]] = {}
    for name, written in experiments.items():
        for key in ("cases", "samplers", "tuning", *SCALE_KEYS):
            if (changes := written.get(key)) is not None:
                check_mapping(changes, f"experiments.{name}.{key}")
        experiment = {key: value for key, value in written.items() if key != "tuning"}
        if isinstance(cases := experiment.get("cases"), dict):
            experiment["cases"] = {
                case: _multiplied(changes, experiment, f"experiments.{name}.cases.{case}")
                for case, changes in cases.items()
            }
        plain[name] = experiment
        if tuning := written.get("tuning"):
            title = f"{experiment.get('title')}, {tuning.get('title')}"
            plain[TUNING + name] = {**experiment, **tuning, "title": title}
    return plain


def matching(patterns: Sequence[str], names: Sequence[str]) -> list[str]:
    """Replace each pattern by the names that match it; patterns without a match are kept."""
    return [name for pattern in patterns for name in fnmatch.filter(names, pattern) or [pattern]]


def _multiplied(changes: Any, base: Any, place: str) -> Any:
    """Return a case's changes with each factor multiplied by the experiment's own value."""
    if isinstance(changes, dict):
        values = base if isinstance(base, dict) else {}
        return {
            key: _multiplied(change, values.get(key), f"{place}.{key}")
            for key, change in changes.items()
        }
    factor = FACTOR.fullmatch(changes) if isinstance(changes, str) else None
    if not factor:
        return changes
    if not isinstance(base, int | float):
        raise InputError(f"{place}: {changes} multiplies the experiment's own value; set it")
    return float(f"{float(factor[1]) * base:.{PRODUCT_DIGITS}g}")
