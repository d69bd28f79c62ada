"""Weights of the clients that report, if others fail after they were selected."""

import itertools

import numpy as np
import pytest
from tests.shared import line_of

import fedsampling as fs
from fedsampling.base.errors import InputError
from fedsampling.base.streams import Draws
from fedsampling.clients.delays import Delays
from fedsampling.clients.failures import Failures
from fedsampling.samplers.checks.populations import POPULATIONS, setup
from fedsampling.samplers.checks.rounds import difference, one_run, play_rounds
from fedsampling.samplers.checks.validation import Checked
from fedsampling.samplers.protocol.base import scheme
from fedsampling.samplers.protocol.in_settings import expand_star
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Reports, Slots, View, allowing_for_failures

from .rounds import mean_weights, sized

UNEQUAL = POPULATIONS["unequal clients"]
SETTINGS = {
    "m": 4, "d": 8, "first": 3, "stop": "rounds", "available": 8, "report": "approximate",
    "c": 1.0, "rounds": 2, "credits": None, "observe": "update_norms",
}  # fmt: skip
SAMPLERS = expand_star({"*": SETTINGS})
SAMPLERS["delayhet_sampling"]["solver"] = "analytic"  # seconds faster than the paper's


PROBABILITY = np.linspace(0.1, 0.6, 12).tolist()


def played(sampler, failures, runs, rounds=1, population=UNEQUAL):
    n = len(population.p)
    delays = Delays(np.asarray(setup(population, np.arange(1)).delays))
    reporting = Failures.model_validate(failures).reporting(np.arange(n), rounds, delays)
    return play_rounds(
        lambda seeds: prepared(sampler, setup(population, seeds)),
        population, np.arange(runs), rounds, reporting=reporting,
    )  # fmt: skip


def weights(name, reported, chance, clients=((0, 1, 2),), **settings):
    """The weights of the reports, of clients with 1, 2 and 3 samples; at most of one run."""
    sampler = prepared(scheme(name, **settings), sized([1, 2, 3]))
    view = View(np.array([1, 2, 3]), np.array([1, 2, 3]) / 6, 0, 1)
    draws = Draws(np.array([5]), 0)
    sampler.select(view, draws)
    selected = Slots.stack([np.array(part) for part in clients])
    reported = np.array(reported)
    view = View(view.n_samples, view.p, 0, 1, reports=Reports(selected, reported, chance))
    return Checked(sampler, 1).weigh(selected.at(reported), view, draws)


def test_over_all_patterns_of_failures_expected_weights_are_importances():
    chance, expected = np.array([0.9, 0.5, 0.7]), np.zeros(3)
    for reported in itertools.product([True, False], repeat=3):
        probability = np.where(reported, chance, 1 - chance).prod()
        expected[list(reported)] += probability * weights("full", reported, chance)
    np.testing.assert_allclose(expected, np.array([1, 2, 3]) / 6)


def test_averages_stay_averages():
    chance = np.array([0.5, 0.25, 1.0])
    omega = weights("fedavg_normalised", [True, True, False], chance, m=3)
    share = np.array([1 / 0.5, 2 / 0.25])  # n_i divided by the chance
    np.testing.assert_allclose(omega, share / share.sum())
    omega = weights("fedavg_normalised", [True, True, False], None, m=3)
    np.testing.assert_allclose(omega, [1 / 3, 2 / 3])


def test_with_unknown_chances_the_share_of_reports_takes_their_place():
    omega = weights("md", [True, False, True], None, m=3)
    np.testing.assert_allclose(omega, [1 / 2, 1 / 2])
    several = Slots.stack([np.array([0, 1]), np.array([], int), np.array([1, 2, 0])])
    reported = np.array([False, True, True, True, True])
    slots, reports = several.at(reported), Reports(several, reported)
    corrected = allowing_for_failures(np.full(4, 0.1), slots, reports, "divide")
    np.testing.assert_allclose(corrected, [0.2, 0.1, 0.1, 0.1])


def test_samplers_that_account_for_absent_clients_keep_their_weights():
    for name in ("fedavg", "mifa"):
        omega = weights(name, [True, False, True], np.full(3, 0.5), m=3)
        np.testing.assert_allclose(omega, [1 / 6, 3 / 6])


@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_every_sampler_weighs_only_reports(name):
    """Also in runs in which nobody reports; and no run depends on the others."""
    for failures in (0.7, {"deadline": 0.8}, {"first": 2, "probability": 0.3}):
        several = played(scheme(**SAMPLERS[name]), failures, runs=3, rounds=4)
        alone = played(scheme(**SAMPLERS[name]), failures, runs=1, rounds=4)
        for together, single in zip(several, alone, strict=True):
            assert together.omega.shape == together.slots.client.shape
            assert np.isfinite(together.omega).all()
            assert not difference(one_run(together, 0), single)
            if failures != 0.7 and "first" in failures:
                assert np.bincount(together.slots.run, minlength=3).max() <= 2


@pytest.mark.parametrize(
    "name",
    sorted(name for name in SAMPLERS if scheme(**SAMPLERS[name]).failure_weights == "divide"),
)
def test_weights_are_divided_by_the_probability_of_reporting(name):
    (some,) = played(scheme(**SAMPLERS[name]), {"probability": PROBABILITY}, runs=6)
    (everyone,) = played(scheme(**SAMPLERS[name]), {"deadline": 1e9}, runs=6)  # nobody fails
    of_slots = zip(everyone.slots.run, everyone.slots.client, strict=True)
    weight = dict(zip(of_slots, everyone.omega, strict=True))
    chance = 1 - np.array(PROBABILITY)[some.slots.client]
    keys = zip(some.slots.run, some.slots.client, strict=True)
    np.testing.assert_allclose(some.omega, [weight[key] for key in keys] / chance)


@pytest.mark.parametrize("name", ["binomial", "isfedavg_agents", "kvib", "md", "uniform"])
def test_unbiased_samplers_stay_unbiased_if_the_probabilities_are_known(name):
    runs = 3000
    ((slots, omega, *_),) = played(scheme(**SAMPLERS[name]), {"probability": PROBABILITY}, runs)
    mean, error = mean_weights(slots, omega, setup(UNEQUAL, np.arange(runs)))
    assert (np.abs(mean - UNEQUAL.p) < 4.5 * error).all()
    constant = {"deadline": 1}  # so that some clients never report
    ((slots, omega, *_),) = played(scheme(**SAMPLERS[name]), constant, runs)
    mean, error = mean_weights(slots, omega, setup(UNEQUAL, np.arange(runs)))
    assert (np.abs(mean - UNEQUAL.p) > 4.5 * error).any()


def test_the_check_shows_the_bias_of_unknown_probabilities():
    fs.check_sampler(scheme("md", m=4), runs=500, failures=0.3)
    line = line_of(fs.check_sampler, scheme("md", m=6), runs=500, failures={"first": 3})
    assert "with failures, round 0: biased for" in line
    assert "the probabilities of reporting are unknown" in line
    line = line_of(fs.check_sampler, scheme("uniform", m=4), runs=500, failures={"deadline": 1})
    assert "4 clients always miss the deadline, which nothing corrects" in line


class Mean(fs.Sampler, name="mean_of_reports"):
    """Two clients by importance; `weigh` is told only those that report."""

    m: int = 4
    failure_weights = "average"
    unbiased = False

    def prepare(self, setup):
        self.reports = np.zeros(len(setup.p))

    def select(self, view, rng):
        return rng.choice(view.n, self.m, replace=False)

    def weigh(self, clients, view, rng):
        self.reports[clients] += 1
        return view.p[clients] / max(view.p[clients].sum(), 1e-300)


class Alone(fs.Sampler, name="uniform_of_one_run"):
    """m clients uniformly; their weights are 1/m, or returned by select."""

    m: int = 4
    returns: bool = False

    def select(self, view, rng):
        clients = rng.choice(view.n, self.m, replace=False)
        return (clients, np.full(self.m, 1 / self.m)) if self.returns else clients


Mean.named = Alone.named = ""  # of no use to other tests


def test_samplers_of_one_run_get_and_weigh_only_reports():
    for slots, omega, *_ in played(Mean(), 0.5, runs=5, rounds=3):
        sums = np.bincount(slots.run, omega, 5)
        np.testing.assert_allclose(sums[np.unique(slots.run)], 1)
    population = POPULATIONS["equal clients"]
    for returns in (True, False):
        ((slots, omega, *_),) = played(Alone(returns=returns), 0.5, runs=5, population=population)
        assert 0 < len(slots) < 20
        np.testing.assert_allclose(omega, 1 / 4 / 0.5)


def test_unknown_rules_are_refused():
    with pytest.raises(InputError, match="failure_weights = 'mean' is unknown"):
        type("Bad", (fs.Sampler,), {"failure_weights": "mean"})
