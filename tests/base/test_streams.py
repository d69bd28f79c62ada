import numpy as np
import pytest
from scipy import stats

from fedsampling.base.streams import Draws, philox, stream, uniforms


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_philox_gives_the_published_numbers_of_random123(counter, key, expected):
    words = philox(*([np.array([n], np.uint64) for n in numbers] for numbers in (counter, key)))
    assert " ".join(f"{int(word[0]):08x}" for word in words) == expected


def test_a_key_gives_the_same_numbers_alone_and_with_others():
    clients = np.array([5, 0, 7])
    stacked = uniforms(np.array([[1], [2]]), "batches", 9, clients, n=5)
    assert stacked.shape == (2, 3, 5)
    for row, seed in enumerate((1, 2)):
        for column, client in enumerate(clients):
            single = uniforms(seed, "batches", 9, int(client), n=5)
            np.testing.assert_array_equal(stacked[row, column], single)


def test_more_numbers_do_not_change_the_first():
    np.testing.assert_array_equal(uniforms(3, "a", 1, n=2), uniforms(3, "a", 1, n=9)[:2])


@pytest.mark.parametrize("key", [(4, "a", 1, 2), (3, "b", 1, 2), (3, "a", 2, 2), (3, "a", 1, 3)])
def test_seed_purpose_round_and_client_each_give_other_numbers(key):
    seed, purpose, *counters = key
    assert not np.array_equal(uniforms(3, "a", 1, 2, n=4), uniforms(seed, purpose, *counters, n=4))
    streams = stream(3, "a", 1, 2), stream(seed, purpose, *counters)
    assert not np.array_equal(*(generator.random(4) for generator in streams))


def test_numbers_are_uniform_and_keys_are_independent():
    u = uniforms(np.arange(200), "check", 0, n=500)
    assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-4
    correlation = np.corrcoef(u[:, :200])  # between seeds, 200 numbers each: sd 1/sqrt(200)
    off_diagonal = correlation[~np.eye(200, dtype=bool)]
    assert np.abs(off_diagonal).max() < 6 / np.sqrt(200)
    assert 0 <= u.min() <= u.max() < 1


def test_draws_of_a_run_do_not_depend_on_the_other_runs_of_the_job():
    single, stacked = Draws(np.array([8]), 3), Draws(np.array([1, 8, 2]), 3)
    assert single.uniform("select")[0] == stacked.uniform("select")[1]
    assert single.generators("select")[0].random() == stacked.generators("select")[1].random()
    run, client = np.array([1, 0]), np.array([4, 4])
    np.testing.assert_array_equal(
        stacked.client_uniforms("batches", run, client, 3)[0],
        single.client_uniforms("batches", np.array([0]), np.array([4]), 3)[0],
    )
