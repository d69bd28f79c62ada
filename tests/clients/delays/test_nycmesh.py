"""Delays on the mesh network: a chain by hand, monotonicity, and published numbers."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from papers.harshvardhan2025latency.simulations_delays import LEVELS
from scipy.stats import ks_2samp

from fedsampling.clients import mesh_files
from fedsampling.clients.mesh import EFFICIENCIES, Nycmesh, client_table, efficiency
from fedsampling.clients.mesh_settings import Parameters
from fedsampling.clients.path_loss import okumura_hata
from papers.harshvardhan2025latency import published_delays

DEFAULT = Parameters()
STANDIN = mesh_files.load("embedded", Path(), None)


def test_the_chain_by_hand_for_one_client():
    nodes = pd.DataFrame(
        {"lon": [0.0, 0.0], "lat": [0.0, 0.045], "height": [100.0, 100.0], "degree": [1.0, 0.0]}
    )
    settings = DEFAULT.model_copy(update={"hubs": 1, "shadowing": 0.0, "log_sd": 0.0})
    result = client_table(mesh_files.Mesh(nodes, pd.DataFrame()), settings, 0).iloc[0]
    distance = 0.045 * 111_195.08
    loss = okumura_hata(distance, 100, 100, 2160, Parameters())
    snr = 25 + 40 - loss - (-174 + 73.0103 + 9)
    shannon = np.log2(1 + 10 ** (snr / 10) / (-np.log(2.5e-4) / 1.5))
    rate = 20e6 * max(step for step in EFFICIENCIES if step <= shannon)
    assert result["distance"] == pytest.approx(distance, rel=1e-6)
    assert result["loss"] == pytest.approx(loss, abs=1e-6)
    assert result["rate"] == pytest.approx(rate)
    assert result["communication"] == pytest.approx(2 * 8 * 1.6e6 / rate)
    assert result["computation"] == pytest.approx(30 + np.exp(4.08))


def test_efficiency_climbs_the_steps_and_ends_with_them():
    gap = 10 * np.log10(-np.log(2.5e-4) / 1.5)
    # At the gap above 0 dB Shannon's rate is 1 bit: between qualities 5 and 6.
    assert efficiency(gap, 5e-5) == EFFICIENCIES[4]
    assert efficiency(-100, 5e-5) == EFFICIENCIES[0]
    assert efficiency(100, 5e-5) == EFFICIENCIES[-1]
    steps = efficiency(np.linspace(-30, 40, 2000), 5e-5)
    assert (np.diff(steps) >= 0).all()
    np.testing.assert_array_equal(np.unique(steps), EFFICIENCIES)


def test_hubs_serve_their_own_clients_at_the_price_of_the_backhaul():
    hub = DEFAULT.model_copy(update={"gateway": "hub", "shadowing": 0.0})
    result = client_table(STANDIN, hub, 0)
    with_supernode = client_table(STANDIN, hub.model_copy(update={"gateway": "supernode"}), 0)
    assert len(result) == len(STANDIN.nodes) - 6
    assert result["communication"].min() > 18.72
    assert (result["loss"] <= with_supernode["loss"]).all()


def test_the_published_delays_have_their_known_quantiles(mirror, tmp_path):
    published = published_delays.load_reference(tmp_path, mirror)
    for total in published.totals.values():
        assert total.shape == (184,)
        assert np.isfinite(total).all()
    np.testing.assert_allclose(
        np.quantile(published.totals["comp1.txt"], LEVELS), [82, 94, 163, 1957, 15052], atol=0.6
    )


def test_the_share_above_1000_s_and_the_tail_are_near_the_published_ones(mirror, tmp_path):
    network = mesh_files.load("official", tmp_path, mirror)
    published = published_delays.load_reference(tmp_path, mirror)
    seconds = np.stack(
        [
            Nycmesh().draw(seed, network).round_seconds(seed, np.arange(5)[:, None], np.arange(188))
            for seed in range(40)
        ]
    )
    above = (seconds > 1000).mean(axis=(1, 2))
    # One population of 188 has a standard deviation of 2.3 points; the paper shows one: 10 %.
    assert abs(above.mean() - 0.10) < above.std()
    ours, theirs = np.quantile(seconds, LEVELS), np.quantile(published.totals["comp.txt"], LEVELS)
    assert (np.abs(np.log(ours / theirs)) < np.log(1.5)).all()
    for total in published.totals.values():
        assert ks_2samp(seconds.ravel(), total).statistic < 0.12
