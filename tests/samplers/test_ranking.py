"""The smallest keys, in the order that a stable sort gives them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedsampling.samplers.interface.slots import smallest

keys = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, np.inf, np.nan]) | st.floats(), max_size=40)


@given(keys, st.integers(0, 45))
def test_the_smallest_keys_agree_with_a_stable_sort(values, count):
    values = np.array(values, np.float64)
    expected = np.argsort(values, kind="stable")[:count]
    assert smallest(values, count).tolist() == expected.tolist()
