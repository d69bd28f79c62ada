"""A stand-in for Shakespeare: roles that babble, each with letter statistics of its own.

It shows that the machine works; nothing about a paper is judged on it.
"""

import numpy as np
from numpy.typing import NDArray

ROLES, PLAYS = 100, 5
SHORTEST, LONGEST = 900, 6_000  # characters of a role: all have tests at either of LEAF's splits

_SYMBOLS = " abcdefghijklmnopqrstuvwxyz,.;'?!"
_COMMON, _PLAY, _ROLE = 1.5, 0.3, 0.5  # standard deviations of the logits' parts


def play_like(rng: np.random.Generator) -> dict[tuple[str, str], str]:
    """Generate what 100 roles of 5 plays say, by (play, role).

    Each role is a Markov chain over letters, marks and spaces: the logit of the next symbol is a
    common part for each pair (what all roles share and a model can learn), and a preference of
    the play and one of the role (what makes clients differ).  Lengths are log-normal, 900 to
    6,000 characters.

    Parameters
    ----------
    rng : numpy.random.Generator
    """
    V = len(_SYMBOLS)
    play = np.arange(ROLES) % PLAYS
    logit = (
        _COMMON * rng.standard_normal((V, V))
        + _PLAY * rng.standard_normal((PLAYS, 1, V))[play]
        + _ROLE * rng.standard_normal((ROLES, 1, V))
    )
    logit[:, :, 0] += 2.0  # words of a handful of letters
    logit[:, :, _SYMBOLS.index("z") + 1 :] -= 2.0  # marks are rare
    logit[:, 0, 0] = -np.inf  # no run of spaces
    lengths = np.exp(rng.normal(np.log(1_500), 0.6, ROLES)).clip(SHORTEST, LONGEST).astype(int)
    codes = _walk(logit, int(lengths.max()), rng)
    symbols = np.frombuffer(_SYMBOLS.encode(), np.uint8)
    return {
        (f"PLAY {play[k] + 1}", f"ROLE {k + 1:03d}"): bytes(symbols[codes[k, :length]]).decode()
        for k, length in enumerate(lengths)
    }


def _walk(logit: NDArray[np.float64], length: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Let every chain take its steps, all chains at once; shape (chains, length)."""
    weight = np.exp(logit)
    reached = np.cumsum(weight / weight.sum(-1, keepdims=True), axis=-1)
    reached[..., -1] = 1.0
    chains = np.arange(len(logit))
    codes = np.zeros((len(logit), length), np.int64)
    u = rng.random((length, len(logit), 1))
    for t in range(1, length):
        codes[:, t] = (u[t] >= reached[chains, codes[:, t - 1]]).sum(-1)
    return codes
