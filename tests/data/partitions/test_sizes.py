import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.base.streams import stream
from fedsampling.data.partitions.label_skew import sizes


def exists(total, K, low, high):
    """Whether such sizes exist, by walking through all sums that K clients can have."""
    if low < 1 or low > high:
        return False
    between = range(low, high + 1)
    sums = {(0, False, False)}  # sum, low met, high met
    for _ in range(K):
        sums = {(s + v, a or v == low, b or v == high) for s, a, b in sums for v in between}
    return (total, True, True) in sums


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


def test_the_papers_sizes_are_exact_spread_and_equal_on_average():
    N = np.stack([sizes(35_000, 100, 79, 688, stream(seed, "test")) for seed in range(400)])
    assert N.shape == (400, 100)
    assert {*N.sum(1), *N.min(1), *N.max(1)} == {35_000, 79, 688}
    assert np.histogram(N[0], [79, 200, 300, 400, 500, 689])[0].min() >= 5
    # Mean over 400 draws, standard deviation about 161: five standard errors for 100 clients
    # miss with probability below 1e-4.
    assert np.abs(N.mean(0) - 350).max() < 5 * 165 / np.sqrt(400)


def test_infeasible_request_says_what_would_be_feasible():
    with pytest.raises(
        InputError, match=r"100 agents .* 79 to 688 .* hold 8,509 to 68,191 samples"
    ):
        sizes(99, 100, 79, 688, stream(0, "test"))
