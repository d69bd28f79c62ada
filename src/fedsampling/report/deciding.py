"""The decision map of the cross matrix's benchmark, and the regret of its advice.

``papers/crossmatrix`` learns and validates the map; this module reads it for ``fedsampling rank``
and for the page "Which sampler?".
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fedsampling.base.errors import InputError
from fedsampling.evidence.numbers import show
from fedsampling.experiments.cross_matrix import BENCH, MEASURES, PAPER, REFERENCE
from fedsampling.report.names import Name
from fedsampling.report.names import name as display_name

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


@dataclass(frozen=True)
class Decision:
    """The recommended sampler for a situation and a cost.

    Parameters
    ----------
    measure : str
        ``rounds``, ``bits`` or ``seconds``.
    sampler : str
    rule : str
        ``map`` if the answers about sizes and labels decide; ``always``, ``md`` or ``fedavg`` if a
        fixed sampler has the smaller regret.
    speed_up : float
        Over MD sampling, on the datasets with these answers; on all datasets if `sets` is 0.
    sets : int
        Number of datasets with these answers.
    regret, worst : mapping of str to float
        Mean and largest regret of each rule on datasets that it was not learned from.
    unseen : tuple of float, optional
        Mean and largest regret if the rule, too, is chosen without the dataset.
    """

    measure: str
    sampler: str
    rule: str
    speed_up: float
    sets: int
    regret: Mapping[str, float]
    worst: Mapping[str, float]
    unseen: tuple[float, float] | None = None

    @property
    def display(self) -> Name:
        """Display name of the sampler."""
        return display_name(self.sampler)

    @property
    def expected(self) -> tuple[float, float]:
        """Mean and largest regret on a dataset that played no part in the advice, if known."""
        return self.unseen or (self.regret[self.rule], self.worst[self.rule])

    @property
    def gain(self) -> str:
        """The speed-up over MD sampling; empty for MD sampling itself."""
        if self.sampler == REFERENCE:
            return ""
        slower = self.rule == "always" and self.speed_up < 1
        caveat = ", but the best single sampler over all datasets" if slower else ""
        where = f" on {self.sets} dataset{'s'[: self.sets != 1]} with these answers"
        return (
            f"{show(self.speed_up)} × as fast as MD sampling"
            f"{where if self.sets else ' on all datasets'}{caveat}"
        )

    @property
    def sentence(self) -> str:
        """The advice with its regret."""
        name = self.display.title
        others = {
            "map": "the map",
            "always": "the best single sampler",
            "md": "MD",
            "fedavg": "FedAvg",
        }
        rest = ", ".join(
            f"{words} {self.regret[rule]:.2f} ({self.worst[rule]:.2f})"
            for rule, words in others.items()
            if rule != self.rule
        )
        start = name if self.rule == "map" else f"{name}, for any sizes and labels"
        gain = f": {self.gain}" if self.gain else ""
        mean, worst = self.expected
        return (
            f"{start}{gain}. On a dataset that the advice was not learned from, it costs "
            f"{mean:.2f} times as much as the best sampler allowed, at worst {worst:.2f} times; "
            f"other rules: {rest}."
        )


def decisions(folder: Path, yes: frozenset[str]) -> tuple[Decision, ...]:
    """Look up the recommended sampler for each cost.

    Parameters
    ----------
    folder : Path
        Holds the cross matrix's artefacts.
    yes : frozenset of str
        Keys of :data:`ANSWERS` whose answer is yes.

    Returns
    -------
    tuple of Decision
        Empty if the map has not been drawn.
    """
    return tuple(
        decision for (_, answers), decision in decision_map(folder).items() if answers == yes
    )


def decision_map(folder: Path) -> dict[tuple[str, frozenset[str]], Decision]:
    """Read the whole map: decisions by cost and by the questions whose answer is yes."""
    path = folder / MAP / f"{MAP}.csv"
    if not path.is_file():
        return {}
    table = pd.read_csv(path)
    if not {"measure", "rule", *ANSWERS} <= set(table.columns):
        return {}
    rules = ("map", "always", "md", "fedavg")
    return {
        (measure, frozenset(key for key in ANSWERS if row[key])): Decision(
            measure,
            row["advice"],
            row["rule"],
            row["speed_up"],
            row.get("sets", 0),
            {rule: row[f"mean_{rule}"] for rule in rules},
            {rule: row[f"worst_{rule}"] for rule in rules},
            _numbers(row.get("mean_nested"), row.get("worst_nested")),
        )
        for measure in MEASURES
        for row in table[table["measure"] == measure].to_dict("records")
    }


def _numbers(mean: float | None, worst: float | None) -> tuple[float, float] | None:
    if mean is None or worst is None or math.isnan(mean):
        return None
    return mean, worst


def lines(folder: Path, yes: frozenset[str]) -> Iterator[str]:
    """Write the advice for a terminal."""
    named = ", ".join(words for key, words in ANSWERS.items() if key in yes) or "nothing special"
    advice = decisions(folder, yes)
    if yes and not advice:
        raise InputError(f"{folder / MAP}: missing; run 'snakemake --cores 2 {PAPER}'")
    if advice:
        yield f"Advice ({named}):"
    for decision in advice:
        yield f"  {decision.measure}: {decision.sentence}"
