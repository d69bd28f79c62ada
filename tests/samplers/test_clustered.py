"""Clustered sampling: Algorithms 1 and 2, their guarantees, and the remembered updates."""

from math import floor
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

from fedsampling.base.errors import InputError
from fedsampling.base.streams import Draws
from fedsampling.samplers import similarity
from fedsampling.samplers.clustered import (
    ClusteredSimilarity,
    ClusteredSize,
    allocate_by_similarity,
    allocate_by_size,
    counts,
    one_from_each,
    pieces_by_size,
    units_by_similarity,
    units_by_size,
)
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup, Slots, View
from fedsampling.samplers.similarity import dissimilarities, pairs, ward_groups

from .rounds import play, sized, weighed

MEASURES = ["arccos", "l2", "l1"]
sizes = st.one_of(
    st.lists(st.integers(1, 10**6), min_size=1, max_size=300),
    st.integers(1, 300).map(lambda n: [7] * n),
    st.integers(1, 300).map(lambda n: [10**6] + [1] * (n - 1)),
)


def printed_algorithm(n_samples, m, first, corrected):
    """Follow the box of Algorithm 1; if `corrected`, line 13 subtracts the units before it."""
    M = int(n_samples.sum())
    r = np.zeros((m + 1, len(n_samples)), dtype=int)  # line 13 reaches one row too far
    k, q, before = first, 0, 0
    for i in np.argsort(-n_samples, kind="stable"):
        q += m * int(n_samples[i])
        a, b = divmod(q, M)
        if a > k:
            r[k, i] = M - before
            r[k + 1 : a, i] = M
        r[a, i] = b - before if corrected and a == k else b
        k, before = a, b
    return r


@given(sizes, st.data())
@example([10**6] + [1] * 299, None)
@settings(max_examples=150)
def test_rows_and_columns_of_algorithm_1_sum_exactly(n_samples, data):
    n_samples = np.array(n_samples)
    m = data.draw(st.integers(1, len(n_samples))) if data else len(n_samples)
    M = n_samples.sum()
    units = units_by_size(n_samples, m)
    pieces = [piece for _, piece in pieces_by_size(n_samples, m)]
    np.testing.assert_allclose(allocate_by_size(n_samples, m) * M, units, atol=1e-6)
    assert (units >= 0).all()
    assert (units.sum(axis=1) == M).all()  # (7)
    assert (units.sum(axis=0) == m * n_samples).all()  # (8)
    max_draws = np.array([floor(m * int(size) / int(M)) + 2 for size in n_samples])
    assert ((units > 0).sum(axis=0) <= max_draws).all()
    assert (np.concatenate(pieces) > 0).all()
    assert sum(map(len, pieces)) == (units > 0).sum() < len(n_samples) + m


@given(st.lists(st.integers(0, 20), min_size=1, max_size=30).filter(any), st.data())
def test_draws_from_pieces_equal_draws_from_whole_distributions(n_samples, data):
    setup, m = sized(n_samples, 3), data.draw(st.integers(1, len(n_samples)))
    drawn, omega = play(prepared(ClusteredSize(m=m), setup), setup)
    assert (omega == 1 / m).all()
    r = allocate_by_size(setup.n_samples, m)
    expected = one_from_each(r, Draws(np.arange(3), 0).uniforms("clients", m))
    np.testing.assert_array_equal(drawn.client, Slots.drawn(expected, "independently").client)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=12), st.data())
def test_algorithm_1_agrees_with_the_corrected_box(n_samples, data):
    n_samples = np.array(n_samples)
    m = data.draw(st.integers(1, len(n_samples)))
    printed = printed_algorithm(n_samples, m, first=0, corrected=True)
    assert not printed[m].any()
    expected = printed[:m] / n_samples.sum()
    np.testing.assert_allclose(allocate_by_size(n_samples, m), expected, atol=1e-12)


@pytest.mark.parametrize(("first", "corrected"), [(1, True), (0, False), (1, False)])
def test_the_printed_box_violates_equation_7(first, corrected):
    printed = printed_algorithm(np.array([6, 1, 1]), 2, first, corrected)
    assert (printed[:2].sum(axis=1) != 8).any()


@pytest.mark.parametrize(
    ("n_samples", "m", "message"),
    [
        ([1.5, 2.0], 1, "integers"),
        ([3, -1], 1, "non-negative"),
        ([0, 0], 1, "all are zero"),
        ([1, 2], 3, "must be in 1…2"),
        ([1, 2], 0, "must be in 1…2"),
    ],
)
def test_invalid_counts_are_rejected(n_samples, m, message):
    with pytest.raises(InputError, match=message):
        allocate_by_size(np.array(n_samples), m)


def random_angles(n, seed=0):
    """Return the dissimilarities of random updates of n clients."""
    return dissimilarities(np.random.default_rng(seed).normal(size=(n, 3)), "arccos")


@given(sizes, st.sampled_from(["paper", "code"]), st.data())
@example([10**6] + [1] * 299, "paper", None)
@settings(max_examples=100)
def test_rows_and_columns_of_algorithm_2_sum_exactly(n_samples, ward, data):
    n_samples = np.array(n_samples)
    m = data.draw(st.integers(1, len(n_samples))) if data else len(n_samples)
    M = n_samples.sum()
    rho = random_angles(len(n_samples))
    units = units_by_similarity(n_samples, rho, m, np.random.default_rng(0), ward)
    assert (units >= 0).all()
    assert (units.sum(axis=1) == M).all()  # (7)
    assert (units.sum(axis=0) == m * n_samples).all()  # (8)
    certain = (units == M).sum(axis=0)
    assert (certain >= m * n_samples // M).all()  # end of section 5


def printed_algorithm_2(groups, n_samples, m, corrected):
    """Follow lines 4 to 19 of the box, with the groups' clients in the order given."""
    M = int(n_samples.sum())
    q = [m * int(n_samples[group].sum()) for group in groups]
    ranked = sorted(range(len(groups)), key=lambda k: -q[k])
    q = [q[k] for k in ranked]
    r = np.zeros((m, len(n_samples)), dtype=int)
    for k in range(m):
        r[k, groups[ranked[k]]] = m * n_samples[groups[ranked[k]]]
    S = [[i, m * int(n_samples[i])] for k in ranked[m:] for i in groups[k]]
    k = 0
    while S and k < m:
        i, u = S[0]
        a, b = divmod(q[k] + u, M)
        if a == 0:
            r[k, i] = u if corrected else b
            q[k] += u if corrected else 0
            S.pop(0)
        else:
            r[k, i] = M - q[k]
            S[0][1] -= M - q[k]
            if S[0][1] == 0:
                S.pop(0)
            k += 1
    return r


@pytest.mark.parametrize("seed", range(10))
def test_algorithm_2_agrees_with_the_corrected_box(seed):
    rng = np.random.default_rng(seed)
    n, m = 12, 4
    n_samples = rng.integers(20, 30, size=n)  # so that no client fills a distribution alone
    rho = random_angles(n, seed)
    groups = ward_groups(rho, m * n_samples, int(n_samples.sum()))
    unshuffled = SimpleNamespace(permutation=lambda group: group)
    ours = units_by_similarity(n_samples, rho, m, unshuffled)
    np.testing.assert_array_equal(ours, printed_algorithm_2(groups, n_samples, m, corrected=True))
    printed = printed_algorithm_2(groups, n_samples, m, corrected=False)
    assert (printed.sum(axis=1) != n_samples.sum()).any()


def test_the_authors_code_fills_the_lightest_distribution_first():
    rho = np.ones((6, 6)) - np.eye(6)
    rho[:2, :2] = rho[2:4, 2:4] = 0.1
    n_samples = np.array([4, 4, 3, 3, 2, 2])
    first = {
        ward: units_by_similarity(n_samples, rho, 2, np.random.default_rng(0), ward)[0]
        for ward in ("paper", "code")
    }
    assert first["paper"][0] == 8
    assert first["code"][0] == 0


@pytest.mark.parametrize("ward", ["paper", "code"])
def test_groups_left_over_are_shuffled_and_laid_out_by_size(ward):
    n_samples, rho, sizes = np.arange(20, 44), random_angles(24), []
    forward = SimpleNamespace(permutation=lambda g: sizes.append(n_samples[g].sum()) or g)
    backward = SimpleNamespace(permutation=lambda g: g[::-1])
    units, others = (
        units_by_similarity(n_samples, rho, 6, order, ward) for order in (forward, backward)
    )
    assert len(set(sizes)) > 2
    assert sizes == sorted(sizes, reverse=ward == "paper")
    assert (units != others).any()


@pytest.mark.parametrize("ward", ["paper", "code"])
@pytest.mark.parametrize("measure", MEASURES)
def test_ten_digits_of_ten_clients_become_ten_distributions(measure, ward):
    rng = np.random.default_rng(0)
    digit = np.repeat(np.arange(10), 10)
    updates = rng.normal(size=(10, 50))[digit] + 0.1 * rng.normal(size=(100, 50))
    r = allocate_by_similarity(np.full(100, 500), updates, 10, measure, rng, ward)
    assert {frozenset(digit[row > 0]) for row in r} == {frozenset({d}) for d in range(10)}
    np.testing.assert_allclose(r[r > 0], 0.1)


def one_by_one(updates, measure):
    """Compare clients in double precision, by SciPy."""
    metric = {"arccos": "cosine", "l2": "euclidean", "l1": "cityblock"}[measure]
    rho = squareform(pdist(updates.astype(float), metric))
    return np.arccos(1 - rho) if measure == "arccos" else rho


@pytest.fixture(scope="module")
def updates():
    shape = 9, similarity.BLOCK_COORDINATES + 7
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("measure", MEASURES)
def test_dissimilarities_agree_with_scipy(updates, measure):
    result, expected = dissimilarities(updates, measure), one_by_one(updates, measure)
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9)
    if measure == "l2":  # the authors' code squares distances
        squared = dissimilarities(updates, "l2", "code")
        np.testing.assert_allclose(squared, expected**2, rtol=1e-9, atol=1e-9)


def test_equal_single_precision_updates_have_angle_zero(updates):
    """In single precision the angle of a product would be up to 1e-3."""
    doubled = np.concatenate([updates, 3 * updates])
    angle = dissimilarities(doubled, "arccos")
    assert np.diag(angle, len(updates)).max() < 1e-7
    assert (angle.diagonal() == 0).all()


def test_clients_never_selected_form_a_group_at_dissimilarity_zero(updates):
    partly = np.concatenate([updates[:3], np.zeros((4, updates.shape[1]), np.float32)])
    angle = dissimilarities(partly, "arccos")
    assert (angle[3:, 3:] == 0).all()
    np.testing.assert_allclose(angle[:3, 3:], np.pi / 2)
    groups = ward_groups(angle, np.ones(7, np.int64), 4)
    assert [3, 4, 5, 6] in [list(group) for group in groups]
    angle = dissimilarities(partly, "arccos", "code")
    assert (angle > 0).sum() == (angle[:3, :3] > 0).sum() == 6


def test_only_the_first_clients_never_selected_form_a_group():
    """Ward's tree of equal distances is a chain, which the weight cuts once."""
    groups = ward_groups(np.zeros((6, 6)), np.ones(6, np.int64), 3)
    assert sorted(map(list, groups)) == [[0, 1, 2], [3], [4], [5]]


@pytest.mark.parametrize("ward", ["paper", "code"])
def test_groups_agree_with_the_authors_cut_of_the_tree(ward):
    """They put a merge's weight in place of its height and cut the tree at M."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        n = int(rng.integers(2, 40))
        rho = dissimilarities(rng.normal(size=(n, 3)), "l2", ward)
        weight = rng.integers(1, 100, size=n)
        limit = int(weight.max() * rng.integers(1, 5))
        tree = linkage(squareform(rho) if ward == "paper" else pdist(rho), "ward")
        total = [float(w) for w in weight]
        for row in tree:
            total.append(total[int(row[0])] + total[int(row[1])])
            row[2] = total[-1]
        label = fcluster(tree, t=limit, criterion="distance")
        expected = {tuple(np.flatnonzero(label == k)) for k in np.unique(label)}
        assert {tuple(group) for group in ward_groups(rho, weight, limit, ward)} == expected


@pytest.mark.parametrize(
    ("measure", "ward", "value", "message"),
    [
        ("cosine", "paper", 1.0, "measure: 'cosine' is unknown"),
        ("l2", "papre", 1.0, "did you mean 'paper'"),
        ("l1", "paper", np.nan, "not finite"),
    ],
)
def test_invalid_measures_variants_and_updates_are_rejected(measure, ward, value, message):
    with pytest.raises(InputError, match=message):
        similarity.from_pairs(np.full((2, 2), value), measure, ward)


@pytest.mark.parametrize("shape", [(6, 3), (3, 3), (4,), (4, 3, 1)])
def test_updates_must_have_a_row_for_each_client(shape):
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="a row for each of 4 clients"):
        allocate_by_similarity(np.ones(4, np.int64), np.ones(shape), 2, "l2", rng)


N, D = 10, 6
SIZES = np.arange(1, N + 1)
P = SIZES / SIZES.sum()


def setup(runs=1, p=P):
    return Setup(SIZES, p, runs, dimension=D)


@pytest.mark.parametrize("ward", ["paper", "code"])
@pytest.mark.parametrize("measure", MEASURES)
def test_clients_are_drawn_from_the_groups_of_the_remembered_updates(measure, ward):
    ready = prepared(ClusteredSimilarity(m=4, measure=measure, ward=ward), setup())
    updates = np.random.default_rng(2).lognormal(size=(N, D)).astype(np.float32)
    ready.state.G[0], ready.state.pairs[0] = updates, pairs(updates, measure)
    for t in range(40):
        slots, _ = weighed(ready, setup(), t)
        rng = Draws(np.zeros(1, np.int64), t)
        (generator,) = rng.generators("groups")
        r = allocate_by_similarity(SIZES, updates, 4, measure, generator, ward)
        expected = one_from_each(r, rng.uniforms("clients", 4)[0])
        np.testing.assert_array_equal(slots.client, expected)


@pytest.mark.parametrize("scheme", [ClusteredSize, ClusteredSimilarity])
def test_a_client_drawn_twice_that_trains_once_has_twice_the_weight(scheme):
    population = sized([10, 1, 1, 1], 20, dimension=D)
    ready = prepared(scheme(m=3, duplicates="once"), population)
    slots, omega = weighed(ready, population)
    assert slots.times.max() > 1
    np.testing.assert_allclose(np.bincount(slots.run, omega), 1)


@pytest.mark.parametrize("measure", MEASURES)
def test_remembered_pairs_agree_with_those_of_all_updates(measure):
    """Rounds in which the clients with the same remainder modulo three are alike."""
    sampler = prepared(ClusteredSimilarity(m=4, measure=measure), setup(runs=2))
    for t in range(4):
        noise = np.random.default_rng(t).normal(size=(N, D))
        updates = (np.eye(3, D)[np.arange(N) % 3] + 0.01 * noise).astype(np.float32)
        play(sampler, setup(2), t, trained=lambda slots, u=updates: {"updates": u[slots.client]})
    for G, remembered in zip(sampler.state.G, sampler.state.pairs, strict=True):
        assert (G != 0).any(1).sum() > 4
        np.testing.assert_allclose(remembered, pairs(G, measure), atol=1e-12)
        np.testing.assert_array_equal(remembered, remembered.T)


def test_the_later_of_two_updates_of_a_client_is_remembered():
    scheme = ClusteredSimilarity(m=4)
    updates = np.repeat([[1.0], [2.0], [3.0]], D, axis=1).astype(np.float32)
    view = View(SIZES, SIZES / SIZES.sum(), 0, 1, {"updates": updates})
    slots = Slots.stack([np.array([7, 2, 7])])
    state = scheme.learn(scheme.initial_state(setup()), slots, view)
    np.testing.assert_array_equal(state.G[0, [2, 7], 0], [2, 3])


def test_a_run_that_diverges_does_not_stop_the_others():
    sampler = prepared(ClusteredSimilarity(m=4), setup(runs=2))
    updates = lambda slots: np.where(slots.run[:, None] == 0, np.nan, np.ones(D))  # noqa: E731
    play(sampler, setup(runs=2), trained=lambda s: {"updates": updates(s).astype(np.float32)})
    assert np.isfinite(weighed(sampler, setup(runs=2), 1)[1]).all()


def test_counts_are_proportional_to_importance():
    np.testing.assert_array_equal(counts(setup()), SIZES)
    assert np.ptp(counts(setup(p=np.full(N, 1 / N)))) == 0
    odd = np.random.default_rng(0).dirichlet(np.ones(N))
    result = counts(setup(p=odd))
    np.testing.assert_allclose(result / result.sum(), odd, atol=1e-11)
