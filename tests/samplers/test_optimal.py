"""Optimal client sampling and K-Vib: probabilities against independent solutions, and reports."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fedsampling.base.errors import InputError
from fedsampling.base.streams import Draws
from fedsampling.samplers.optimal import approximate, approximate_probabilities, probabilities
from fedsampling.samplers.protocol.base import scheme
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup, View

from . import rounds

norms = st.lists(
    st.one_of(st.just(0.0), st.just(1.0), st.floats(1e-6, 1e6)), min_size=1, max_size=40
).map(np.array)


def by_bisection(u, m):
    """Find q_i = min(1, u_i / τ) with Σ q_i = m, which the optimality conditions ask for."""
    low, high = 0.0, u.sum()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(1, u / middle).sum() > m else (low, middle)
    return np.minimum(1, u / high)


@given(norms, st.data())
@example(np.array([1e-320, 1e-320, 1e300]), None)
@settings(max_examples=300)
def test_probabilities_meet_their_constraints(u, data):
    m = data.draw(st.integers(1, u.size)) if data else 2
    q = probabilities(u, m)
    assert ((q >= 0) & (q <= 1)).all()
    assert ((q > 0) == (u > 0)).all()
    if (u > 0).sum() > m:
        assert q.sum() == pytest.approx(m)
        if data:
            np.testing.assert_allclose(q, by_bisection(u, m), rtol=1e-7)
    else:
        np.testing.assert_allclose(q[u > 0], 1, atol=1e-12)
    order = np.argsort(u)
    assert (np.diff(q[order]) >= 0).all()
    assert all(np.ptp(q[u == value]) == 0 for value in set(u))  # equal norms, equal chances


def test_as_printed_with_largest_norms_first_a_probability_exceeds_one():
    """(6) with ‖Ũ_(j)‖ the j-th largest: l = n, since 2 ≤ 7/1, and p_1 = 2·4/7."""
    # 4 exceeds its share, so it is certain; 1, 1, 1 share the other report.
    np.testing.assert_allclose(probabilities(np.array([1, 4, 1, 1]), 2), [1 / 3, 1, 1 / 3, 1 / 3])
    u, m = np.array([4.0, 1, 1, 1]), 2
    n = u.size
    total = np.cumsum(u)  # descending
    largest = max(j for j in range(1, n + 1) if 0 < m + j - n <= total[j - 1] / u[j - 1])
    assert largest == n
    assert (m + largest - n) * u[0] / total[largest - 1] > 1


@pytest.mark.parametrize(
    ("u", "m", "message"),
    [
        ([1.0, -1.0], 1, "non-negative"),
        ([1.0, np.nan], 1, "finite"),
        ([1.0, 1.0], 3, "use 1 to 2"),
        ([1.0, 1.0], 0, "use 1 to 2"),
    ],
)
def test_invalid_norms_and_numbers_are_rejected(u, m, message):
    with pytest.raises(InputError, match=message):
        probabilities(np.array(u), m)
    with pytest.raises(InputError, match="j_max"):
        approximate_probabilities(np.ones(3), 1, -1)


def test_norms_near_the_largest_double_have_the_same_probabilities():
    u = np.array([0.0, 1, 2, 4, 9])
    np.testing.assert_allclose(probabilities(u * 1e307, 2), probabilities(u, 2), rtol=1e-15)
    np.testing.assert_allclose(
        approximate_probabilities(u * 1e307, 2, 2), approximate_probabilities(u, 2, 2), rtol=1e-15
    )
    tiny, huge = probabilities(np.array([1e-300, 1.5e308]), 1)
    assert tiny > 0
    assert huge == 1


def by_messages(u, m, j_max):
    """Run Algorithm 2 in a loop over clients."""
    n = len(u)
    p = [min(m * u_i / sum(u), 1) for u_i in u]
    for _ in range(j_max):
        t = [(1, p_i) if p_i < 1 else (0, 0) for p_i in p]
        I, P = (sum(column) for column in zip(*t, strict=True))  # noqa: E741
        if P == 0:
            break
        C = (m - n + I) / P
        p = [min(C * p_i, 1) if p_i < 1 else p_i for p_i in p]
        if C <= 1:
            break
    return p


@given(norms, st.integers(0, 6), st.data())
@settings(max_examples=200)
def test_approximation_is_algorithm_2(u, j_max, data):
    m = data.draw(st.integers(1, u.size))
    q = approximate_probabilities(u, m, j_max)
    if u.any():
        np.testing.assert_allclose(q, by_messages(u, m, j_max), rtol=1e-9)
    assert ((q > 0) == (u > 0)).all()
    assert q.sum() <= m * (1 + 1e-9)
    exact = probabilities(u, m)
    np.testing.assert_allclose(approximate_probabilities(u, m, m - 1), exact, rtol=1e-7)


def test_four_exchanges_are_exact_for_norms_as_in_the_experiments():
    """The authors' code gives no difference on 2,000 draws of 32 lognormal norms."""
    rng = np.random.default_rng(0)
    for _ in range(2000):
        u, m = rng.lognormal(size=32), int(rng.choice([2, 3, 6]))
        gap = np.abs(approximate_probabilities(u, m, 4) - probabilities(u, m))
        assert gap.max() < 1e-14


@pytest.mark.parametrize(
    ("u", "m", "j_max", "exchanges"),
    [
        ([1, 1, 1, 1], 2, 4, 1),  # C = 1 at once
        ([4, 1, 1, 1], 2, 4, 2),  # one is cut off; then C = 1
        ([4, 1, 1, 1], 2, 1, 1),
        ([4, 1, 1, 1], 2, 0, 0),
        ([2, 2], 2, 4, 1),  # everyone is certain: P = 0
        ([0, 0], 1, 4, 0),  # nothing to share out
    ],
)
def test_exchanges_are_counted_until_nothing_is_capped(u, m, j_max, exchanges):
    assert approximate(np.array(u, float), m, j_max).exchanges == exchanges


N, A, M = 9, 6, 2
REPORTS = ["full", "uniform", "optimal", "approximate"]
P = np.arange(1, N + 1) / 45
NORMS = np.array([3.0, 0.1, 0.5, 9.0, 0.2, 1.0, 0.3, 2.0, 0.0])
SETUP = Setup(np.arange(1, N + 1), P)


def play(report, runs, t=0, norms=NORMS, j_max=4, **options):
    setup = replace(SETUP, runs=runs)
    sampler = scheme("available", available=A, m=M, report=report, j_max=j_max, **options)
    sampler = prepared(sampler, setup)
    trained = lambda slots: {"update_norms": norms[slots.client]} if sampler.needs else {}  # noqa: E731
    return sampler, *rounds.play(sampler, setup, t, trained=trained)


def in_rows(slots, omega):
    """Clients, their shares among the available, and ω; shape (runs, A) each."""
    client = slots.client.reshape(-1, A)
    w = P[client] / P[client].sum(1, keepdims=True)
    return client, w, omega.reshape(-1, A)


@pytest.mark.parametrize("report", REPORTS)
def test_weights_are_the_share_among_the_available_over_the_probability(report):
    _, slots, omega = play(report, 50)
    np.testing.assert_array_equal(slots.client, play("full", 50)[1].client)  # the same available
    assert all(len(set(row)) == A for row in slots.client.reshape(-1, A))
    _, w, omega = in_rows(slots, omega)
    norms = w * NORMS[slots.client.reshape(-1, A)]
    q = {
        "full": lambda u: np.ones(A),
        "uniform": lambda u: np.full(A, M / A),
        "optimal": lambda u: probabilities(u, M),
        "approximate": lambda u: approximate(u, M, 4).q,
    }[report]
    assert (omega[:50] > 0).any()
    for run in range(50):
        probability = q(norms[run])
        reported = omega[run] > 0
        np.testing.assert_allclose(omega[run, reported], w[run, reported] / probability[reported])
        assert not reported[probability == 0].any()


@pytest.mark.parametrize("report", ["uniform", "optimal", "approximate"])
def test_the_aggregate_is_unbiased_given_the_available_clients(report):
    """The clients of one round of one seed, with the variates of many other rounds."""
    runs = 3000
    sampler, _, _ = play(report, runs)
    client = np.arange(A)
    view, draws = View(np.ones(N, np.int64), P, 0, runs), Draws(np.arange(runs), 0)
    slots = sampler.select(view, draws)
    slots.client[:] = np.tile(client, runs)
    view = replace(view, observed={"update_norms": NORMS[slots.client]})
    omega = sampler.weigh(slots, view, draws).reshape(runs, A)
    estimate = omega * NORMS[client]
    error = estimate.std(0) / np.sqrt(runs) + 1e-12
    expected = P[client] / P[client].sum() * NORMS[client]
    # Five standard errors: a false alarm in eighteen comparisons has probability 1e-5.
    assert (np.abs(estimate.mean(0) - expected) < 5 * error).all()


def test_exchange_costs_two_floats_of_each_client_and_iteration():
    norms = np.array([1, 1, 1, 9, 1, 1, 90, 1, 1]) / P
    sampler, slots, _ = play("approximate", 30, norms=norms)
    client, w, _ = in_rows(slots, np.zeros(len(slots)))
    exchanges = [approximate(u, M, 4).exchanges for u in w * norms[client]]
    assert len(set(exchanges)) > 1
    np.testing.assert_array_equal(sampler.exchange_bits(), 64 * A * np.array(exchanges))
    assert (play("optimal", 30)[0].exchange_bits() == 0).all()


def test_improvement_is_measured_if_norms_are_observed():
    measured = play("optimal", 30)[0].measured()
    assert ((measured["alpha"] >= 0) & (measured["alpha"] <= 1)).all()
    assert ((measured["gamma"] >= M / A) & (measured["gamma"] <= 1)).all()
    np.testing.assert_allclose(measured["expected_reports"], M)
    assert not play("uniform", 30)[0].measured()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("report", ["optimal", "approximate"])
def test_an_update_that_is_not_finite_is_reported_and_ends_only_its_run(report, bad):
    norms = np.where(np.arange(N) == 3, bad, NORMS)
    _, slots, omega = play(report, 40, norms=norms)
    assert np.isfinite(omega).all()
    assert (slots.client == 3).any()
    assert (omega[slots.client == 3] > 0).all()


def test_unbiased_only_if_the_denominator_is_constant():
    claims = []
    for available, p in ((A, P), (N, P), (A, np.full(N, 1 / N))):
        sampler = scheme("available", available=available, m=M, report="full")
        claims.append(prepared(sampler, replace(SETUP, p=p)).unbiased)
    assert claims == [False, True, True]


def test_deviation_has_mean_zero_and_variance_one():
    sampler, _, _ = play("approximate", 8000, norms=NORMS[::-1])
    deviation = sampler.measured()["deviation"]
    # Five standard errors: a false alarm has probability 6e-7.
    assert abs(deviation.mean()) < 5 / np.sqrt(8000)
    assert np.var(deviation) == pytest.approx(1, abs=0.1)


def test_other_numbers_of_exchanges_are_also_measured():
    sampler, _, _ = play("approximate", 30, j_max=1, beside=3)
    result = sampler.measured()
    np.testing.assert_array_equal(result["alpha_1"], result["alpha"])
    np.testing.assert_array_equal(result["expected_reports_1"], result["expected_reports"])
    # With m = 2 one exchange after the first is enough for equation (6).
    np.testing.assert_allclose(result["alpha_3"], result["alpha_exact"], rtol=1e-12)
    assert (result["expected_reports_0"] < result["expected_reports_3"] - 1e-3).any()


def test_scale_changes_local_steps_but_no_draw():
    _, slots, omega = play("uniform", 4)
    _, scaled, omega_scaled = play("uniform", 4, scale=0.25)
    np.testing.assert_array_equal(scaled.scale, 0.25 * slots.scale)
    np.testing.assert_array_equal((scaled.client, omega_scaled), (slots.client, omega))
