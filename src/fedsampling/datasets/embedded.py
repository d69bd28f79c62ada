"""Stand-ins for real data: the same shapes and the same kind of difficulty, with no download.

They show that the machine works; nothing about a paper is judged on them.
"""

import numpy as np
from numpy.typing import NDArray

TRAIN_ROWS, TEST_ROWS = 3_500, 2_000
POSITIVE = 0.096  # share of positive labels, as in ijcnn1

_CYCLE = 10  # samples per revolution: as many indicators, and the length of the signal's window
_SLOW = 50  # samples between two independent values of an operating condition


def ijcnn1_like(
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Generate a smaller problem of the build of ijcnn1.

    Like the real file it is one time series: attributes 1 to 10 indicate where in its cycle the
    engine is (exactly one is 1), 11 and 12 are slowly moving, correlated operating conditions,
    13 to 22 the last ten values of a heavy-tailed signal that repeats with the cycle and grows
    with the load.  Labels are Bernoulli with the logit of a fixed linear rule over window and
    conditions, its intercept chosen so that the probabilities average 9.6 %: learnable by the
    logistic loss, not separable.

    Parameters
    ----------
    rng : numpy.random.Generator

    Returns
    -------
    x_train : float64 array, shape (3500, 22)
    y_train : float64 array, shape (3500,)
        -1 or +1.
    x_test : float64 array, shape (2000, 22)
    y_test : float64 array, shape (2000,)
    """
    T = TRAIN_ROWS + TEST_ROWS
    phase = np.eye(_CYCLE)[np.arange(T) % _CYCLE]
    load, speed = _slow(T, rng), _slow(T, rng)
    conditions = np.stack([0.22 * load + 0.32 * speed, 0.24 + 0.09 * load], axis=1)
    signal = np.tile(rng.standard_normal(_CYCLE), T // _CYCLE + 2)[: T + _CYCLE - 1]
    signal = 0.12 * signal + 0.06 * rng.laplace(size=len(signal))
    window = np.lib.stride_tricks.sliding_window_view(signal, _CYCLE)
    window = window * np.exp(0.5 * load)[:, None]
    x = np.concatenate([phase, conditions, window], axis=1)
    # Signs and proportions follow a logistic fit to the real file, where the middle of the window
    # carries most; the scale is such that a linear classifier errs about as often (9 %).
    rule = np.array([0.0, -2.7, 1.7, 1.1, 0.5, -1.0, -4.0, -5.3, -3.3, 1.0, 1.7, 2.2])
    score = x[:, _CYCLE:] @ rule
    y = np.where(rng.random(T) < _sigmoid(score + _intercept(score, POSITIVE)), 1.0, -1.0)
    return x[:TRAIN_ROWS], y[:TRAIN_ROWS], x[TRAIN_ROWS:], y[TRAIN_ROWS:]


def _slow(T: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw standard normal values every few samples, straight lines between; shape (T,)."""
    knots = np.arange(0, T + _SLOW, _SLOW)
    return np.interp(np.arange(T), knots, rng.standard_normal(len(knots)))


def _intercept(score: NDArray[np.float64], share: float) -> float:
    """Solve mean(sigmoid(score + intercept)) = share by bisection."""
    low, high = -50.0 - score.max(), 50.0 - score.min()
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _sigmoid(score + middle).mean() < share else (low, middle)
    return float((low + high) / 2)


def _sigmoid(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logistic function, without overflow."""
    return (1 + np.tanh(z / 2)) / 2
