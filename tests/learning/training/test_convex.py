"""Convex training agrees with plain loops, which share no code with the package."""

import numpy as np
import pytest
from benchmarks import rizk_loop as loop

from fedsampling.base.streams import uniforms

ROUNDS = 8


def numbers(variant, seed, learner):
    """Look up the package's random numbers, one key at a time, as the loops ask for them."""
    E, B = int(learner.E.max()), int(learner.B.max())

    def look_up(i, k):
        if variant == "fedavg" and k is None:
            return uniforms(seed, "clients", i, n=3)
        if variant == "fedavg":
            return uniforms(seed, "batches", i, k, n=E * B).reshape(E, B)
        return (
            uniforms(seed, "agents", i, n=1)[0]
            if k is None
            else uniforms(seed, "batches", i, k, n=E)
        )

    return look_up


def test_iterates_agree_with_algorithm_1_in_plain_loops(problem, variant):
    seeds = [5, 0, 12]
    problem.train(variant, seeds, ROUNDS)
    result = np.stack(problem.iterates, axis=1)
    data, model, learner = problem.data, problem.model, problem.learner
    cuts = data.start[1:-1]
    agents = list(zip(np.split(data.x, cuts), np.split(data.y, cuts), strict=True))
    common = loop.GRADIENTS[model.name], model.rho, agents, learner.E, learner.B, learner.local.step
    p, p_data, sigma2 = loop.probabilities_at(problem.optimum["w"], *common[:-1])
    rule, _, estimated = variant.partition("-")
    for run, seed in enumerate(seeds):
        random = numbers(variant, seed, learner)
        if variant == "fedavg":
            expected = loop.fedavg(*common, random, ROUNDS)
        else:
            best = p, p_data, None if estimated else sigma2
            expected = loop.isfedavg(*common, 3, rule, best, random, ROUNDS)
        np.testing.assert_allclose(result[run], expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("correct", [True, False])
def test_only_the_corrected_step_follows_the_aggregate_gradient(linear, correct):
    """With all samples in every batch and a vanishing step, a round is one gradient step.

    Without the division by E_k each agent's gradient counts E_k times, equation (6).
    """
    problem = linear(step=1e-7, correct=correct)
    data, E = problem.data, problem.learner.E
    rows = data.start[:-1]  # one sample per agent, so that the batch is no matter of chance
    for values in (data.x, data.y):
        values.flags.writeable = True
        values[:] = np.repeat(values[rows], data.n_samples, axis=0)
    problem.train("fedavg", [0], 1, m=data.n_clients)
    move = problem.iterates[1][0] / -problem.learner.local.step
    gradients = -2 * data.y[rows, None] * data.x[rows]
    expected = (gradients if correct else E[:, None] * gradients).mean(0)
    np.testing.assert_allclose(move, expected, rtol=1e-5)
