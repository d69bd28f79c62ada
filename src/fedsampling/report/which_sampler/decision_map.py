"""Reads the decision map of the cross matrix's benchmark, and the regret of its advice.

``papers/crossmatrix/decision_map.py`` learns and validates the map.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fedsampling.evidence.numbers import show
from fedsampling.experiments.cross_matrix import BENCH, REFERENCE
from fedsampling.report.names import Name, display_name

MAP = f"{BENCH}map"
# Questions of the map (flags of `fedsampling rank`), and the meaning of yes.
ANSWERS = {
    "away": "clients come and go",
    "delays": "delays are known",
    "losses": "losses are known",
    "updates": "updates are known",
    "unequal": "sizes are unequal",
    "skewed": "labels are skewed",
}
# Rules that the map compares: it advises the sampler that the rule with least regret names.
RULES = {
    "map": "the map",
    "always": "the best single sampler",
    "md": "MD",
    "fedavg": "FedAvg",
}
Situation = tuple[str, frozenset[str]]  # a measure of cost, and the ANSWERS that are yes


@dataclass(frozen=True)
class Advice:
    """The recommended sampler in a situation.

    Parameters
    ----------
    measure : str
        ``rounds``, ``bits`` or ``seconds``.
    sampler : str
    rule : str
        ``map`` if the answers about sizes and labels decide; ``always``, ``md`` or ``fedavg`` if a
        fixed sampler has the smaller regret.
    speed_up : float
        Over MD sampling, on the datasets with these answers; on all datasets if there are none.
    datasets : int
        Number of datasets with these answers.
    mean_regret, worst_regret : mapping of str to float
        Of each rule, on datasets that it was not learned from.
    nested_regret : tuple of float, optional
        Mean and largest regret if the rule, too, is chosen without the dataset.
    """

    measure: str
    sampler: str
    rule: str
    speed_up: float
    datasets: int
    mean_regret: Mapping[str, float]
    worst_regret: Mapping[str, float]
    nested_regret: tuple[float, float] | None = None

    @property
    def display(self) -> Name:
        """Display name of the sampler."""
        return display_name(self.sampler)

    @property
    def regret(self) -> tuple[float, float]:
        """Mean and largest regret on a dataset that played no part in the advice, if known.

        Always using MD sampling is not learned from any dataset.
        """
        followed = self.mean_regret[self.rule], self.worst_regret[self.rule]
        return followed if self.rule == "md" else self.nested_regret or followed

    @property
    def speed_up_in_words(self) -> str:
        """The speed-up over MD sampling; empty for MD sampling itself."""
        if self.sampler == REFERENCE:
            return ""
        where = "on all datasets"
        if self.datasets:
            where = f"on {self.datasets} dataset{'s'[: self.datasets != 1]} with these answers"
        is_slower = self.rule == "always" and self.speed_up < 1
        caveat = ", but the best single sampler over all datasets" if is_slower else ""
        return f"{show(self.speed_up)} × as fast as MD sampling {where}{caveat}"

    @property
    def sentence(self) -> str:
        """The advice with its regret."""
        sampler = self.display.title + ("" if self.rule == "map" else ", for any sizes and labels")
        gain = f": {self.speed_up_in_words}" if self.speed_up_in_words else ""
        mean, worst = self.regret
        other_rules = ", ".join(
            f"{words} {self.mean_regret[rule]:.2f} ({self.worst_regret[rule]:.2f})"
            for rule, words in RULES.items()
            if rule != self.rule
        )
        return (
            f"{sampler}{gain}. On a dataset that the advice was not learned from, it costs "
            f"{mean:.2f} times as much as the best sampler allowed, at worst {worst:.2f} times; "
            f"other rules: {other_rules}."
        )


def read(folder: Path) -> dict[Situation, Advice]:
    """Read the map from the cross matrix's artefacts; empty if it has not been drawn."""
    path = folder / MAP / f"{MAP}.csv"
    table = pd.read_csv(path) if path.is_file() else pd.DataFrame()
    if not {"measure", "rule", *ANSWERS} <= set(table.columns):
        return {}
    return {
        (row["measure"], frozenset(key for key in ANSWERS if row[key])): Advice(
            row["measure"],
            row["advice"],
            row["rule"],
            row["speed_up"],
            row.get("sets", 0),
            {rule: row[f"mean_{rule}"] for rule in RULES},
            {rule: row[f"worst_{rule}"] for rule in RULES},
            _nested_regret(row),
        )
        for row in table.to_dict("records")
    }


def _nested_regret(row: Mapping[Any, Any]) -> tuple[float, float] | None:
    mean = row.get("mean_nested", math.nan)
    return None if math.isnan(mean) else (mean, row["worst_nested"])
