"""Sampling that needs nothing but the importances: full, MD, Uniform, Poisson and Binomial.

The draws come first, then the aggregation weights ω that each implies.  Every function takes
`size`, the shape of independent repetitions, as NumPy's own generators do: ``size=()`` is one
round, ``size=(1000,)`` a thousand of them on a leading axis.  :data:`WEIGHTS` has every scheme as
``weights(p, m, rng, size) -> ω`` with E[ω_i] = p_i; p and m must have passed
:func:`fedsampling.theory.weights.check_population`.

References
----------
Fraboni, Vidal, Kameni, Lorenzi: A General Theory for Client Sampling in Federated Learning.
IJCAI-FL workshop 2022 (arXiv 2107.12211), section 2.2 and Appendix A.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fedsampling.theory.weights import check_poisson

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Size = tuple[int, ...]


def md(p: Array, m: int, rng: np.random.Generator, size: Size = ()) -> Ints:
    """Draw m clients independently, client i with probability p_i each time.

    Parameters
    ----------
    p : float array, shape (n,)
    m : int
    rng : numpy.random.Generator
    size : tuple of int

    Returns
    -------
    int array, shape (*size, m)
        The paper's l_1, …, l_m; a client may occur more than once.

    References
    ----------
    Eq. (5).
    """
    return invert(p, rng.random((*size, m)))


def uniform(n: int, m: int, rng: np.random.Generator, size: Size = ()) -> Ints:
    """Draw m of n clients without replacement, every subset alike.

    Returns
    -------
    int array, shape (*size, m)
        Distinct clients, in no particular order.

    References
    ----------
    Eq. (6).
    """
    # The m smallest of n uniform variates are a uniform subset: one call for any `size`.
    return np.argpartition(rng.random((*size, n)), m - 1, axis=-1)[..., :m].astype(np.int64)


def poisson(p: Array, m: int, rng: np.random.Generator, size: Size = ()) -> Bools:
    """Let each client take part independently, client i with probability m p_i.

    Returns
    -------
    bool array, shape (*size, n)
        Who takes part; how many do is random, m on average.

    Raises
    ------
    InputError
        If some m p_i exceeds one.

    References
    ----------
    Eq. (44).
    """
    inclusion = check_poisson(p, m)
    return rng.random((*size, p.size)) < inclusion


def binomial(n: int, m: int, rng: np.random.Generator, size: Size = ()) -> Bools:
    """Let each of n clients take part independently with probability m/n.

    Returns
    -------
    bool array, shape (*size, n)

    References
    ----------
    Eq. (49).
    """
    return rng.random((*size, n)) < m / n


def multiplicity(clients: Ints, n: int) -> Ints:
    """Count how often each of n clients was drawn: shape (*size, m) → (*size, n)."""
    *size, m = clients.shape
    rounds = clients.reshape(-1, m)
    cells = rounds + n * np.arange(len(rounds))[:, None]
    return np.bincount(cells.ravel(), minlength=n * len(rounds)).reshape(*size, n)


def invert(probability: Array, u: Array) -> Ints:
    """Turn uniform variates into clients by inverting the distribution function.

    Parameters
    ----------
    probability : float array, shape (n,)
        Sums to one up to rounding.
    u : float array of any shape
        Uniform on [0, 1).

    Returns
    -------
    int array, shape of `u`
        Never a client of probability zero.
    """
    cumulative = np.cumsum(probability)
    # Divided by itself the last value is exactly one, so that no variate falls off the end.
    return np.searchsorted(cumulative / cumulative[-1], u, side="right").astype(np.int64)


def full_weights(p: Array, m: int, rng: np.random.Generator, size: Size = ()) -> Array:
    """Give ω_i = p_i, shape (*size, n): everyone takes part (Appendix A.2)."""
    return np.broadcast_to(p, (*size, p.size))


def md_weights(p: Array, m: int, rng: np.random.Generator, size: Size = ()) -> Array:
    """Give ω_i = (1/m) Σ_k 𝕀(l_k = i), shape (*size, n), eq. (5)."""
    return multiplicity(md(p, m, rng, size), p.size) / m


def uniform_weights(p: Array, m: int, rng: np.random.Generator, size: Size = ()) -> Array:
    """Give ω_i = 𝕀(i ∈ S) (n/m) p_i, shape (*size, n), eq. (6)."""
    n = p.size
    return multiplicity(uniform(n, m, rng, size), n) * (n / m * p)


def poisson_weights(p: Array, m: int, rng: np.random.Generator, size: Size = ()) -> Array:
    """Give ω_i = 𝔹(m p_i) / m, shape (*size, n), eq. (44)."""
    return poisson(p, m, rng, size) / m


def binomial_weights(p: Array, m: int, rng: np.random.Generator, size: Size = ()) -> Array:
    """Give ω_i = (n/m) 𝔹(m/n) p_i, shape (*size, n), eq. (49)."""
    n = p.size
    return binomial(n, m, rng, size) * (n / m * p)


WEIGHTS: dict[str, Callable[[Array, int, np.random.Generator, Size], Array]] = {
    "full": full_weights,
    "md": md_weights,
    "uniform": uniform_weights,
    "poisson": poisson_weights,
    "binomial": binomial_weights,
}
