"""Who is first in a row of Tables 1 and 2 of Harshvardhan et al. 2025, and by how much."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fedsampling.evidence.rules import TIE
from fedsampling.evidence.statistics import Estimate, compare, holm, is_within, ratio
from fedsampling.evidence.verdicts import Part

from .printed_tables import PROPOSED, SEVEN
from .time_to_target import NARROW, at_least


@dataclass(frozen=True)
class Ranking:
    """The best of the samplers that may be first in a row of Tables 1 and 2, and its leads."""

    # "holds" if the best sampler that may be first is faster than every other sampler, "fails" if
    # another sampler is faster than each that may be first, "tie" if the best of both kinds are
    # equal, otherwise "open"
    is_first: Part
    # whether the better of the proposed samplers is faster than random selection
    beats_random: Part
    # random selection's seconds over each proposed sampler's, with Holm-corrected intervals
    over_proposed: Mapping[str, Estimate]
    # the fastest sampler that may be first and reaches the target in every run, if any
    best: str | None
    # random selection's seconds over the best sampler's; a lower bound if random selection misses
    # the target
    gain: Estimate | None
    # the sampler whose leads decide: another sampler if `is_first` fails, otherwise the best
    leader: str | None
    # the seconds of the samplers of the other kind over the leader's, with Holm-corrected intervals
    leads: Mapping[str, Estimate]
    # the seconds of the fastest other sampler over the best sampler's, with a 90 % interval
    tie: Estimate | None


def ranking(table: pd.DataFrame, candidates: Collection[str]) -> Ranking:
    """Compare the samplers that may be first with the paper's others, paired by seed.

    Runs that miss the target count with their seconds at the end, a lower bound.  They are used
    only for samplers that are being beaten, where a lower bound cannot favour a verdict.

    `table`: one case of :func:`.time_to_target.runtimes`. `candidates`: samplers that may be first.
    """
    seconds = at_least(table)
    means = table.groupby("sampler")["counted"].mean()  # infinite if a run misses the target
    may_be_first = [name for name in SEVEN if name in seconds and name in candidates]
    rivals = [name for name in SEVEN if name in seconds and name not in candidates]
    best, rival = _fastest(means, may_be_first), _fastest(means, rivals)
    leads_of_best = _leads(seconds, best, rivals) if best else {}
    gain = None
    if best and "random" in seconds and best != "random":
        gain = compare(seconds["random"], seconds[best], ratio)
    leads_of_rival = _leads(seconds, rival, may_be_first) if rival else {}
    tie = compare(seconds[rival], seconds[best], ratio, NARROW) if best and rival else None
    is_first: Part = "open"
    leader, leads = best, leads_of_best
    if _all_ahead(leads_of_best):
        is_first = "holds"
    elif _all_ahead(leads_of_rival):
        is_first, leader, leads = "fails", rival, leads_of_rival
    elif tie and is_within(tie, 1, TIE):
        is_first = "tie"
    proposed = [name for name in PROPOSED if name in seconds and "random" in seconds]
    over_proposed = holm({name: (seconds["random"], seconds[name]) for name in proposed}, ratio)
    beats_random = _beats_random(seconds, means, over_proposed)
    return Ranking(is_first, beats_random, over_proposed, best, gain, leader, leads, tie)


def _all_ahead(leads: Mapping[str, Estimate]) -> bool:
    return len(leads) > 0 and all(lead.low > 1 for lead in leads.values())


def _beats_random(
    seconds: pd.DataFrame, means: pd.Series, over_proposed: Mapping[str, Estimate]
) -> Part:
    """Judge whether a proposed sampler is faster than random selection.

    A sampler that misses the target in some run cannot be faster, and is slower if even its bound
    is.
    """
    reaching = [name for name in over_proposed if np.isfinite(means[name])]
    if any(over_proposed[name].low > 1 for name in reaching):
        return "holds"
    if not over_proposed or not np.isfinite(means["random"]):
        return "open"  # a bound of random selection's seconds cannot show that it is faster
    if all(lead.high < 1 for lead in over_proposed.values()):
        return "fails"
    best = _fastest(means, reaching)
    if best and is_within(compare(seconds["random"], seconds[best], ratio, NARROW), 1, TIE):
        return "tie"
    return "open"


def _fastest(means: pd.Series, names: Collection[str]) -> str | None:
    """Return the sampler with the smallest mean among those that always reach the target."""
    reaching = [name for name in names if np.isfinite(means[name])]
    return min(reaching, key=lambda name: float(means[name]), default=None)


def _leads(seconds: pd.DataFrame, first: str, names: Collection[str]) -> dict[str, Estimate]:
    """Return the seconds of `names` over those of `first`, with Holm-corrected intervals."""
    return holm({name: (seconds[name], seconds[first]) for name in names}, ratio)
