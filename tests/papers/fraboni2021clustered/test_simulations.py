"""Distributions that are kept of a real training, and what is said of them."""

import numpy as np
import pytest
from papers.fraboni2021clustered.simulations import summary
from tests.helpers import small_runs
from tests.helpers.small_runs import column as values

SAMPLERS = {
    "md": {"name": "md", "m": 4},
    "size": {"name": "clustered_size", "m": 4},
    "similarity": {"name": "clustered_similarity", "m": 4},
}


@pytest.fixture(scope="module")
def tables():
    return {
        name: small_runs.tables("allocation", seeds=(0, 1), sampler=sampler)
        for name, sampler in SAMPLERS.items()
    }


def distributions(table):
    shares = table[table["metric"].astype(str).str.startswith("share/")]
    return shares.pivot(index="metric", columns="at", values="value").to_numpy()


@pytest.mark.parametrize("name", SAMPLERS)
def test_distributions_meet_equations_7_and_8(tables, name):
    for table in tables[name]:
        r, samples = distributions(table), values(table, "samples").to_numpy()
        assert r.shape == (4, 12)
        np.testing.assert_allclose(r.sum(1), 1, atol=1e-12)
        np.testing.assert_allclose(r.sum(0), 4 * samples / samples.sum(), atol=1e-12)
        assert values(table, "rows_off").max() == values(table, "columns_off").max() == 0


def test_only_distributions_of_updates_are_trained_and_vary_by_seed(tables):
    first, second = map(distributions, tables["similarity"])
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(*map(distributions, tables["size"]))
    seen = values(tables["similarity"][0], "seen")
    assert seen.index.tolist() == [0, 2, 3]
    assert seen[0] == 0 < seen[2] <= seen[3] <= 12
    assert values(tables["size"][0], "seen").to_dict() == {0: 0}


def test_groups_are_ranked_by_samples_and_none_is_too_large(tables):
    table = tables["similarity"][0]
    samples, group = (values(table, name).to_numpy() for name in ("samples", "group"))
    total = np.bincount(group.astype(int), samples)
    assert (np.diff(total) <= 0).all()
    assert 4 * total.max() <= samples.sum()
    assert len(total) == values(table, "groups").iloc[-1] >= 4
    assert (values(tables["md"][0], "group") == -1).all()


def test_statistics_of_md_sampling_are_the_closed_forms(tables):
    table = tables["md"][0]
    samples = values(table, "samples").to_numpy()
    p = samples / samples.sum()
    np.testing.assert_allclose(values(table, "variance"), p * (1 - p) / 4)  # (14)
    np.testing.assert_allclose(values(table, "inclusion"), 1 - (1 - p) ** 4)  # (20)
    assert abs(values(table, "variance_above_md").max()) < 1e-15


def test_the_summary_counts_clients_and_labels_and_finds_what_is_wrong():
    n_samples, labels = np.full(4, 2), np.array([0, 0, 1, 1])
    md = summary(np.tile(n_samples, (2, 1)), n_samples, labels)
    assert md["clients"] == pytest.approx(1.75)  # two different clients in 3 of 4 rounds
    assert md["labels"] == pytest.approx(1.5)
    ideal = summary(np.array([[4, 4, 0, 0], [0, 0, 4, 4]]), n_samples, labels)
    assert (ideal["clients"], ideal["labels"]) == (2, 2)
    assert ideal["variance_above_md"] < 0 > ideal["inclusion_below_md"]
    assert ideal["draws_above_bound"] == -1  # one distribution each; ⌊m p_i⌋ + 2 = 2
    wrong = summary(np.array([[4, 4, 0, 0], [0, 0, 4, 3]]), n_samples, labels)
    assert (wrong["rows_off"], wrong["columns_off"]) == (1, 1)
