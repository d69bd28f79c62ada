"""The gain of optimal sampling over uniform sampling: less variance, hence larger step sizes.

The variance ratio α^k and the improvement factor γ^k are exact functions of one round's weighted
update norms u_i = w_i ‖U_i‖ and of the probabilities to report.

References
----------
Chen, Horváth, Richtárik: Optimal Client Sampling for Federated Learning. TMLR 2022
(arXiv 2010.13723).
"""

import numpy as np

from fedsampling.base.arrays import Array


def sampling_variance(norms: Array, q: Array) -> Array:
    """Return E‖G^k − Σ_i w_i U_i‖² of independent sampling, shape (..., n) → (...).

    Parameters
    ----------
    norms : float array, shape (..., n)
        u_i = w_i ‖U_i‖.
    q : float array, shape (..., n)
        q_i, the probability that client i reports.

    Returns
    -------
    float array, shape (...)
        Infinite if a client with a positive norm never reports, since its update is lost.

    References
    ----------
    Eq. (5): (1 − q_i)/q_i u_i² summed over clients.
    """
    lost = (norms > 0) & (q == 0)
    odds = np.divide(1 - q, q, out=np.zeros(np.broadcast(norms, q).shape), where=q > 0)
    total: Array = np.where(lost, np.inf, odds * norms**2).sum(-1)
    return total


def variance_ratio(norms: Array, q: Array, m: int) -> Array:
    """Return α^k: the variance of sampling with `q`, divided by that of uniform sampling.

    Parameters
    ----------
    norms, q : float arrays, shape (..., n)
    m : int
        Expected number of reports of both; uniform sampling has q_i = m/n.

    Returns
    -------
    float array, shape (...)
        In [0, 1] for q of (6).  If uniform sampling has no variance (m = n, or all updates are
        zero), the ratio is set to 0, as for full participation.

    Notes
    -----
    The preprint calls α^k itself the improvement factor; here this name is reserved for γ^k.

    References
    ----------
    Eq. (12).
    """
    n = norms.shape[-1]
    uniform = sampling_variance(norms, np.full(n, m / n))
    variance = sampling_variance(norms, q)
    return np.divide(variance, uniform, out=np.zeros(variance.shape), where=uniform > 0)


def improvement_factor(alpha: Array | float, n: int, m: int) -> Array | float:
    """Return γ^k = m / (α^k (n − m) + m), in [m/n, 1] for α^k in [0, 1].

    The largest step size of DSGD and FedAvg grows with γ^k: 1 corresponds to full participation,
    m/n to uniform sampling.

    References
    ----------
    Theorems 2 and 3.
    """
    return m / (alpha * (n - m) + m)
