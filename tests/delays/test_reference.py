"""Published delays: the facts known of the files, and the distance."""

import numpy as np

from fedsampling.delays.reference import kolmogorov_smirnov, load, quantiles


def test_the_real_files_have_their_known_quantiles(mirror, tmp_path):
    published = load(tmp_path, mirror)
    assert published.communication.shape == (184,)
    assert np.isfinite(published.communication).all()
    np.testing.assert_allclose(
        quantiles(published.total("comp1.txt")), [82, 94, 163, 1957, 15052], atol=0.6
    )


def test_distance_of_empirical_distributions():
    assert kolmogorov_smirnov(np.array([1.0, 2, 3, 4]), np.array([3.5, 5])) == 0.75
    assert kolmogorov_smirnov(np.arange(9.0), np.arange(9.0)) == 0
