"""Training runs as experiments ask for them: what their tables hold."""

from pathlib import Path

import numpy as np
import pytest
from tests.helpers.small_runs import NOWHERE, settings, tables
from tests.helpers.small_runs import column as curve

from fedsampling.experiments.simulations import federated
from fedsampling.learning.training.convex import MODELS
from fedsampling.runs.rows import digest

SAMPLERS = {
    "fedavg": {"name": "uniform", "m": 3},
    "optimal": {"name": "isfedavg", "m": 3, "probabilities": "optimal"},
    "tracked": {"name": "isfedavg", "m": 3, "probabilities": "tracked"},
}


@pytest.mark.parametrize(
    ("sampler", "problem_seed"), [*((name, 0) for name in SAMPLERS), ("fedavg", 1)]
)
def test_msd_begins_at_the_squared_norm_of_the_problems_minimiser(sampler, problem_seed):
    changes = {"sampler": SAMPLERS[sampler], "problem_seed": problem_seed}
    run = settings("federated", **changes)
    problem = run.dataset.load("generated", run.problem_seed, Path("unused"), None)
    w_o = MODELS["linear"](0.001).minimiser(problem)
    for table in tables("federated", seeds=(0, 1), **changes):
        msd = curve(table, "msd")
        assert list(msd.index) == [0, 2, 4, 6]
        assert msd[0] == pytest.approx(w_o @ w_o)
        assert msd[6] < msd[0]


def test_distances_are_those_of_the_definitions():
    run = settings("federated", sampler=SAMPLERS["tracked"])
    problem = run.dataset.load("generated", run.problem_seed, Path("unused"), None)
    learner = federated.build_learner(run.model, run.work, problem, run.problem_seed)
    optimum = federated.at_optimum(learner.model, problem)
    sampler = federated.build_sampler(run.sampler, learner, 1, optimum)
    result = federated.distances(sampler, learner, optimum)(np.zeros((1, 2)), sampler)
    best = optimum["sample_norms"] / optimum["sample_norms"].sum(1, keepdims=True)
    by_agent = [np.sqrt(((row - 1 / 12) ** 2).sum()) for row in best]
    assert result["data_distance"][0] == pytest.approx(sum(by_agent) / 8)
    optimal = tables("federated", sampler=SAMPLERS["optimal"])[0]
    of_optimal = curve(optimal, "agent_distance")
    assert len(of_optimal)
    assert (of_optimal == 0).all()
    assert curve(tables("federated", sampler=SAMPLERS["tracked"])[0], "agent_distance")[0] > 0


def test_classification_measures_the_test_set_independently_of_the_stack():
    data = {"name": "ijcnn1", "agents": 100, "smallest": 79, "largest": 688, "alpha": 0.5}
    work = {"step": 0.25, "epochs": [1, 1], "batch": [1, 1]}
    changes = {"dataset": data, "model": {"name": "logistic", "rho": 0.0001}, "work": work}
    run = settings("federated", sampler=SAMPLERS["optimal"], **changes)
    result = run.simulate("embedded", (0, 1, 2), NOWHERE).tables
    (single,) = run.simulate("embedded", (1,), NOWHERE).tables
    assert digest(single) == digest(result[1])
    problem = run.dataset.load("embedded", run.problem_seed, Path("unused"), None)
    assert curve(result[0], "error")[0] == 1  # a margin of zero is wrong for either label
    assert curve(result[0], "loss")[0] == pytest.approx(np.log(2))
    w = np.random.default_rng(0).normal(size=problem.x.shape[1])
    measured = federated.test_measures(w[None], problem)
    wrong = [y * (x @ w) <= 0 for x, y in zip(problem.x_test, problem.y_test, strict=True)]
    assert measured["error"][0] == pytest.approx(np.mean(wrong))
    rates = [np.mean(np.array(wrong)[problem.y_test == label]) for label in (-1, 1)]
    assert measured["balanced_error"][0] == pytest.approx(np.mean(rates))
