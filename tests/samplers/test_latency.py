"""The two runtime objectives: best sets, best distributions, and the paper's statements."""

from itertools import chain, combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from fedsampling.base.errors import InputError
from fedsampling.samplers import delayhet, latency
from fedsampling.samplers.delayhet import DelayHetSampling, DelayHetSubmodular
from fedsampling.samplers.latency import (
    best_distribution,
    best_subset,
    bias,
    distribution_objective,
    shares,
    subset_objective,
)
from fedsampling.samplers.minimum_norm import minimum_norm_point
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.simplex import expected_delay, expected_delay_gradient
from fedsampling.theory.heterogeneity import bounded

from .rounds import equal, play


def population(m, seed, share=0.9, k=None, tail=False):
    """Distances of random points, within the assumptions, and delays."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((m, 2))
    B = np.linalg.norm(points[:, None] - points, axis=2)
    delays = 30 + rng.lognormal(4, 2, m) if tail else rng.uniform(15, 100, m)
    return bounded(B, share, k), delays


def symmetric(values):
    upper = np.triu(values, 1)
    return upper + upper.T


def subsets(m):
    return chain.from_iterable(combinations(range(m), size) for size in range(1, m + 1))


@given(st.integers(1, 9), st.integers(0, 10**6), st.booleans(), st.floats(0.1, 0.99))
@settings(max_examples=40)
def test_scan_of_prefixes_finds_the_best_of_all_sets(m, seed, tail, share):
    B, delays = population(m, seed, share, tail=tail)
    delays = np.round(delays, -1)  # ties too
    chosen, alpha = best_subset(B, delays)
    minimum = min(subset_objective(B, delays, np.array(S)) for S in subsets(m))
    assert subset_objective(B, delays, chosen) == pytest.approx(minimum, rel=1e-12)
    assert alpha.sum() == pytest.approx(1)


def test_scan_finds_the_best_of_4095_sets_without_assumption_3():
    rng = np.random.default_rng(5)
    B, delays = symmetric(rng.uniform(0.5, 3, (12, 12))), rng.uniform(15, 100, 12)
    chosen, _ = best_subset(B, delays)
    minimum = min(subset_objective(B, delays, np.array(S)) for S in subsets(12))
    assert subset_objective(B, delays, chosen) == pytest.approx(minimum)
    with pytest.raises(InputError, match="Assumption 3"):
        best_subset(B, delays, "minnorm")


def test_shares_count_the_clients_that_a_member_represents():
    B = np.array([[0, 1, 3, 4], [1, 0, 2, 5], [3, 2, 0, 1], [4, 5, 1, 0]], float)
    np.testing.assert_array_equal(shares(B, np.array([1, 3])), [0.5, 0.5])
    np.testing.assert_array_equal(shares(B, np.array([0])), [1])
    # Client 2 is nearer to 3 than to 0 and 1: β_2 = 3.
    np.testing.assert_array_equal(shares(B, np.array([0, 1, 3])), [0.25, 0.25, 0.5])


@given(st.integers(1, 7), st.integers(0, 10**6))
@settings(max_examples=40)
def test_minimum_norm_point_minimises_submodular_functions(m, seed):
    rng = np.random.default_rng(seed)
    W, gain = symmetric(rng.uniform(0, 1, (m, m))), rng.normal(0, 2, m)

    def f(S):  # a cut and a modular part
        inside = np.isin(np.arange(m), S)
        return W[inside][:, ~inside].sum() + gain[inside].sum()

    x = minimum_norm_point(
        lambda order: np.array([f(order[:size]) for size in range(m + 1)]), np.arange(m)
    )
    minimum = min([0.0, *(f(np.array(S)) for S in subsets(m))])
    assert f(np.flatnonzero(x < -1e-9)) == pytest.approx(minimum, abs=1e-6)
    assert np.minimum(x, 0).sum() == pytest.approx(minimum, abs=1e-5)  # Edmonds' duality


def test_minnorm_depends_on_the_order_it_starts_from():
    gaps = {"delay": [], "chance": []}
    for seed in range(10):
        B, delays = population(30, seed)
        minimum = subset_objective(B, delays, best_subset(B, delays)[0])
        starts = {"delay": None, "chance": np.random.default_rng(seed).permutation(30)}
        for name, start in starts.items():
            result, _ = best_subset(B, delays, "minnorm", start)
            gaps[name].append(subset_objective(B, delays, result) / minimum - 1)
    assert np.mean(gaps["delay"]) < 0.01
    assert np.mean(gaps["chance"]) > 0.1


def test_three_clients_show_that_g_is_not_submodular():
    B, delays = 1 - np.eye(3), np.ones(3)
    g = [subset_objective(B, delays, np.arange(size)) for size in (1, 2, 3)]
    np.testing.assert_allclose(g, [9, 9 / 7, 1])
    assert g[1] - g[0] < g[2] - g[1]  # Remark 2 wants at least as much


@pytest.mark.parametrize("k", [1, 2, 4])
def test_expected_delay_is_the_mean_over_all_outcomes(k):
    delays, p = np.array([5.0, 1, 3, 3]), np.array([0.1, 0.4, 0.3, 0.2])
    outcomes = product(range(4), repeat=k)
    expected = sum(p[list(S)].prod() * delays[list(S)].max() for S in outcomes)
    assert expected_delay(delays, p, k) == pytest.approx(expected)
    numeric = approx_fprime(p, lambda q: expected_delay(delays, q, k), 1e-7)
    np.testing.assert_allclose(expected_delay_gradient(delays, p, k), numeric, rtol=1e-5)


@given(st.integers(2, 8), st.sampled_from([1, 2, 10]), st.integers(0, 10**6), st.booleans())
@settings(max_examples=40)
def test_no_distribution_is_better_than_one_client(m, k, seed, tail):
    B, delays = population(m, seed, 0.9, k, tail)
    vertex = best_distribution(B, delays, k, "vertex")
    minimum = distribution_objective(B, delays, vertex, k)
    assert sorted(vertex)[-2:] == [0, 1]
    mean = (B**2).mean(1)
    for p in np.random.default_rng(seed).dirichlet(np.full(m, 0.3), 20):
        bound = delays @ p / (1 - 2 * mean @ p)
        assert distribution_objective(B, delays, p, k) >= bound * (1 - 1e-12)
        assert bound >= minimum * (1 - 1e-12)
    assert subset_objective(B, delays, best_subset(B, delays)[0]) <= minimum * (1 + 1e-12)


def test_the_papers_solver_depends_on_start_and_iterations():
    B, delays = population(20, 0, 0.9, 1)
    minimum = distribution_objective(B, delays, best_distribution(B, delays, 1, "vertex"))
    short, long = (best_distribution(B, delays, iterations=size) for size in (5, 60))
    fast = best_distribution(B, delays, start=1 / delays / (1 / delays).sum(), iterations=5)
    values = [distribution_objective(B, delays, p) / minimum for p in (short, long, fast)]
    assert min(values) > 1.02
    assert np.abs(short - long).max() > 0.01
    assert np.abs(short - fast).max() > 0.01
    with_gradient = best_distribution(B, delays, iterations=5, jacobian="exact")
    np.testing.assert_allclose(with_gradient, short, atol=1e-4)
    np.testing.assert_allclose([short.sum(), long.sum()], 1)


@pytest.mark.parametrize(("k", "largest_ratio"), [(1, 1 + 1e-6), (10, np.inf)])
def test_descent_with_the_exact_gradient_reaches_the_minimum_for_one_draw(k, largest_ratio):
    """For several draws the objective has local minima, and rounding decides which one is met."""
    B, delays = population(50, 1, 0.9, k)
    uniform = best_distribution(B, delays, k, iterations=0)
    np.testing.assert_array_equal(uniform, np.full(50, 0.02))
    minimum = distribution_objective(B, delays, best_distribution(B, delays, k, "vertex"), k)
    descended = best_distribution(B, delays, k, "analytic")
    reached = distribution_objective(B, delays, descended, k)
    assert minimum * (1 - 1e-9) <= reached < largest_ratio * minimum
    assert reached < distribution_objective(B, delays, uniform, k)


B5, DELAYS5 = population(5, 0)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (best_distribution, {"B": 10 * B5}, "at the start"),
        (best_distribution, {"start": np.ones(4)}, "start"),
        (best_subset, {"B": B5[:3]}, "square"),
        (best_subset, {"delays": -DELAYS5}, "delays"),
        (best_subset, {"solver": "minnrom"}, "did you mean 'minnorm'"),
    ],
)
def test_invalid_arguments_are_rejected(function, arguments, message):
    with pytest.raises(InputError, match=message):
        function(**{"B": B5, "delays": DELAYS5, **arguments})


def test_represented_clients_are_determined_from_b_before_it_is_capped():
    """All B are beyond the bound: cut off, they would make one client the proxy of all."""
    B, delays = population(20, 3)
    B *= 1e5
    setup = equal(20, delays=delays)
    sampler = prepared(DelayHetSubmodular(solver="exact", share=0.99, rule="clip"), setup)
    slots, weights = play(sampler, setup, observed={"delays": delays, "heterogeneity": B[None]})
    assert 1 < len(slots.client) < 20
    np.testing.assert_allclose(weights, shares(B, slots.client))
    cut_off = shares(bounded(B, 0.99, rule="clip"), slots.client)
    assert cut_off[0] == pytest.approx(1 - (len(slots.client) - 1) / 20)  # what it must not be


def test_bound_at_the_start_scales_b_no_further_than_the_solver_needs(monkeypatch):
    B, delays = population(30, 0)
    B[0, 1] = B[1, 0] = 20 * B.max()  # one pair apart
    uniform = np.full(30, 1 / 30)
    scaled = []
    monkeypatch.setattr(
        delayhet, "best_distribution", lambda B, *_, **__: scaled.append(B) or uniform
    )
    for bound in ({}, {"bound": "start"}):
        DelayHetSampling(m=5, share=0.99, **bound).solve(B, delays)
    everywhere, start = (bias(matrix, uniform) for matrix in scaled)
    assert start == pytest.approx(0.99**2)
    assert everywhere < start / 2
    assert "bound" not in DelayHetSampling(m=5).model_dump()  # hashes of runs without it


@pytest.mark.parametrize("feasible", [True, False])
def test_only_a_feasible_solver_stays_inside_the_simplex(feasible, monkeypatch):
    """Distances of about one, so that many distributions have B_p > 1."""
    rng = np.random.default_rng(2)
    B = symmetric(1 + rng.uniform(-0.035, 0.035, (30, 30)))
    delays, uniform = 30 + rng.lognormal(4, 2, 30), np.full(30, 1 / 30)
    B *= 0.99 / np.sqrt(bias(B, uniform))
    tried = []
    monkeypatch.setattr(
        latency, "expected_delay", lambda tau, p, k=1: tried.append(p) or expected_delay(tau, p, k)
    )
    best_distribution(B, delays, jacobian="exact", iterations=100, feasible=feasible)
    inside = [p.min() >= 0 and bias(B, p) < 1 for p in tried]
    assert all(inside) == feasible


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"k": 2},
        {"feasible": True},
        {"start": "fast"},
        {"solver": "analytic"},
        {"iterations": 5},
        {"share": 0.5},
        {"rule": "clip"},
        {"jacobian": "2-point"},
    ],
)
def test_delayhet_sampling_solves_with_its_settings(changed):
    B, delays = population(8, 0)
    quick = {"iterations": 3, "jacobian": "exact"} | changed
    clients, p = DelayHetSampling(m=5, **quick).solve(2 * B, delays)
    defaults = {"share": 0.9, "rule": "scale", "k": 1, "solver": "trust-constr", "start": "uniform"}
    feasible = quick.pop("feasible", False)
    share, rule, k, solver, start, iterations, jacobian = (defaults | quick).values()
    weights = 1 / delays if start == "fast" else np.ones(8)
    weights /= weights.sum()
    reduced = bounded(2 * B, share, k, rule)
    expected = best_distribution(
        *(reduced, delays, k, solver, weights, iterations, jacobian), feasible=feasible
    )
    np.testing.assert_array_equal(clients, np.arange(8))
    np.testing.assert_array_equal(p, expected)


@pytest.mark.parametrize("changed", [{}, {"solver": "exact"}, {"share": 0.5}, {"rule": "clip"}])
def test_delayhet_submodular_solves_with_its_settings(changed, monkeypatch):
    B, delays = population(8, 0)
    problems, chosen = [], np.array([2, 5])
    solve = lambda *problem: problems.append(problem) or (chosen, None)  # noqa: E731
    monkeypatch.setattr(delayhet, "best_subset", solve)
    _, weights = DelayHetSubmodular(**changed).solve(2 * B, delays)
    defaults = {"share": 0.9, "rule": "scale", "solver": "minnorm"}
    share, rule, solver = (defaults | changed).values()
    ((reduced, seconds, used),) = problems
    np.testing.assert_array_equal(reduced, bounded(2 * B, share, rule=rule))
    assert (used, seconds.tolist()) == (solver, delays.tolist())
    np.testing.assert_array_equal(weights, shares(2 * B, chosen))
