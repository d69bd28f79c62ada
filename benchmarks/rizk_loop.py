"""Algorithm 1 of rizk2022importance as plain loops: over iterations, agents and epochs.

The reference for speed (`benchmarks/regression.py`) and correctness (`tests/learning/training`).
It follows the paper line by line, runs one repetition at a time, and shares no code with the
package.  Random numbers are an argument, so that both can use the same.

References
----------
Rizk, Vlaski, Sayed: Federated Learning under Importance Sampling. IEEE TSP 2022.
"""

import numpy as np


def linear_gradients(w, x, y, rho):
    """∇Q(w; x_n) of |d − uᵀw|² + ρ‖w‖² for each sample, equation (55)."""
    return 2 * (x @ w - y)[:, None] * x + 2 * rho * w


def logistic_gradients(w, x, y, rho):
    """∇Q(w; x_n) of ln(1 + exp(−y xᵀw)) + ρ‖w‖² for each sample."""
    return -(y / (1 + np.exp(y * (x @ w))))[:, None] * x + 2 * rho * w


GRADIENTS = {"linear": linear_gradients, "logistic": logistic_gradients}


def fedavg(gradients, rho, agents, E, B, mu, numbers, rounds):
    """FedAvg, equation (6): uniform draws, of agents without and of samples with replacement.

    Parameters
    ----------
    agents : list of (x, y)
    numbers : callable
        ``numbers(i, k)``: uniform variates of iteration i, for choosing agents if k is None
        (a vector of L) and else for agent k's batches (E_k rows of B_k).

    Returns
    -------
    list of w_0, w_1, …
    """
    K = len(agents)
    w = [np.zeros(agents[0][0].shape[1])]
    for i in range(rounds):
        remaining = list(range(K))
        active = []
        for j, u in enumerate(numbers(i, None)):  # Fisher and Yates
            position = j + int(u * (K - j))
            remaining[j], remaining[position] = remaining[position], remaining[j]
            active.append(remaining[j])
        local = []
        for k in active:
            x, y = agents[k]
            u = numbers(i, k)
            w_k = w[-1]
            for e in range(E[k]):
                batch = (u[e, : B[k]] * len(y)).astype(int)
                g = gradients(w_k, x[batch], y[batch], rho).mean(axis=0)
                w_k = w_k - mu / E[k] * g
            local.append(w_k)
        w.append(np.mean(local, axis=0))
    return w


def isfedavg(gradients, rho, agents, E, B, mu, L, rule, optimum, numbers, rounds):
    """ISFedAvg, Algorithm 1.

    Parameters
    ----------
    rule : {"optimal", "approximate", "tracked"}
        How the probabilities are obtained.
    optimum : (p, p_data, sigma2)
        Result of :func:`probabilities_at` at the minimiser w^o.  With None for `sigma2`, equation
        (50) takes it at w_{i−1} and equation (52) estimates it from the batches.
    numbers : callable
        ``numbers(i, k)``: the variate d of iteration i for choosing agents if k is None, and else
        one for each of agent k's batches.

    Returns
    -------
    list of w_0, w_1, …
    """
    K = len(agents)
    p = np.full(K, 1 / K)
    p_data = [np.full(len(y), 1 / len(y)) for _, y in agents]
    p_best, p_data_best, sigma2 = optimum
    if rule == "optimal":
        p, p_data = p_best, p_data_best
    w = [np.zeros(agents[0][0].shape[1])]
    for i in range(rounds):
        if rule == "approximate":
            p, p_data, _ = probabilities_at(w[-1], gradients, rho, agents, E, B, sigma2)
        inclusion, active = hartley_rao(L * p, numbers(i, None))
        local, scores = [], []
        for k in active:
            x, y = agents[k]
            N_k = len(y)
            d = numbers(i, k)
            w_k = w[-1]
            estimate, squares = 0, 0
            for e in range(E[k]):
                inclusion_k, batch = hartley_rao(B[k] * p_data[k], d[e])
                weight = 1 / (N_k * inclusion_k[batch])  # 1 / (B_k N_k p_b)
                if rule == "tracked":
                    g = gradients(w[-1], x[batch], y[batch], rho)
                    norms = np.linalg.norm(g, axis=1)
                    estimate = estimate + weight @ g / E[k]  # equation (7)
                    squares = squares + np.sum((weight * norms) ** 2)
                    held = p_data[k][batch].sum()
                    p_data[k][batch] = norms / norms.sum() * held  # equation (53)
                g = weight @ gradients(w_k, x[batch], y[batch], rho)
                w_k = w_k - mu / (E[k] * K * (inclusion[k] / L)) * g  # equation (8)
            local.append(w_k)
            if rule == "tracked":
                if sigma2 is None:
                    # (23) has (1/N²) Σ_n ‖∇Q_n‖²/p_n, here its estimate from all E_k batches
                    sigma2_k = 6 / (E[k] * B[k]) * B[k] * squares / E[k]
                else:
                    sigma2_k = sigma2[k]
                scores.append(score(sigma2_k, estimate, E[k], B[k]))
        w.append(np.mean(local, axis=0))  # equation (9)
        if rule == "tracked":
            p[active] = np.array(scores) / np.sum(scores) * p[active].sum()  # equation (52)
    return w


def probabilities_at(w, gradients, rho, agents, E, B, sigma2=None):
    """Agents' and data probabilities, and σ²_{s,k}: (48), (44), (23) at w^o; (50), (49) elsewhere.

    Without `sigma2`, σ²_{s,k} is computed at `w`.
    """
    scores, p_data, here = [], [], []
    for k, (x, y) in enumerate(agents):
        g = gradients(w, x, y, rho)
        norms = np.linalg.norm(g, axis=1)
        p_data.append(norms / norms.sum())
        # Equation (23) with p_n = ‖∇Q_n‖ / Σ_m ‖∇Q_m‖: the sum is the square of the mean norm.
        here.append(6 / (E[k] * B[k]) * norms.mean() ** 2)
        sigma2_k = here[k] if sigma2 is None else sigma2[k]
        scores.append(score(sigma2_k, g.mean(axis=0), E[k], B[k]))
    return np.array(scores) / np.sum(scores), p_data, here


def score(sigma2, gradient, E_k, B_k):
    """√(σ²_{s,k} + α_k ‖∇P_k‖²), Lemma 7."""
    return np.sqrt(sigma2 + (3 + 6 / (E_k * B_k)) * gradient @ gradient)


def hartley_rao(inclusion, d):
    """Inclusion probabilities capped at one, and the units drawn: end of section IV-C."""
    size = round(inclusion.sum())
    while inclusion.max() > 1:
        full = inclusion >= 1
        inclusion = np.where(full, 1, inclusion)
        inclusion[~full] *= (size - full.sum()) / inclusion[~full].sum()
    totals = np.cumsum(inclusion)
    return inclusion, np.searchsorted(totals, d + np.arange(size), side="right")
