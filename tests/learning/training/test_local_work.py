"""Batches: all subsets and orders are equally likely, and slots are independent."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsampling.base.streams import Draws
from fedsampling.learning.training.local_work import LocalWork, epochs, fresh
from fedsampling.samplers.protocol.slots import Slots

counts = st.lists(st.integers(1, 30), min_size=1, max_size=5).map(np.array)


def numbers(*shape):
    return np.random.default_rng(0).random(shape)


class TestFresh:
    @given(n=counts, B=st.integers(1, 12), steps=st.integers(1, 4))
    def test_a_batch_has_distinct_samples_of_its_client(self, n, B, steps):
        result = fresh(n, B, numbers(len(n), steps, B))
        assert result.index.shape == (steps, len(n), B)
        assert (result.size == np.minimum(n, B)).all()
        for step in range(steps):
            for slot, size in enumerate(result.size[step]):
                batch = result.index[step, slot, :size]
                assert len(set(batch)) == size
                assert ((batch >= 0) & (batch < n[slot])).all()
                assert not result.index[step, slot, size:].any()

    def test_all_subsets_are_equally_likely(self):
        draws = 30_000
        result = fresh(np.array([5]), 3, numbers(1, draws, 3)).index[:, 0]
        seen, times = np.unique(np.sort(result, axis=1), axis=0, return_counts=True)
        assert [tuple(subset) for subset in seen] == list(combinations(range(5), 3))
        # Five standard errors: wrong with a probability of 6e-6 over the ten subsets.
        assert np.abs(times / draws - 0.1).max() < 5 * np.sqrt(0.1 * 0.9 / draws)


class TestEpochs:
    @given(n=counts, B=st.integers(1, 12), E=st.integers(1, 3), remainder=st.booleans())
    def test_an_epoch_contains_every_sample_once(self, n, B, E, remainder):
        result = epochs(n, B, E, remainder, numbers(len(n), E, n.max()))
        for slot, samples in enumerate(n):
            size = result.size[:, slot]
            batches = [result.index[s, slot, : size[s]] for s in range(len(size)) if size[s]]
            per_epoch = len(batches) // E
            used = samples if remainder or samples < B else samples // B * B
            for e in range(E):
                of_epoch = np.concatenate(batches[e * per_epoch : (e + 1) * per_epoch])
                assert len(set(of_epoch)) == len(of_epoch) == used
                assert set(of_epoch) <= set(range(samples))

    def test_finished_slots_have_no_further_batches(self):
        result = epochs(np.array([2, 9]), 4, 2, True, numbers(2, 2, 9))
        assert result.size.T.tolist() == [[2, 2, 0, 0, 0, 0], [4, 4, 1, 4, 4, 1]]


@pytest.mark.parametrize("length", [{"steps": 3}, {"epochs": 2}])
def test_batches_differ_between_rounds(length):
    work, slot = LocalWork(batch=4, step=0.1, **length), Slots.stack([np.array([0])])
    first, second = (
        work.batches(np.array([30]), slot, Draws(np.array([3]), round)).index for round in (0, 1)
    )
    assert (first != second).any()


def test_each_epoch_has_its_own_order():
    slot, rng = Slots.stack([np.array([0])]), Draws(np.array([3]), 0)
    work = LocalWork(batch=4, step=0.1, epochs=2)
    first, second = np.split(work.batches(np.array([30]), slot, rng).index, 2)
    assert (first != second).any()


@pytest.mark.parametrize("length", [{"steps": 3}, {"epochs": 2}, {"epochs": 2, "remainder": False}])
def test_counted_samples_are_those_of_the_batches(length):
    work, n_samples = LocalWork(batch=4, step=0.1, **length), np.array([2, 9, 12])
    batches = work.batches(n_samples, Slots.stack([np.arange(3)]), Draws(np.array([3]), 0))
    np.testing.assert_array_equal(work.samples(n_samples), batches.size.sum(0))


@pytest.mark.parametrize(
    ("schedule", "factors"),
    [
        ({"name": "cosine", "floor": 0.5}, [1.0, 0.926777, 0.75, 0.573223]),
        ({"name": "cosine", "rounds": 2}, [1.0, 0.5, 0.0, 0.0]),
        ({"name": "stairs", "every": 2, "drop": 0.1}, [1.0, 1.0, 0.1, 0.1]),
        ({"name": "constant", "warmup": 3}, [0.25, 0.5, 0.75, 1.0]),
        ({"name": "stairs", "every": 1, "drop": 0.5, "warmup": 2}, [1 / 3, 2 / 3, 1.0, 0.5]),
        ({"name": "cosine", "warmup": 2}, [1 / 3, 2 / 3, 1.0, 0.5]),
    ],
)
def test_a_schedule_scales_the_learning_rate_from_round_to_round(schedule, factors):
    work = LocalWork(batch=1, step=2.0, steps=1, schedule=schedule).for_rounds(4)
    slot = Slots.stack([np.array([0])])
    rates = [float(work.learning_rates(slot, round)[0]) for round in range(4)]
    np.testing.assert_allclose(rates, [2 * factor for factor in factors], atol=1e-6)
