"""The regression of rizk2022importance: its law."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.shared import line_of

from fedsampling.base.records import check
from fedsampling.data.datasets.regression import Regression

PAPER = {"samples": 100, "dimension": 2, "eigenvalues": (1.0, 4.0), "noise": (0.01, 1.0)}


def generated(seed=0, agents=300, **changed):
    return Regression(agents=agents, **(PAPER | changed)).load("generated", seed, Path(), None)


class TestLaw:
    def test_covariances_have_the_chosen_eigenvalues_in_every_direction(self):
        dataset = generated(agents=400, samples=4_000)
        u = dataset.x.reshape(400, 4_000, 2)
        values, vectors = np.linalg.eigh(u.transpose(0, 2, 1) @ u / 4_000)
        # The greater of two uniform numbers on [1, 4], shifted by estimation by at most about
        # 0.05.  Error probability of each Kolmogorov-Smirnov test: 1e-4.
        greater = stats.kstest(values[:, 1], lambda z: np.clip((z - 1) / 3, 0, 1) ** 2)
        angle = np.arctan2(vectors[:, 1, 1], vectors[:, 0, 1]) % np.pi / np.pi
        assert greater.pvalue > 1e-4
        assert stats.kstest(angle, "uniform").pvalue > 1e-4

    def test_noise_variance_is_log_uniform_over_the_agents(self):
        with_noise = generated(samples=2_000, eigenvalues=(1e-12, 1e-12))  # u = 0 nearly, so d = v
        variance = with_noise.y.reshape(300, 2_000).var(axis=1)
        share = np.log(variance / 0.01) / np.log(100)
        assert stats.kstest(share, "uniform").pvalue > 1e-4  # the error probability

    def test_few_agents_are_a_factor_noisier_than_all_others(self):
        noise = {"few": 4, "factor": 1e4, "others": 0.1}
        noisy, even = generated(noise=noise), generated(noise=(0.1, 0.1))
        v = (noisy.y - even.y).reshape(300, 100)
        assert np.allclose(v[4:], 0, atol=1e-12)
        assert v[:4].var(axis=1) == pytest.approx(np.full(4, 0.1 * (100 - 1) ** 2), rel=0.6)

    @pytest.mark.parametrize("few", [3, 10])
    def test_some_agents_are_not_noisy(self, few):
        settings = PAPER | {"agents": 3, "noise": {"few": few, "factor": 10.0, "others": 0.1}}
        line = line_of(check, Regression, settings, "dataset.")
        assert line == f"dataset.noise.few: {few} is invalid; must be less than the 3 agents"

    def test_same_seed_same_data_other_seed_other_data(self):
        first, same_seed, other_seed = (generated(seed) for seed in (1, 1, 2))
        assert np.array_equal(first.y, same_seed.y)
        assert not np.isclose(first.y, other_seed.y).any()
