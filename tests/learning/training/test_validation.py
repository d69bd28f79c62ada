"""A sampler's results are validated in every round, except in runs that diverge."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from tests.shared import line_of

import fedsampling as fs
from fedsampling.adapters.cohort import Cohort
from fedsampling.base.errors import InputError
from fedsampling.learning.training.loop import train
from fedsampling.samplers.basic import MD
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup

SINCE = 4  # the first round in which the samplers return invalid results


def first(values, value):
    return np.concatenate([[value], values[1:]])


SELECTS = {  # the changed parts of the slots
    "client[0] = -7; must be integers in 0…6": [lambda s: {"client": s.client * 0 - 7}],
    "client[3] = 7; must be integers in 0…6": [lambda s: {"client": np.arange(8) + 4}],
    "run[4] = 2; must be ascending integers in 0…1": [lambda s: {"run": s.run + 1}],
    "run[4] = 0; must be ascending integers in 0…1": [lambda s: {"run": s.run[::-1]}],
    "client, a ndarray of bool and shape (8,)": [lambda s: {"client": s.client > 2}],
    "run, a ndarray of int64 and shape (7,)": [lambda s: {"run": s.run[1:]}],
    "client of shape (2, 4); must be one axis": [lambda s: {"client": s.client.reshape(2, 4)}],
    "times[0] = 0; must be integers above 0": [lambda s: {"times": 0 * s.times}],
    "times, a ndarray of float64 and shape (8,); must be in": [lambda s: {"times": s.times / 2}],
    "scale[0] = -1.0; must be numbers above 0": [lambda s: {"scale": -s.scale}],
    "scale = nan for client": [lambda s: {"scale": first(s.scale, np.nan)}],
}
WEIGHTS = {
    "ω = nan for client": lambda omega: first(omega, np.nan),
    "ω = inf for client": lambda omega: first(omega, np.inf),
    "a ndarray of float64 and shape (7,); must be one number per slot (8)": lambda o: o[1:],
    "a float of float64 and shape (); must be one number per slot": lambda omega: 0.25,
    "a ndarray of object and shape (8,)": lambda omega: omega.astype(object),
    "None; must be one number per slot": lambda omega: None,
}
INVALID = [
    *(("select", f"slots.{text}", change) for text, part in SELECTS.items() for change in part),
    *(("weigh", text, change) for text, change in WEIGHTS.items()),
]


@pytest.fixture
def late():
    """MD sampling that changes what it returns from some round on."""

    class Late(MD, name="late"):
        """Tests replace its two functions."""

        unbiased = False

        def select(self, state, view, rng):
            slots = super().select(state, view, rng)
            return self.slots_of(slots) if view.round >= SINCE else slots

        def weigh(self, state, slots, view, rng):
            omega = super().weigh(state, slots, view, rng)
            return self.omega_of(omega) if view.round >= SINCE else omega

        slots_of = staticmethod(lambda slots: slots)
        omega_of = staticmethod(lambda omega: omega)

    yield Late
    Late.named = ""


def play(problem, member, rounds=6, seeds=(0, 1), **options):
    learner = problem.learner
    ready = prepared(member(m=4), Setup(learner.n_samples, learner.p, len(seeds)))
    return train(learner, ready, seeds, rounds, **options).tables()


@pytest.mark.parametrize(("method", "text", "change"), INVALID)
def test_an_invalid_result_in_any_round_is_one_line(linear, late, method, text, change):
    if method == "select":
        late.slots_of = staticmethod(lambda slots: replace(slots, **change(slots)))
    else:
        late.omega_of = staticmethod(change)
    line = f"sampler late, round 4: {method} returned {text}"
    assert line_of(play, linear(), late).startswith(line)


def test_sums_of_weights_far_from_one_give_one_warning(linear, late):
    large = r"over 6 rounds the mean of Σω is 3.333e\+05"
    for factor, rounds, text in ((1e6, 6, large), (0.01, 60, "set shrinks = True")):
        late.omega_of = staticmethod(lambda omega, factor=factor: factor * omega)
        with pytest.warns(UserWarning, match=text) as warned:
            play(linear(), late, rounds)
        assert len(warned) == 1
    late.shrinks = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        play(linear(), late, rounds=60)


@pytest.mark.parametrize("variant", ["optimal", "tracked", "tracked-estimated"])
@pytest.mark.parametrize("step", [3.0, 1e80])
def test_a_run_that_diverges_is_a_result(linear, variant, step):
    """If the model diverges, so do probabilities, step sizes and weights."""
    with np.errstate(all="ignore"):
        tables = linear(step=step).train(variant, [0, 1], 300)
    ends = [table[table["metric"] == "diverged_at"]["value"].item() for table in tables]
    assert all(end > 0 for end in ends)


def test_overflow_of_squares_counts_as_divergence(linear, late):
    late.omega_of = staticmethod(lambda omega: np.full(len(omega), np.nan))
    with np.errstate(all="ignore"):
        (table,) = play(linear(step=1e45, E=np.ones(7, np.int64)), late, rounds=8, seeds=[0])
    assert table[table["metric"] == "diverged_at"]["value"].item() == SINCE + 1


def test_unavailable_clients_are_rejected(late):
    late.slots_of = staticmethod(lambda slots: replace(slots, client=0 * slots.client))
    cohort = Cohort(late(m=2), [3, 4, 5], dimension=2)
    assert cohort.select(4) == [0, 0]
    with pytest.raises(InputError, match=r"client 0, which is not available; .* 2 of 3 cli"):
        cohort.select(5, offered=[1, 2])
    cohort.select(6)
    assert cohort.weigh(np.zeros((2, 2), np.float32)).tolist() == [0.5, 0.5]


def test_the_library_warns_of_runs_that_diverge():
    data = fs.load("mnist", {"name": "all_by_dirichlet", "alpha": 0.5, "clients": 20}, "embedded")
    work = {"model": "mlp", "steps": 2, "batch": 5, "rounds": 3}
    text = r"2 of 2 runs diverged \(seed 0 after round 1, seed 1 after round 1\); .* than 1e\+30"
    with pytest.warns(UserWarning, match=text):
        fs.train(data, fs.scheme("md", m=4), step=1e30, seeds=2, **work)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fs.train(data, fs.scheme("md", m=4), step=0.1, **work)
