import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsampling.base.errors import InputError
from fedsampling.base.streams import stream
from fedsampling.data.partitions.label_skew import sizes

requests = st.tuples(
    st.integers(0, 2_000), st.integers(0, 12), st.integers(0, 60), st.integers(0, 60)
)


def exists(total: int, K: int, low: int, high: int) -> bool:
    """Whether such sizes exist, by walking through all sums that K clients can have."""
    if low < 1 or low > high:
        return False
    between = range(low, high + 1)
    sums = {(0, False, False)}  # sum, low met, high met
    for _ in range(K):
        sums = {(s + v, a or v == low, b or v == high) for s, a, b in sums for v in between}
    return (total, True, True) in sums


def test_papers_request_is_met_exactly():
    N = sizes(35_000, 100, 79, 688, stream(0, "test"))
    assert (len(N), N.sum(), N.min(), N.max()) == (100, 35_000, 79, 688)


@settings(max_examples=300)
@given(requests, st.integers(0, 9))
def test_sizes_meet_every_bound_or_the_request_is_rejected(request, seed):
    total, K, low, high = request
    # Between its extremes every total can be had: one step up in one client at a time.
    ends = (high + (K - 1) * low, low + (K - 1) * high)
    enough_clients = 1 if low == high else 2
    if enough_clients <= K and 1 <= low <= high and ends[0] <= total <= ends[1]:
        N = sizes(*request, stream(seed, "test"))
        assert (len(N), N.sum(), N.min(), N.max()) == (K, total, low, high)
    else:
        with pytest.raises(InputError):
            sizes(*request, stream(seed, "test"))


@pytest.mark.parametrize("K", [1, 2, 3, 4])
def test_exactly_the_feasible_requests_are_met(K):
    for low in range(4):
        for high in range(5):
            for total in range(18):
                request = (total, K, low, high)
                if exists(*request):
                    N = sizes(*request, stream(0, "test"))
                    assert (N.sum(), N.min(), N.max()) == (total, low, high)
                else:
                    with pytest.raises(InputError):
                        sizes(*request, stream(0, "test"))


def test_every_client_has_the_same_expected_size():
    N = np.stack([sizes(35_000, 100, 79, 688, stream(seed, "test")) for seed in range(400)])
    # Mean over 400 draws, standard deviation about 161: five standard errors for 100 clients
    # miss with probability below 1e-4.
    assert np.abs(N.mean(0) - 350).max() < 5 * 165 / np.sqrt(400)


def test_sizes_spread_over_the_whole_range():
    drawn = sizes(35_000, 100, 79, 688, stream(0, "test"))
    assert np.histogram(drawn, [79, 200, 300, 400, 500, 689])[0].min() >= 5


def test_infeasible_request_says_what_would_be_feasible():
    with pytest.raises(
        InputError, match=r"100 agents .* 79 to 688 .* hold 8,509 to 68,191 samples"
    ):
        sizes(99, 100, 79, 688, stream(0, "test"))
