"""Probabilities tracked from participants' reports, the basis of two samplers.

The probability of a round's participants is redistributed in proportion to their scores (Rizk et
al. 2022, equation (52)), starting from equal probabilities.  The score is the norm of a client's
gradient (:mod:`fedsampling.samplers.isfedavg_agents`), or its distance from the participants' mean
gradient (:mod:`fedsampling.samplers.delta`).

References
----------
Rizk, Vlaski, Sayed: Federated Learning under Importance Sampling. IEEE TSP 2022, section IV.
"""

from dataclasses import dataclass

import numpy as np

from fedsampling.base.arrays import Array, Ints
from fedsampling.samplers.importance import reassign
from fedsampling.samplers.protocol.slots import Setup

MIN_RELATIVE_SCORE = 1e-2  # of the mean; a score of zero would exclude a client for good


def redistributed(probability: Array, scores: Array) -> Array:
    """Redistribute the participants' probability in proportion to their scores.

    Parameters
    ----------
    probability : float array, shape (participants,)
        Current probabilities.
    scores : float array, shape (participants,)
        If all scores are zero or one is not finite, the probabilities stay as they are.

    Returns
    -------
    float array, shape (participants,)
        Has the same sum as `probability`.

    Notes
    -----
    Scores below a hundredth of their mean are raised to it.  Neither paper specifies a floor.

    References
    ----------
    Rizk et al. 2022, equation (52), :func:`fedsampling.samplers.importance.reassign`.
    """
    if not np.isfinite(scores).all():
        return probability
    return reassign(probability, np.maximum(scores, MIN_RELATIVE_SCORE * scores.mean()))


@dataclass
class TrackedState:
    """The tracked probabilities, and those of the round, both of shape (runs, n)."""

    tracked: Array
    round: Array

    @classmethod
    def equal(cls, setup: Setup) -> "TrackedState":
        """Start from equal probabilities."""
        n = len(setup.p)
        return cls(np.full((setup.runs, n), 1 / n), np.zeros((setup.runs, n)))

    def track(self, run: int, clients: Ints, scores: Array) -> None:
        """Update the probabilities of a run's participants, each listed once."""
        self.tracked[run, clients] = redistributed(self.tracked[run, clients], scores)
