"""None"""

from functools import partial

import numpy as np
import pytest

from .loading import load

loaded = partial(load, "ijcnn1", agents=100, smallest=79, largest=688, alpha=0.5)


def test_official_counts_and_content_are_the_papers(mirror, tmp_path):
    data = loaded("official", 0, tmp_path, mirror)
    assert (data.x.shape, data.x_test.shape) == ((35_000, 22), (91_701, 22))
    assert len(data.n_samples) == 100
    assert (data.n_samples.min(), data.n_samples.max()) == (79, 688)
    assert np.mean(data.y > 0) == pytest.approx(0.0976, abs=5e-5)
    assert np.mean(data.y_test > 0) == pytest.approx(0.0950, abs=5e-5)
    assert (data.x[:, :10].sum(1) == 1).all()  # ten indicators of the cycle


class TestEmbedded:
    def test_sizes_shrink_with_the_number_of_samples(self):
        n_samples = loaded().n_samples
        assert n_samples.sum() == 3_500
        assert (n_samples.min(), n_samples.max()) == (7, 69)  # 7.9 down, 68.8 up

    def test_partition_moves_every_sample_once(self):
        first, second = loaded(seed=0), loaded(seed=1)
        assert not np.array_equal(first.x, second.x)
        assert np.array_equal(np.sort(first.x, axis=0), np.sort(second.x, axis=0))
        assert np.array_equal(first.x_test, second.x_test)

    def test_positives_become_half_of_as_many_samples(self):
        usual, balanced = loaded(), loaded(positives=0.5)
        assert np.array_equal(balanced.n_samples, usual.n_samples)
        assert (balanced.y > 0).mean() == 0.5
        rows = [set(map(tuple, data.x[data.y > 0])) for data in (usual, balanced)]
        assert rows[0] == rows[1]  # each positive at least once
        assert np.array_equal(balanced.x_test, usual.x_test)

    def test_small_alpha_spreads_the_label_shares_but_not_the_sizes(self):
        def spread(data):
            positives = np.add.reduceat(data.y > 0, data.start[:-1], dtype=np.int64)
            return float((positives / data.n_samples).std())

        skewed, even = loaded(alpha=0.1), loaded(alpha=None)
        assert np.array_equal(skewed.n_samples, even.n_samples)
        assert spread(skewed) > 2 * spread(even)
