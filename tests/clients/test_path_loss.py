"""Path loss: ns-3's published values, limits and continuity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsampling.clients.mesh_settings import Parameters
from fedsampling.clients.path_loss import (
    hybrid,
    kun,
    okumura_hata,
    p1411_line_of_sight,
    p1411_over_rooftops,
)

LARGE, SMALL = Parameters(), Parameters(large_city=False)
heights = st.floats(1.5, 200)


# Expected values: ns-3's test suite "buildings-pathloss-test", tolerance 0.1 dB as there.
@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (okumura_hata(2000, 30, 1, 869, LARGE), 137.93),
        (okumura_hata(2000, 30, 1, 869, SMALL), 137.88),
        (okumura_hata(2000, 30, 1, 869, Parameters(environment="suburban")), 128.03),
        (okumura_hata(2000, 30, 1, 869, Parameters(environment="open")), 109.66),
        (okumura_hata(2000, 30, 1, 2114, LARGE), 148.55),
        (okumura_hata(2000, 30, 1, 2114, SMALL), 150.64),
        (kun(2000), 121.83),
        (p1411_line_of_sight(np.hypot(100, 29), 30, 1, 2114), 81.00),
        (p1411_line_of_sight(100.404, 10, 1, 2114), 81.838),
        (p1411_over_rooftops(np.hypot(900, 29), 30, 1, 2114, LARGE), 143.69),
        (p1411_over_rooftops(np.hypot(500, 9), 10, 1, 2114, LARGE), 180.90),
    ],
)
def test_the_models_give_the_published_values(loss, expected):
    assert loss == pytest.approx(expected, abs=0.1)


def test_hybrid_changes_its_formula_where_the_documentation_says():
    def at(d, h_one, h_other, f=2114.0):
        return hybrid(d, h_one, h_other, f, LARGE)

    assert at(150, 60, 30) == p1411_line_of_sight(150, 60, 30, 2114)
    assert at(900, 60, 30) == p1411_over_rooftops(900, 60, 30, 2114, LARGE)
    assert at(2000, 60, 30) == okumura_hata(2000, 60, 30, 2114, LARGE)
    assert at(2000, 60, 30, 2600) == kun(2000)
    assert at(2000, 60, 10) == p1411_over_rooftops(2000, 60, 10, 2114, LARGE)


def test_a_large_city_is_its_own_case_at_low_frequency():
    # Hata 1980: the two corrections of a large city, at 200 MHz and above, for a mobile at 1.5 m.
    low = okumura_hata(5000, 50, 1.5, 200, LARGE) - okumura_hata(5000, 50, 1.5, 200, SMALL)
    high = okumura_hata(5000, 50, 1.5, 201, LARGE) - okumura_hata(5000, 50, 1.5, 201, SMALL)
    assert low == pytest.approx(high, abs=0.1)


@given(heights, heights, st.floats(300, 2600))
def test_line_of_sight_is_continuous_at_the_breakpoint_of_its_lower_bound(h_one, h_other, f):
    breakpoint = 4 * h_one * h_other * f * 1e6 / 299_792_458
    before, after = p1411_line_of_sight(
        breakpoint * np.array([1 - 1e-9, 1 + 1e-9]), h_one, h_other, f
    )
    assert after == pytest.approx(before, abs=1e-6)


@given(st.floats(20, 30_000), heights, heights, st.sampled_from([700.0, 2160.0, 2600.0]))
def test_ends_can_be_exchanged_and_no_loss_is_below_free_space(d, h_one, h_other, f):
    loss = p1411_over_rooftops(d, h_one, h_other, f, LARGE)
    assert loss == p1411_over_rooftops(d, h_other, h_one, f, LARGE)
    assert loss >= 32.4 + 20 * np.log10(d / 1000) + 20 * np.log10(f) - 1e-9
    losses = [hybrid(d, *ends, f, LARGE) for ends in ((h_one, h_other), (h_other, h_one))]
    assert losses[0] == losses[1]
    assert np.isfinite(losses[0])


@given(st.floats(1.5, 19), st.sampled_from([700.0, 2160.0]))
def test_below_the_roofs_nothing_jumps_at_half_a_kilometre(h_b, f):
    before, after = p1411_over_rooftops(np.array([500 - 1e-6, 500 + 1e-6]), h_b, 1.5, f, LARGE)
    assert after == pytest.approx(before, abs=1e-4)
